#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "bench/training_benchmark.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "cli/device_memory.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "data/image_size.hpp"
#include "report/json_file.hpp"

namespace mpi4dl {
namespace {

const std::map<std::string, Against> kAgainst{{"baseline", Against::baseline},
                                              {"one-rank", Against::one_rank},
                                              {"design-1", Against::design_1},
                                              {"other-size", Against::other_size},
                                              {"nothing", Against::nothing}};
// The baseline's earlier name, which files for --config may still have.
const std::map<std::string, std::string> kFormerNames{{"plain", "baseline"}};

struct BenchTrainFlags {
  ModelFlags model;
  TrainingFlags training;
  std::string against = "baseline";
  std::string baseline_dtype;  // empty: as --dtype, but float32 for bfloat16
  std::string other_size;
  int warmup = 2;
  int iterations = 5;
  bool profile = false;
  std::string json_file;

  bool against_baseline() const { return kAgainst.at(against) == Against::baseline; }
  TrainingBenchmarkOptions options(const Layout& layout) const;
};

TrainingBenchmarkOptions BenchTrainFlags::options(const Layout& layout) const {
  const bool half = training.dtype == "bfloat16";
  TrainingBenchmarkOptions options{
      .graph = training.tuning.frozen(model.build().graph),
      .model = model.options,
      .batch = training.batch_shape(layout),
      .schedule = training.schedule_kind(),
      .against = kAgainst.at(against),
      .baseline_dtype = !baseline_dtype.empty() ? baseline_dtype
                        : half                  ? "float32"
                                                : training.dtype,
      .gemm_dtype = half ? "bfloat16" : "float32",  // oneDNN has no float64
      .warmup = warmup,
      .iterations = iterations};
  options.model.image = options.graph.shape(options.graph.input()).space;
  options.trainer = training.trainer_options(options.graph, layout);
  if (options.against == Against::other_size) {
    const ImageSize size = parse_image_size("--other-size", other_size);
    options.other_graph = training.tuning.frozen(model.build({size.height, size.width}).graph);
    options.other_trainer = training.trainer_options(*options.other_graph, layout);
  }
  return options;
}

void check_bench_train(const BenchTrainFlags& flags, int ranks) {
  flags.training.check();
  validate(flags.against != "design-1" || flags.training.parallel.halo.fused,
           "--against design-1 requires --halo-D2");
  validate(flags.baseline_dtype.empty() || flags.against_baseline(),
           "--baseline-dtype {} requires --against baseline, not {}", flags.baseline_dtype,
           flags.against);
  validate(flags.other_size.empty() == (flags.against != "other-size"),
           "--against other-size and --other-size, which says what size, go together");
  const std::string& name = flags.model.options.name;
  validate(!flags.against_baseline() || name == "resnet" || name == "amoebanet",
           "the baseline has no model '{}'; use --against one-rank", name);
  const Layout layout(flags.training.parallel.options, ranks);
  OptimizerOptions options;
  flags.training.tuning.set(options, flags.training.tuning.frozen(flags.model.build().graph));
}

std::string describe(const TrainingBenchmark& benchmark, const BenchTrainFlags& flags,
                     const Layout& layout, const TrainingBenchmarkOptions& options,
                     const Backend& backend) {
  const int ranks = layout.replicas() * layout.group_size();
  std::string text = fmt::format(
      "{}, {} parameters, images {}, effective batch {}, {} on {} rank{}\n{}\n",
      flags.model.options.name, benchmark.graph().parameter_count(),
      image_size_text(benchmark.graph()), options.batch.effective(), flags.training.dtype, ranks,
      ranks == 1 ? "" : "s",
      describe_layout(benchmark.graph(), layout, options.trainer.cells, flags.training));
  const size_t cores = benchmark.cores().size();
  const std::string on_device = backend.on_host() ? "" : ", on " + backend.device().str();
  if (flags.against_baseline())
    text += fmt::format(
        "baseline: libtorch alone, {}, NCHW, default allocator, one process, {} thread{}{}\n",
        options.baseline_dtype, cores, cores == 1 ? "" : "s", on_device);
  const int steps = benchmark.other_steps();
  if (flags.against == "other-size")
    text += fmt::format("other size: images {}, {} step{} a round\n", flags.other_size, steps,
                        steps == 1 ? "" : "s");
  return text;
}

int run_bench_train(Session& session, const BenchTrainFlags& flags) {
  session.doing("preparing the benchmark");
  const Layout layout(flags.training.parallel.options, session.world().size());
  const TrainingBenchmarkOptions options = flags.options(layout);
  TrainingBenchmark benchmark(session, layout, options);
  session.doing("timing training steps");
  const TrainingFigures figures = benchmark.run();
  nlohmann::ordered_json result = to_json(figures);
  if (session.first()) {
    fmt::print("{}\n",
               describe(benchmark, flags, layout, options, *session.world().context().backend));
    print(figures);
  }
  if (flags.profile) {
    session.doing("profiling");
    const auto [seconds, lines] = benchmark.profile();
    if (session.first()) print(lines, flags.iterations, seconds);
    result["profile"] = to_json(lines, flags.iterations, seconds);
  }
  if (session.first() && !flags.json_file.empty()) write_json(flags.json_file, result);
  return 0;
}

}  // namespace

void add_bench_train(CLI::App& bench, Command& chosen) {
  auto [train, flags] = add_command<BenchTrainFlags>(
      bench, chosen, "train",
      "Time training steps of a layout, alternating with a libtorch baseline on the same cores",
      [](Session& session, const BenchTrainFlags& given) {
        return with_planned_memory(
            session, [&] { return given.model.build().graph; }, given.training,
            [&] { return run_bench_train(session, given); });
      },
      check_bench_train);
  flags.model.add_to(train);
  flags.training.add_layout_flags(train);
  flags.training.add_learning_flags(train);
  train
      .add_option(
          "--against", flags.against,
          "What to alternate with. baseline: libtorch in one process on all cores of the ranks; "
          "one-rank: this system on the first rank alone, with its threads; design-1: this layout "
          "without --halo-D2; other-size: this layout with images of --other-size, as many steps "
          "as have the same pixels; nothing")
      ->check(CLI::IsMember(kAgainst))
      ->transform(CLI::Transformer(kFormerNames).description(""));
  default_in_words(train
                       .add_option("--baseline-dtype,--plain-dtype", flags.baseline_dtype,
                                   "Data type of the baseline's tensors")
                       ->check(CLI::IsMember({"float64", "float32", "bfloat16"})),
                   "as --dtype, but float32 for bfloat16");
  train.add_option("--other-size", flags.other_size, "Image size of --against other-size")
      ->default_str("");
  train.add_option("--warmup", flags.warmup, "Untimed steps of each side")->check(at_least(0));
  train.add_option("--iterations", flags.iterations, "Timed steps of each side")
      ->check(at_least(1));
  train.add_flag("--profile", flags.profile,
                 "Then profile some more steps: time by operator on the first rank");
  train.add_option("--json", flags.json_file, "Write the result to this file");
}

}  // namespace mpi4dl
