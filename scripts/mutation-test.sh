#!/usr/bin/env bash
# mutation-test.sh [NAME...]: proves that the tests notice when a rule of the arithmetic is broken.
# Breaks one rule at a time in a copy of the sources (all of them, or those whose name contains one of
# the words), builds the operator and transparency tests, and expects one of them to fail. Takes
# about a minute for each rule. Exit 1 if a break goes unnoticed.
# mutation-test.sh --check: builds nothing, and looks only whether each text to be broken is still there.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ranks=4
tests=(execute_operators_test train_transparency_test)
on_devices=(train_device_waits_test execute_operators_test train_transparency_test)
place= # where tests run: the host by its own kernels, or what MPI4DL_TEST_ON may be
limit=300 # seconds for a test, and at least ten times as long as all of them take without any break
tree=$PWD/build/mutation
export OMP_NUM_THREADS=1

# Files that are the same keep their time, so that the next build compiles only what differs; files that
# are gone must go, as CMake takes all of some folders.
copy_sources() {
  local file
  while IFS= read -r file; do
    [ -e "$file" ] || rm "$tree/$file"
  done < <(cd "$tree" && find . -path ./build -prune -o -type f -path './*/*' -print)
  while IFS= read -r file; do
    cmp -s "$file" "$tree/$file" && continue
    mkdir -p "$tree/$(dirname "$file")"
    cp "$file" "$tree/$file"
  done < <(find CMakeLists.txt bench cmake src tests -type f)
}

compile() {
  cmake --build "$tree/build" --target "${tests[@]}" train_device_waits_test >build/mutation.log 2>&1 </dev/null
}

# Names the first test that fails; fails itself if none does. A test that hangs is one that fails.
find_failing_test() {
  local test output=$tree/output run=("${tests[@]}")
  [ -n "$place" ] && export MPI4DL_TEST_ON=$place
  [[ $place == simulated || $place == aware ]] && run=("${on_devices[@]}")
  for test in "${run[@]}"; do
    timeout --kill-after=5 "$limit" mpirun -np "$ranks" "$tree/build/bin/tests/$test" \
      --gtest_color=no --gtest_brief=0 >"$output" 2>&1 </dev/null && continue
    # The first test that failed, or the last that started and never ended.
    echo "${test#*_}: $(
      { grep -oP '\[  FAILED  \] \K[^ ,]+' "$output" || grep -oP '\[ RUN      \] \K.*' "$output" | tail -n 1; } |
        head -n 1
    )$(grep -q " has waited [0-9]* s " "$output" && echo " (a rank waited in vain)")"
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

check_only=false
if [ "${1:-}" = --check ]; then
  check_only=true
  wanted=()
fi
tried=0 broken=0 unnoticed=0
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
  tried=$((tried + 1))
  $check_only && return 0
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

prepare() {
  mkdir -p "$tree"
  copy_sources
  step "configure $tree" configure-mutation \
    cmake -S "$tree" -B "$tree/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D MPI4DL_WERROR=OFF \
      -D MPI4DL_UNITY=OFF
  echo "==> build the sources as they are"
  compile || { tail -n 40 build/mutation.log >&2; exit 1; }
  for place in "" composed simulated aware; do prove_green; done
  place=
}

# A test that fails anyway would notice every break.
prove_green() {
  local failing begin=$SECONDS
  echo "==> test them without any break, on ${place:-the host}"
  if failing=$(find_failing_test); then
    echo "the tests fail without any break: $failing" >&2
    tail -n 40 "$tree/output" >&2
    exit 1
  fi
  [ $((10 * (SECONDS - begin))) -lt "$limit" ] || limit=$((10 * (SECONDS - begin)))
}
if ! $check_only; then
  prepare
  echo "==> break one rule at a time, $ranks ranks"
fi

# --- Exchanges ---

mutant "halos are not exchanged" src/execute/stage_executor.cpp \
  'here.flight = halo.start({owned, here.local.view(owned)}, here.extended);' \
  'here.extended.view(intersect(owned, here.extended.box)).copy_(here.local.view(intersect(owned, here.extended.box)));'

