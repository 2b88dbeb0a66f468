#!/usr/bin/env bash
# mutation-test.sh [NAME...]: proves that the tests notice when a rule of the arithmetic is broken.
# Breaks one rule at a time in a copy of the sources (all of them, or those whose name contains one of
# the words), builds the operator and transparency tests, and expects one of them to fail. Takes
# about a minute for each rule. Exit 1 if a break goes unnoticed.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ranks=4
tests=(ops_operators_test train_transparency_test)
tree=$PWD/build/mutation
export OMP_NUM_THREADS=1
mkdir -p "$tree"

# Files that are the same keep their time, so that the next build compiles only what differs.
copy_sources() {
  local file
  while IFS= read -r file; do
    cmp -s "$file" "$tree/$file" && continue
    mkdir -p "$tree/$(dirname "$file")"
    cp "$file" "$tree/$file"
  done < <(find CMakeLists.txt bench cmake src tests -type f)
}

compile() {
  cmake --build "$tree/build" --target "${tests[@]}" >build/mutation.log 2>&1 </dev/null
}

# Names the first test that fails; fails itself if none does. A test that hangs is one that fails.
find_failing_test() {
  local test output=$tree/output
  for test in "${tests[@]}"; do
    timeout --kill-after=5 300 mpirun -np "$ranks" "$tree/build/bin/tests/$test" \
      --gtest_color=no --gtest_brief=0 >"$output" 2>&1 </dev/null && continue
    # The first test that failed, or the last that started and never ended.
    echo "${test#*_}: $(
      { grep -oP '\[  FAILED  \] \K[^ ,]+' "$output" || grep -oP '\[ RUN      \] \K.*' "$output" | tail -n 1; } |
        head -n 1
    )"
    return 0
  done
  return 1
}

