// `mpi4dl bench train`: this system and another one train the same model in turns, on the same
// cores of the same machine, so that whatever else slows it down slows both.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "bench/plain_process.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/model_flags.hpp"
#include "cli/race_report.hpp"
#include "cli/training_flags.hpp"
#include "comm/memory_meter.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"

namespace mpi4dl {
namespace {

struct RaceFlags {
  ModelFlags model;
  TrainingFlags training;
  std::string against = "plain";
  std::string plain_dtype;  // empty: as --dtype, but float32 for bfloat16
  std::string other_size;   // of the opponent's images
  int warmup = 2;
  int iterations = 5;
  bool profile = false;
  std::string json_file;

  bool against_plain() const { return against == "plain"; }
  ModelOptions other_model() const {
    ModelFlags other = model;
    other.image_size = other_size;
    return other.model();
  }
  std::string opponent_dtype() const {
    if (!plain_dtype.empty()) return plain_dtype;
    return training.dtype == "bfloat16" ? "float32" : training.dtype;
  }
  /// oneDNN has no float64.
  std::string gemm_dtype() const { return training.dtype == "bfloat16" ? "bfloat16" : "float32"; }
  void check() const;
};

void RaceFlags::check() const {
  training.check();
  validate(against != "design-1" || training.parallel.halo.fused,
           "--against design-1 has a meaning only with --halo-D2");
  validate(plain_dtype.empty() || against_plain(),
           "--plain-dtype {} has a meaning only with --against plain, not {}", plain_dtype,
           against);
  validate(other_size.empty() == (against != "other-size"),
           "--against other-size and --other-size, which says what size, go together");
  const std::string& name = model.options.name;
  validate(!against_plain() || name == "resnet" || name == "amoebanet",
           "there is no plain version of '{}'; use --against one-rank", name);
}

/// What mpi4dl-plain is told: the same model, and all images of a step at once.
std::vector<std::string> plain_flags(const RaceFlags& flags, int64_t batch) {
  std::vector<std::string> words{"--gemm-dtype", flags.gemm_dtype()};
  if (!flags.against_plain()) return words;
  const ModelOptions model = flags.model.model();
  const auto add = [&](const std::string& flag, const auto& value) {
    words.push_back(flag);
    words.push_back(fmt::format("{}", value));
  };
  add("--model", model.name);
  add("--resnet-version", model.resnet_version);
  add("--depth", model.depth);
  if (model.global_pool_head) words.emplace_back("--global-pool-head");
  add("--num-layers", model.num_layers);
  add("--num-filters", model.num_filters);
  add("--num-classes", model.classes);
  add("--height", model.image[0]);
  add("--width", model.image[1]);
  add("--batch-size", batch);
  add("--dtype", flags.opponent_dtype());
  return words;
}

double pixels(const ModelOptions& model) {
  return static_cast<double>(model.image[0]) * static_cast<double>(model.image[1]);
}

/// Everything that takes part, on this rank.
class Race {
 public:
  /// Collective over the world, as is each call below.
  Race(const Session& session, const RaceFlags& flags)
      : session_(session),
        world_(session.world()),
        flags_(flags),
        layout_(flags.training.parallel.options, world_.size()),
        graph_(build_model(flags.model.model())),
        options_(flags.training.trainer_options(graph_, layout_)),
        batch_(flags.training.batch_shape(layout_)),
        cores_(cores_of_node(world_)) {
    ours_.emplace(graph_, layout_, work(), options_, world_);
    add_opponent();
    if (session.first())
      plain_.emplace(PlainProcess::Options{plain_flags(flags, batch_.effective()), cores_,
                                           world_.context().timeout_seconds});
    if (flags.against_plain()) take_turn(world_, opponent());  // a first step, as ours has taken
  }

  std::string describe() const {
    std::string text = fmt::format(
        "{}, {} parameters, images {}, effective batch {}, {} on {} rank{}\n{}\n",
        flags_.model.options.name, graph_.parameter_count(), flags_.model.image_size,
        batch_.effective(), flags_.training.dtype, world_.size(), world_.size() == 1 ? "" : "s",
        describe_layout(graph_, layout_, options_.cells, flags_.training));
    if (flags_.against_plain())
      text += fmt::format(
          "against plain libtorch: {}, NCHW, default allocator, one process, {} thread{}\n",
          flags_.opponent_dtype(), cores_.size(), cores_.size() == 1 ? "" : "s");
    if (flags_.against == "other-size")
      text += fmt::format("against images {}: a turn is {} step{}\n", flags_.other_size,
                          opponents_steps_, opponents_steps_ == 1 ? "" : "s");
    return text;
  }

  RaceFigures run() {
    RaceFigures figures{.opponent = opponent_name(),
                        .images = batch_.effective(),
                        .flops = 3.0 * static_cast<double>(flops_per_image(graph_)) *
                                 static_cast<double>(batch_.effective()),
                        .gemm_type = flags_.gemm_dtype()};
    // Not between the sides: whoever came next would find its caches emptied.
    measure_peak(figures);
    for (int i = -flags_.warmup; i < flags_.iterations; ++i) {
      if (i == 0) ours_->clear_costs();
      const double ours = take_turn(world_, [&] { ours_->step(); });
      const double theirs =
          figures.opponent.empty() ? 0 : take_turn(world_, opponent()) / opponents_share_;
      if (i < 0) continue;
      figures.ours.push_back(ours);
      if (!figures.opponent.empty()) figures.theirs.push_back(theirs);
    }
    measure_peak(figures);
    if (flags_.against_plain()) take_turn(world_, ask_plain("memory", figures.opponent_memory));
    figures.ranks = all_gather(
        world_, RankFigures{ours_->costs(), resident_bytes(world_.context()), session_.threads()});
    return figures;
  }