mutant "halo gradients are dropped" src/execute/stage_executor.cpp \
  'const Redistribution& halo = *executor_.exchanges_[id];
  Values& here = gradients_[id];' \
  'const Redistribution& halo = *executor_.exchanges_[id];
  Values& here = gradients_[id];
  if (here.extended.data.defined())
    for (const Box& margin : difference(here.extended.box, intersect(here.extended.box, value.owned[rank])))
      here.extended.view(margin).zero_();'

mutant "halo gradients leave before the last reader has added its own" src/execute/stage_executor.cpp \
  'if (--pending_consumers_[edge.from] == 0) start_gradient_exchange(edge.from);' \
  'if (--pending_consumers_[edge.from] == std::min(1, executor_.segments_.readers[edge.from].all - 1)) start_gradient_exchange(edge.from);'

mutant "a convolution does not wait for its halo" src/execute/operators/convolution.cpp \
  'const Box ready = travels ? ready_part(run, wins) : Box();' \
  'const Box ready = travels ? run.output : Box();'

mutant "halo gradients overwrite instead of adding" src/exchange/redistribution.cpp \
  'launch({Combine::add,' \
  'launch({Combine::copy,'

mutant "gradients of margins are dropped" src/execute/stage_executor.cpp \
  'accumulate(sums.local, value.computed[rank], box, std::move(gradient));' \
  'const Box own = intersect(box, value.owned[rank]); if (!own.empty()) accumulate(sums.local, value.computed[rank], own, Patch{box, gradient}.view(own));'

# --- Padding ---

mutant "max pooling pads with zero" src/execute/operators/max_pool.cpp \
  '-std::numeric_limits<double>::infinity()' \
  '0'

mutant "padding is not applied again under D2" src/plan/stage_plan.cpp \
  'box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),' \
  'if (design_.fused && !windows(to.op, outputs.axes() - 2).empty()) { box[axis + 2] = rows; continue; }
    box[axis + 2] = {std::clamp<int64_t>(rows.begin, 0, length),'

mutant "convolutions leave out the last row of an image" src/backend/cpu/tap_runs.cpp \
  'if (from >= 0 && from < inputs) taps.push_back({tap, from});' \
  'if (from >= 0 && from < inputs - 1) taps.push_back({tap, from});'

mutant "average pooling divides by the whole kernel" src/backend/cpu/cpu_backend.cpp \
  'include_pad ? end - begin : std::min(end, axis.length) - std::max<int64_t>(begin, 0);' \
  'include_pad ? end - begin : axis.window.kernel;'

mutant "average pooling takes tile borders for image borders" src/backend/cpu/cpu_backend.cpp \
  'std::min(end, axis.length) - std::max<int64_t>(begin, 0);' \
  'std::min(end, axis.length) - std::max(begin, axis.outputs.begin * axis.window.stride);'

# --- Batch norm ---

mutant "batch norm corrects margins too" src/execute/operators/batch_norm.cpp \
  'for (const Box& margin : difference(input_.box, owned_)) write(margin, {});' \
  'for (const Box& margin : difference(input_.box, owned_)) write(margin, backend_.gradient_means(sums, moments_));'

mutant "batch norm sums gradients over owned pixels only" src/execute/operators/batch_norm.cpp \
  ': backend_.gradient_sums(gradient, input_.data, map_);' \
  ': backend_.gradient_sums(Patch{input_.box, gradient}.view(owned_), input_.view(owned_), map_);'

mutant "batch norm measures margins too" src/execute/operators/batch_norm.cpp \
  ': backend_.channel_moments(input_.view(owned_));' \
  ': backend_.channel_moments(input_.data);'

mutant "a fused ReLU lets gradients through where it was zero" src/backend/cpu/normalisation.cpp \
  'return open ? gradient : W{0};' \
  'return open || relu ? gradient : W{0};'

mutant "a ReLU behind a sum looks at the batch norm alone" src/execute/operators/batch_norm.cpp \
  'if (map_.relu) output_ = output;' \
  ';'

mutant "the gradient of what was added is overwritten" src/execute/operators/batch_norm.cpp \
  '!has_residual_ && sole_owner(gradient) && gradient' \
  'sole_owner(gradient) && gradient'

mutant "what is added to a convolution is left out at its border" src/backend/cpu/tap_products.cpp \
  '.residual = residual_.data == nullptr ? nullptr : start_of(residual_),' \
  '.residual = residual_.data == nullptr || columns.first > 0 ? nullptr : start_of(residual_),'

mutant "batch norm measures each tile alone" src/execute/stage_executor.cpp \
  'if (scope_ == BatchNormScope::global) context.statistics = &stage_;' \
  ''

mutant "batch norm reduces no gradients" src/execute/operators/batch_norm.cpp \
  'if (measures_ && ranks_ != nullptr) all_reduce(sums, *ranks_);' \
  ''

mutant "batch norm keeps the biased variance" src/backend/cpu/cpu_backend.cpp \
  'squares(c) / std::max(count(c) - 1, 1.0)' \
  'squares(c) / count(c)'

mutant "group norm corrects margins too" src/execute/operators/group_norm.cpp \
  'dx.view(owned_).sub_(shared.view(owned_));' \
  'dx.data.sub_(shared.data);'

mutant "group norm measures margins too" src/execute/operators/group_norm.cpp \
  'grouped(input_.view(owned_))' \
  'grouped(input_.data)'

# --- Sums over ranks ---

mutant "parameter gradients are averaged over tiles" src/train/trainer.cpp \
  'for (auto& [stage, reduction] : reductions) reduction.finish();' \
  'for (auto& [stage, reduction] : reductions) {
    reduction.finish();
    parameters_.at(stage)->gradient_memory().div_(updates_.at(stage).group().size());
  }'