wanted=("$@")
is_wanted() {
  local word
  [ ${#wanted[@]} -eq 0 ] && return 0
  for word in "${wanted[@]}"; do
    [[ $1 == *"$word"* ]] && return 0
  done
  return 1
}

broken=0 unnoticed=0
say() { printf '%-52s %-9s %s\n' "$1" "$2" "${3:-}"; }

# mutant NAME FILE OLD NEW: OLD must be in FILE exactly once.
mutant() {
  local name=$1 file=$2 old=$3 new=$4 text rest test
  is_wanted "$name" || return 0
  text=$(<"$file")
  rest=${text/"$old"/}
  if [[ $rest == "$text" || $rest == *"$old"* ]]; then
    say "$name" STALE "its text is not in $file exactly once"
    broken=$((broken + 1))
    return 0
  fi
  printf '%s\n' "${text/"$old"/"$new"}" >"$tree/$file"
  if ! compile; then
    say "$name" BROKEN "it does not compile, see build/mutation.log"
    broken=$((broken + 1))
  elif test=$(find_failing_test); then
    say "$name" noticed "$test"
  else
    say "$name" SURVIVED
    unnoticed=$((unnoticed + 1))
  fi
  cp "$file" "$tree/$file"
}

copy_sources
step "configure $tree" configure-mutation \
  cmake -S "$tree" -B "$tree/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D MPI4DL_WERROR=OFF \
    -D MPI4DL_UNITY=OFF
echo "==> build the sources as they are"
compile || { tail -n 40 build/mutation.log >&2; exit 1; }
if failing=$(find_failing_test); then
  echo "the tests fail without any break: $failing" >&2
  tail -n 40 "$tree/output" >&2
  exit 1
fi
echo "==> break one rule at a time, $ranks ranks"

# --- Exchanges ---

mutant "halos are not exchanged" src/ops/stage_runner.cpp \
  'here.flight = halo.start({owned, here.local.view(owned)}, here.extended);' \
  'here.extended.view(intersect(owned, here.extended.box)).copy_(here.local.view(intersect(owned, here.extended.box)));'

mutant "halo gradients are dropped" src/ops/stage_runner.cpp \
  'const Redistribution& halo = *runner_.exchanges_[id];
  Values& here = gradients_[id];' \
  'const Redistribution& halo = *runner_.exchanges_[id];
  Values& here = gradients_[id];
  if (here.extended.data.defined())
    for (const Box& margin : difference(here.extended.box, intersect(here.extended.box, value.owned[rank])))
      here.extended.view(margin).zero_();'

mutant "halo gradients leave before the last reader has added its own" src/ops/stage_runner.cpp \
  'if (--not_gone_back_[edge.from] == 0) start_gradient_exchange(edge.from);' \
  'if (--not_gone_back_[edge.from] == std::min(1, runner_.segments_.readers[edge.from].all - 1)) start_gradient_exchange(edge.from);'

mutant "a convolution does not wait for its halo" src/ops/convolution.cpp \
  'const Box ready = ready_part(run, wins);' \
  'const Box ready = run.output;'

mutant "halo gradients overwrite instead of adding" src/exchange/redistribution.cpp \
  'Flight::State::launch(Combine::add,' \
  'Flight::State::launch(Combine::copy,'

mutant "gradients of margins are dropped" src/ops/stage_runner.cpp \
  'accumulate(sums.local, value.computed[rank], box, std::move(gradient));' \
  'const Box own = intersect(box, value.owned[rank]); if (!own.empty()) accumulate(sums.local, value.computed[rank], own, Patch{box, gradient}.view(own));'

# --- Padding ---

mutant "max pooling pads with zero" src/ops/pooling.cpp \
  '-std::numeric_limits<double>::infinity()' \
  '0'

mutant "padding is not applied again under D2" src/plan/stage_plan.cpp \
  'box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),' \
  'if (design_.fused && !windows(to.op, spatial_axes).empty()) { box[axis + 2] = rows; continue; }
    box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),'

mutant "convolutions leave out the last row of an image" src/ops/kernels/tap_runs.cpp \
  'if (from >= 0 && from < inputs) taps.push_back({tap, from});' \
  'if (from >= 0 && from < inputs - 1) taps.push_back({tap, from});'

mutant "average pooling divides by the whole kernel" src/ops/pooling.cpp \
  'include_pad ? end - begin : std::min(end, length) - std::max<int64_t>(begin, 0));' \
  'include_pad ? end - begin : window.kernel);'

mutant "average pooling takes tile borders for image borders" src/ops/pooling.cpp \
  'std::min(end, length) - std::max<int64_t>(begin, 0));' \
  'std::min(end, outputs.end * window.stride) - std::max<int64_t>(begin, outputs.begin * window.stride));'

# --- Batch norm ---

mutant "batch norm corrects margins too" src/ops/batch_norm.cpp \
  'for (const Box& margin : difference(input_.box, owned_)) write(margin, nullptr);' \
  'for (const Box& margin : difference(input_.box, owned_)) write(margin, &means);'

mutant "batch norm sums gradients over owned pixels only" src/ops/batch_norm.cpp \
  ': gradient_sums(gradient, input_.data, map_);' \
  ': gradient_sums(Patch{input_.box, gradient}.view(owned_), input_.view(owned_), map_);'

mutant "batch norm measures margins too" src/ops/batch_norm.cpp \
  ': channel_moments(input_.view(owned_));' \
  ': channel_moments(input_.data);'

mutant "a fused ReLU lets gradients through where it was zero" src/ops/kernels/normalisation.cpp \
  'const W value = open ? given : W{0};
          to[lane]' \
  'const W value = open || relu ? given : W{0};
          to[lane]'

mutant "a ReLU behind a sum looks at the batch norm alone" src/ops/batch_norm.cpp \
  'if (map_.relu) output_ = output;' \
  ';'

mutant "the gradient of what was added is overwritten" src/ops/batch_norm.cpp \
  'const bool in_place = !sums_ && sole_owner' \
  'const bool in_place = sole_owner'

mutant "what is added to a convolution is left out at its border" src/ops/kernels/tap_products.cpp \
  '.addend = addend_.data == nullptr ? nullptr : start_of(addend_),' \
  '.addend = addend_.data == nullptr || columns.first > 0 ? nullptr : start_of(addend_),'

mutant "batch norm measures each tile alone" src/ops/stage_runner.cpp \
  'if (scope_ == BatchNormScope::global) context.statistics = &stage_;' \
  ''

mutant "batch norm reduces no gradients" src/ops/batch_norm.cpp \
  'if (training_ && ranks_ != nullptr) ranks_->all_reduce(sums);' \
  ''

mutant "batch norm keeps the biased variance" src/ops/batch_norm.cpp \
  'moment[2] / std::max(count_ - 1, 1.0)' \
  'moment[2] / count_'

mutant "group norm corrects margins too" src/ops/group_norm.cpp \
  'dx.view(owned_).sub_(shared.view(owned_));' \
  'dx.data.sub_(shared.data);'

mutant "group norm measures margins too" src/ops/group_norm.cpp \
  'grouped(input_.view(owned_))' \
  'grouped(input_.data)'

# --- Sums over ranks ---

mutant "parameter gradients are averaged over tiles" src/train/trainer.cpp \
  'for (auto& [stage, reduction] : reductions) reduction.finish();' \
  'for (auto& [stage, reduction] : reductions) {
    reduction.finish();
    parameters_.at(stage)->gradient_memory().div_(team_.holders().at(stage).size());
  }'