  /// A few more steps, watched on the first rank; its seconds and operators.
  std::pair<double, std::vector<OperatorProfile::Line>> profile() {
    std::optional<OperatorProfile> profile;
    if (session_.first()) profile.emplace();
    ours_->clear_costs();
    for (int i = 0; i < flags_.iterations; ++i) take_turn(world_, [&] { ours_->step(); });
    return {ours_->costs().seconds,
            profile ? profile->lines() : std::vector<OperatorProfile::Line>{}};
  }

 private:
  Work work() const {
    return share_work(layout_, batch_, flags_.training.schedule_kind(), world_.rank());
  }

  void add_opponent() {
    TrainerOptions options = options_;
    if (flags_.against == "design-1") {
      options.halo = {};
      theirs_.emplace(graph_, layout_, work(), options, world_);
    } else if (flags_.against == "other-size") {
      const double larger = pixels(flags_.model.model()) / pixels(flags_.other_model());
      opponents_steps_ = std::max(1, static_cast<int>(larger));
      opponents_share_ = opponents_steps_ / larger;
      other_graph_ = build_model(flags_.other_model());
      theirs_.emplace(*other_graph_, layout_, work(),
                      flags_.training.trainer_options(*other_graph_, layout_), world_);
    } else if (flags_.against == "one-rank") {
      options.cells = {{0, static_cast<int>(graph_.cells().size())}};
      alone_ = world_.split(session_.first() ? 0 : -1);
      if (alone_)
        theirs_.emplace(graph_, Layout(1, {Grid{}}), work_alone(batch_, options.stage.batch_norm),
                        options, *alone_);
    }
  }

  std::string opponent_name() const {
    if (flags_.against_plain()) return "plain libtorch";
    if (flags_.against == "nothing") return "";
    if (flags_.against == "other-size") return "other size";
    return flags_.against == "one-rank" ? "one rank" : "design 1";
  }

  /// The opponent's turn, where this rank takes part in it.
  std::function<void()> opponent() {
    if (theirs_)
      return [this] {
        for (int step = 0; step < opponents_steps_; ++step) theirs_->step();
      };
    if (plain_ && flags_.against_plain()) return [this] { plain_->ask("step"); };
    return nullptr;
  }

  void measure_peak(RaceFigures& figures) {
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) take_turn(world_, ask_plain("gemm", figures.gemm_gflops));
  }

  /// Asks for a number and keeps the largest.
  std::function<void()> ask_plain(const char* command, double& most) {
    if (!plain_) return nullptr;
    return [this, command, &most] { most = std::max(most, plain_->ask(command)); };
  }

  const Session& session_;
  const Communicator& world_;
  const RaceFlags& flags_;
  Layout layout_;
  Graph graph_;
  TrainerOptions options_;
  BatchShape batch_;
  std::vector<int> cores_;
  std::optional<Communicator> alone_;  // the first rank
  std::optional<Graph> other_graph_;
  int opponents_steps_ = 1;     // of a turn
  double opponents_share_ = 1;  // pixels of its turn, over those of ours
  std::optional<TrainingSide> ours_, theirs_;
  std::optional<PlainProcess> plain_;  // on the first rank
};

int run_bench_train(Session& session, const RaceFlags& flags) {
  session.doing("preparing the race");
  Race race(session, flags);
  session.doing("racing");
  const RaceFigures figures = race.run();
  nlohmann::ordered_json result = to_json(figures);
  if (session.first()) {
    std::printf("%s\n", race.describe().c_str());
    print(figures);
  }
  if (flags.profile) {
    session.doing("profiling");
    const auto [seconds, lines] = race.profile();
    if (session.first()) print(lines, flags.iterations, seconds);
    result["profile"] = to_json(lines, flags.iterations, seconds);
  }
  if (session.first() && !flags.json_file.empty()) write_json(flags.json_file, result);
  return 0;
}

}  // namespace

void add_bench_train(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<RaceFlags>();
  CLI::App* train = bench.add_subcommand(
      "train", "Time training in a layout, and in turns with it plain libtorch on the same cores");
  train->option_defaults()->always_capture_default();
  flags->model.add_to(*train);
  flags->training.add_layout_flags(*train);
  flags->training.add_learning_flags(*train);
  train
      ->add_option(
          "--against", flags->against,
          "plain: libtorch in one process on all cores of the ranks; one-rank: this "
          "system on the first rank alone, with its threads; design-1: this layout "
          "without --halo-D2; other-size: this layout with images of --other-size, as many steps "
          "as have the same pixels; nothing")
      ->check(CLI::IsMember({"plain", "one-rank", "design-1", "other-size", "nothing"}));
  default_in_words(
      train->add_option("--plain-dtype", flags->plain_dtype, "Type of numbers of plain libtorch")
          ->check(CLI::IsMember({"float64", "float32", "bfloat16"})),
      "as --dtype, but float32 for bfloat16");
  train->add_option("--other-size", flags->other_size, "Pixels of the opponent's images")
      ->default_str("");
  train->add_option("--warmup", flags->warmup, "Untimed steps of each side")->check(at_least(0));
  train->add_option("--iterations", flags->iterations, "Timed steps of each side")
      ->check(at_least(1));
  train->add_flag("--profile", flags->profile,
                  "Then show which operators the first rank spends its time in");
  train->add_option("--json", flags->json_file, "Write the result to this file");
  train->callback([flags, &chosen] {
    chosen.check = [flags](int ranks) {
      flags->check();
      const Layout layout(flags->training.parallel.options, ranks);
      build_model(flags->model.model());
    };
    chosen.run = [flags](Session& session) { return run_bench_train(session, *flags); };
  });
}

}  // namespace mpi4dl