mutant "a rank keeps its shard of the new parameters to itself" src/train/optimizer.cpp \
  'update.gather(parameters_.value_memory());' \
  ''

mutant "one direction keeps its gradients to itself" src/pipeline/process_groups.cpp \
  'for (int direction = 0; direction < layout.directions(); ++direction)
    for (const int rank : replica_ranks' \
  'for (int direction = 0; direction < 1; ++direction)
    for (const int rank : replica_ranks'

mutant "the gradients of one direction are lost" src/pipeline/stage.cpp \
  'in_flight_.erase(number);
}' \
  'in_flight_.erase(number);
  if (groups_.role.direction == 1) parameters_.clear();
}'

mutant "a cell is reduced before all micro-batches are back" src/pipeline/pipeline.cpp \
  'for (size_t i = schedule.size(); i-- > 0;)' \
  'for (size_t i = 0; i < schedule.size(); ++i)'

mutant "the loss is a mean over each micro-batch" src/train/trainer.cpp \
  'cross_entropy(logits.data, labels, work_.effective_batch)' \
  'cross_entropy(logits.data, labels, static_cast<int64_t>(batch.size()))'

mutant "running statistics move with every micro-batch" src/execute/parameters.cpp \
  'images_[node].add_(images);' \
  'images_[node].add_(images); update_statistics();'

mutant "the loss is a mean over each batch part" src/task/loss.cpp \
  'static_cast<double>(effective_batch)' \
  'static_cast<double>(logits.size(0) + 0 * effective_batch)'

mutant "global pooling counts its first tile twice" src/execute/operators/global_avg_pool.cpp \
  'whole.data.zero_();' \
  'if (owned_.empty()) whole.data.zero_(); else whole.data.copy_(part.data);'

mutant "global pooling averages each tile" src/execute/operators/global_avg_pool.cpp \
  'pixels_(run.graph.node(run.node().inputs[0]).shape.elements() / run.node().shape.channels)' \
  'pixels_(run.inputs[0].data.numel() / std::max<int64_t>(1, run.inputs[0].data.size(0) * run.node().shape.channels))'

mutant "adaptive pooling averages each tile's part of a window" src/execute/operators/adaptive_avg_pool.cpp \
  'div_((last - first).to(wide))' \
  'div_(inside.sum(1, /*keepdim=*/true).clamp_min(1).to(wide))'

mutant "a tile contributes to the first window that it touches alone" src/plan/stage_plan.cpp \
  'all = hull(all, {output, output + 1});' \
  'all = all.empty() ? Interval{output, output + 1} : all;'

# --- Maps in one place, and pooled values with layers ---

mutant "group norm of a map in one place reads what others have" src/execute/operators/group_norm.cpp \
  'owns_all_pixels(run) ? nullptr : run.context.tiles' \
  'nullptr'

mutant "a map in one place is not gathered" src/plan/stage_plan.cpp \
  'return values_[consumer].joined != values_[producer].joined;' \
  'return values_[producer].joined && !values_[consumer].joined;'