mutant "a rank keeps its slice of the new parameters to itself" src/train/trainer.cpp \
  'if (sliced(stage)) team_.holders().at(stage).gather_slices(parameters->value_memory());' \
  ''

mutant "one direction keeps its gradients to itself" src/pipeline/team.cpp \
  'for (int direction = 0; direction < layout.directions(); ++direction)
    for (const int rank : replica_ranks' \
  'for (int direction = 0; direction < 1; ++direction)
    for (const int rank : replica_ranks'

mutant "the gradients of one direction are lost" src/pipeline/stage.cpp \
  'live_.erase(number);
}' \
  'live_.erase(number);
  if (crew_.role.direction == 1) parameters_.clear();
}'

mutant "a cell is reduced before all micro-batches are back" src/pipeline/pipeline.cpp \
  'for (size_t i = schedule.size(); i-- > 0;)' \
  'for (size_t i = 0; i < schedule.size(); ++i)'

mutant "the loss is a mean over each micro-batch" src/train/trainer.cpp \
  'cross_entropy(logits.data, labels, work_.effective_batch)' \
  'cross_entropy(logits.data, labels, static_cast<int64_t>(batch.size()))'

mutant "running statistics move with every micro-batch" src/ops/parameters.cpp \
  '[images](auto* count) { *count += static_cast<double>(images); });' \
  '[images](auto* count) { *count += static_cast<double>(images); }); update_statistics();'

mutant "the loss is a mean over each batch part" src/train/loss.cpp \
  'static_cast<double>(effective_batch)' \
  'static_cast<double>(logits.size(0) + 0 * effective_batch)'

mutant "global pooling counts its first tile twice" src/ops/pooling.cpp \
  'whole.data.zero_();' \
  'if (owned_.empty()) whole.data.zero_(); else whole.data.copy_(part.data);'

mutant "global pooling averages each tile" src/ops/pooling.cpp \
  'pixels_(run.graph.node(run.node().inputs[0]).shape.elements() / run.node().shape.channels)' \
  'pixels_(run.inputs[0].data.numel() / std::max<int64_t>(1, run.inputs[0].data.size(0) * run.node().shape.channels))'

# --- Global positions ---

mutant "dropout is keyed by the position in the tile" src/ops/pointwise.cpp \
  'Box box = run.output;' \
  'Box box = Box::whole(run.output.shape());'

mutant "dropout is keyed by the place in the micro-batch" src/ops/pointwise.cpp \
  'images.empty() ? image : images[image]' \
  'images.size() == size_t(-1) ? 0 : image'

# --- Stages ---

mutant "a stage reads a stale micro-batch" src/pipeline/pipeline.cpp \
  'expect(action, batches);
    if (i + 1' \
  'if (i + 1'

mutant "cells that run again draw other statistics" src/ops/stage_runner.cpp \
  'if (here.extended > 0) exchange(id, here.local);' \
  'if (here.extended > 0) make_room(id);'

mutant "values that recompute needs are not kept" src/ops/stage_runner.cpp \
  'for (const int id : segment.first_reads) ++readers_[id];  // until that segment has gone back' \
  ';'

mutant "bilinear upsampling ends at the tile" src/ops/upsampling.cpp \
  'std::min(below + 1, length - 1) - patch.begin' \
  'std::min(below + 1, (outputs.end - 1) / op.factor) - patch.begin'

echo "==> $unnoticed went unnoticed, $broken could not be tried"
[ $((unnoticed + broken)) -eq 0 ]