mutant "a tile without pooled values measures them" src/execute/operators/batch_norm.cpp \
  'if (measures_ && !alone_with_none)' \
  'if (measures_)'

mutant "a convolution of one pixel forgets its groups" src/execute/operators/convolution.cpp \
  'return groups.transpose(0, 1).flatten(1);' \
  'return groups.transpose(0, 1).transpose(1, 2).flatten(1);'

mutant "a convolution of one pixel loses what is added to it" src/execute/operators/convolution.cpp \
  'if (residual.defined()) output = output + residual;' \
  ''

mutant "the loss of a map counts each tile as an image" src/train/trainer.cpp \
  'graph_.node(graph_.output()).shape.elements());' \
  'std::max<int64_t>(1, output.data.numel()));'

# --- Pooled values that come back to tiles ---

mutant "the gradient of a pooled value counts its owner's part twice" src/execute/stage_executor.cpp \
  'accumulate(sums.extended, value.extended[rank], box, std::move(gradient));' \
  'if (value.joined && !value.owned[rank].empty()) accumulate(sums.local, value.computed[rank], box, gradient.clone());
    accumulate(sums.extended, value.extended[rank], box, std::move(gradient));'

mutant "a pooled value is broadcast before all tiles have added to it" src/execute/operators/global_avg_pool.cpp \
  'pooling_.run_adjoint(part, whole);
    return whole.data;' \
  'Redistribution::Flight late = pooling_.start_adjoint(part, whole);
    const at::Tensor early = whole.data.clone();
    late.finish();
    return early;'

mutant "adaptive pooling broadcasts before all tiles have added to it" src/execute/operators/adaptive_avg_pool.cpp \
  'pooling_->run_adjoint(part, whole);
    return whole.data;' \
  'Redistribution::Flight late = pooling_->start_adjoint(part, whole);
    const at::Tensor early = whole.data.clone();
    late.finish();
    return early;'

mutant "every tile has the gradient of the largest pixel" src/execute/operators/global_max_pool.cpp \
  '(part.data * wins_)' \
  'part.data'

# --- What computes per pixel and per channel ---

mutant "a gate has the gradient of one channel alone" src/execute/operators/elementwise.cpp \
  'everywhere.sum(1, /*keepdim=*/true)' \
  'everywhere.narrow(1, 0, 1)'

mutant "a difference is taken the other way round" src/execute/operators/elementwise.cpp \
  'at::sub_out(y, a, b)' \
  'at::sub_out(y, b, a)'

mutant "the gradient of a divisor has the wrong sign" src/execute/operators/elementwise.cpp \
  '-dy * (a / b / b)' \
  'dy * (a / b / b)'

mutant "of two equal operands each has the whole gradient" src/execute/operators/elementwise.cpp \
  'wins.sgn_().add_(1).mul_(0.5)' \
  'wins.ge(0).to(gradient.scalar_type())'

mutant "ReLU6 lets gradients through at its ends" src/execute/operators/pointwise.cpp \
  'return at::hardtanh_backward(wide(dy), wide(kept), op.a, op.b).to(dy.scalar_type());' \
  'return (kept >= op.a).logical_and_(kept <= op.b).mul(dy);'

mutant "PReLU learns from what is positive too" src/execute/operators/prelu.cpp \
  'input.clamp_max(0).mul_(gradient)' \
  'input.mul(gradient)'

mutant "a learned scale has the gradient of the shift" src/execute/operators/channel_scale.cpp \
  'std::swap(result.parameters[0], result.parameters[1]);' \
  ';'

mutant "a batch norm without weights takes its statistics for them" src/execute/operators/batch_norm.cpp \
  'affine_ ? run.parameters[0] : number(1)' \
  'run.parameters[0]'

mutant "a channel norm has one epsilon" src/execute/operators/channel_norm.cpp \
  'weight, bias, op.eps)' \
  'weight, bias, 1e-5)'

mutant "a softmax is taken over columns" src/execute/operators/channel_softmax.cpp \
  'run.inputs[0].data.movedim(1, -1), -1)' \
  'run.inputs[0].data.movedim(1, -1), -2)'

# --- Shared and frozen parameters ---

mutant "a shared gradient is overwritten by the node that adds last" src/execute/parameters.cpp \
  'for (const size_t i : entries_of_[node]) begin(entries_[i]);' \
  'for (const size_t i : entries_of_[node]) {
    if (entries_[i].node == node) entries_[i].begun = false;
    begin(entries_[i]);
  }'

mutant "frozen parameters are trained" src/graph/node_weight.cpp \
  'if (choice.frozen && parameter.trained()) parameter.kind = ParameterKind::frozen;' \
  ''

# --- Computed weights ---

mutant "the gradient of a weight norm forgets that the norm changes too" src/execute/computed_weight.cpp \
  'return at::norm(a, 2, axes, /*keepdim=*/true);' \
  'return at::norm(a, 2, axes, /*keepdim=*/true).detach();'

mutant "a computed weight has the gradient of one of its nodes" src/execute/computed_weight.cpp \
  'if (!std::exchange(begun_, true) && sum_.defined()) sum_.zero_();' \
  'begun_ = true; if (sum_.defined()) sum_.zero_();'

# --- Global positions ---

mutant "dropout is keyed by the position in the tile" src/execute/operators/dropout.cpp \
  'box[axis] = run.output[axis];' \
  'box[axis] = {0, run.output[axis].length()};'

mutant "dropout is keyed by the place in the micro-batch" src/execute/operators/dropout.cpp \
  'images.empty() ? image : images[image]' \
  'images.size() == size_t(-1) ? 0 : image'

# --- Stages ---

mutant "a stage reads a stale micro-batch" src/pipeline/pipeline.cpp \
  'expect(action, batches);
    if (i + 1' \
  'if (i + 1'

mutant "cells that run again draw other statistics" src/execute/stage_executor.cpp \
  'if (here.extended > 0) exchange(id, here.local);' \
  'if (here.extended > 0) allocate_halo_buffer(id);'

mutant "values that recompute needs are not kept" src/execute/stage_executor.cpp \
  'for (const int id : segment.first_reads) ++readers_[id];' \
  ';'

# --- Pixels that move ---

mutant "bilinear resizing ends at the tile" src/execute/operators/resize.cpp \
  'const int64_t row = inputs[tap] - patch.begin;' \
  'const int64_t row =
          std::min(inputs[tap], (outputs.end - 1) * axis.inputs / axis.outputs) - patch.begin;'

mutant "resizing forgets its factor" src/graph/resampling.cpp \
  'if (axis.factor > 0) return static_cast<T>(1 / axis.factor);' \
  ''

mutant "only the first output gives an input its gradient" src/execute/operators/resize.cpp \
  'result.rows[from].push_back(' \
  'if (result.rows[from].empty()) result.rows[from].push_back('

mutant "reflected padding repeats the first row" src/graph/pad_axis.cpp \
  'place < 0 ? -place :' \
  'place < 0 ? -place - 1 :'

mutant "circular padding repeats what was cut off" src/graph/pad_axis.cpp \
  'if (place < rows.begin) return place + rows.length();' \
  'if (place < rows.begin) return place + length;'

mutant "a row that is read twice keeps one gradient" src/execute/operators/pad.cpp \
  '.index_add_(' \
  '.index_copy_('

mutant "constant padding is zero" src/execute/operators/pad.cpp \
  'pad(run.inputs[0].data, frame, op.value)' \
  'pad(run.inputs[0].data, frame, 0)'

mutant "average pooling counts the padding before an image behind it" src/backend/cpu/cpu_backend.cpp \
  'axis.length + axis.window.padding_end()' \
  'axis.length + axis.window.padding'

mutant "each tile draws whether an image is dropped" src/execute/operators/dropout.cpp \
  'combine_keys(run.context.dropout_seed,' \
  'combine_keys(run.context.dropout_seed + (op.mask_axes(4) < 4 ? run.output[2].begin : 0),'

mutant "squares of a pixel shuffle are cut at the wrong end" src/execute/operators/pixel_shuffle.cpp \
  'frame.before.push_back(rows.begin - patch.begin * op.factor);' \
  'frame.before.push_back(patch.end * op.factor - rows.end);
    frame.after.push_back(rows.begin - patch.begin * op.factor);
    continue;'

mutant "channels are shuffled the same way backward" src/execute/operators/channel_shuffle.cpp \
  'run.output[1].length() / op.groups' \
  'op.groups'

mutant "added channels are those before alone" src/execute/operators/channel_pad.cpp \
  'gradient.narrow(1, op.before, channels)' \
  'gradient.narrow(1, 0, channels)'

# --- Arithmetic composed of libtorch's operators, as on devices ---

place=composed

mutant "composed: padding on both sides makes another output" src/backend/composed/convolution.cpp \
  'unread < window.stride' \
  'unread <= window.stride'

mutant "composed: a gradient passes where the ReLU has cut" src/backend/composed/normalisation.cpp \
  'mapped(x, map) > 0' \
  'mapped(x, map) > -1'

mutant "composed: the running variance is biased" src/backend/composed/normalisation.cpp \
  '(count - 1).clamp_min(1)' \
  'count'

# --- Devices: the same tests on a simulated one, and the count of waits ---

place=simulated

mutant "the host reads memory of a device" src/backend/composed/boxes.cpp \
  'if (source.data_ptr() != target.data_ptr()) combine' \
  'if (source.numel() > 0 && *static_cast<const volatile char*>(source.data_ptr()) != 77) combine'

mutant "labels stay on the host" src/train/trainer.cpp \
  'backend.from_host(read_labels(images, batch, logits.box[0]))' \
  'read_labels(images, batch, logits.box[0])'

mutant "what is staged is read too early" src/comm/staging.cpp \
  'wait_until([&] { return copy.ready(); }, context,' \
  'wait_until([&] { return copy.ready() || true; }, context,'

mutant "packed halos are sent before they are there" src/exchange/device_flight.cpp \
  'void DeviceFlight::send() {
  await_packed();' \
  'void DeviceFlight::send() {'

mutant "packing does not wait for what computes" src/exchange/device_flight.cpp \
  'const SideStream::Section on_side(side);' \
  'const SideStream::Section on_side(side, SideStream::Order::as_it_is);'

mutant "computing does not wait for the halo" src/exchange/device_flight.cpp \
  'side.join();' \
  ''

mutant "memory is reused while the side stream packs it" src/exchange/device_flight.cpp \
  'if (!journey.sends.empty()) side.keep(journey.from.data);' \
  ''

mutant "a collective is given memory of a device" src/comm/collectives.cpp \
  'if (!tensor.is_cpu())
    return reduce_on_host(tensor, group,
                          [&](at::Tensor& host) { all_reduce(host, group, options); });' \
  'if (!tensor.is_cpu()) {
    start_by_mpi(tensor, scalars(tensor, options), group).finish();
    return;
  }'

mutant "a halo is written while a convolution reads its place" src/exchange/device_flight.cpp \
  'how_ == Combine::copy' \
  'how_ == Combine::add'

mutant "a device convolves a part of a buffer" src/execute/operators/convolution.cpp \
  'if (auto all = frame_in(memory.box, input.box, padded, windows))' \
  'if (auto all = frame_in(memory.box, input.box, padded, windows); all && all->none())'

mutant "a dropout waits until its mask is on the device" src/execute/operators/dropout.cpp \
  'run.backend().from_host(dropout_mask(op, run).to(input.data.scalar_type()))' \
  'dropout_mask(op, run).to(input.data.options())'

mutant "a batch norm asks its device for a value" src/backend/composed/normalisation.cpp \
  'const auto [variance, mean] = at::var_mean(wide(x), all_but_channels(x), /*unbiased=*/false);' \
  'const auto [variance, mean] = at::var_mean(wide(x), all_but_channels(x), /*unbiased=*/false);
  if (mean.sum().item<double>() == 77) return {};'

place=aware

mutant "MPI reads memory that a device is writing" src/exchange/device_flight.cpp \
  'comm_.await([this] { return packed_->reached(); },' \
  'comm_.await([this] { return packed_->reached() || true; },'

mutant "MPI writes memory that a device may still read" src/exchange/device_flight.cpp \
  'await_packed();  // and with it all that ever used the memory of the buffers
    expect();' \
  'expect();
    await_packed();'

place=

$check_only && echo "==> $tried texts are there"
echo "==> $unnoticed went unnoticed, $broken could not be tried"
[ $((unnoticed + broken)) -eq 0 ]
