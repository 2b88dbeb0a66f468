#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/checks.hpp"
#include "cli/command_names.hpp"
#include "cli/config_file.hpp"
#include "cli/version_text.hpp"
#include "comm/session.hpp"

namespace mpi4dl {
namespace {

void list_below(const CLI::App& command, const std::string& prefix, std::string& text) {
  for (const CLI::App* below : command.get_subcommands({})) {
    const std::string name = prefix + below->get_name();
    if (command_names(*below).empty())
      text += fmt::format("  {:<26} {}\n", name, below->get_description());
    else
      list_below(*below, name + " ", text);
  }
}

/// Refuses what a shell variable that is not set leaves: "" for a path would mean none.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      validate(!value.empty(), "{} is given an empty value; leave the flag out, or give it one",
               option->get_name());
  for (const CLI::App* below : command.get_subcommands()) refuse_empty_values(*below);
}

void check_whole_numbers_of(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) check_whole_numbers(*option);
  for (const CLI::App* below : command.get_subcommands()) check_whole_numbers_of(*below);
}

/// Returns the first command of those below one that has a flag, or null.
const CLI::App* find_command_with(const std::string& flag, const CLI::App& command) {
  for (const CLI::App* below : command.get_subcommands({})) {
    if (below->get_option_no_throw(flag) != nullptr) return below;
    if (const CLI::App* found = find_command_with(flag, *below)) return found;
  }
  return nullptr;
}

bool lacks_command(const CLI::App& command) {
  return !command_names(command).empty();
}

std::string sentence_about_unknown(const CLI::App& command, const std::string& word) {
  const std::string name = full_name(command);
  const std::string flag = word.substr(0, word.find('='));
  const CLI::App* meant = lacks_command(command) ? find_command_with(flag, command) : nullptr;
  if (meant != nullptr)
    return fmt::format("{} needs a command before {}, such as {}", name, flag, full_name(*meant));
  if (word.starts_with("-"))
    return fmt::format("{} has no flag {}{}; see {} --help", name, flag,
                       suggestion(flag, flag_names(command)), name);
  if (lacks_command(command))
    return fmt::format("{} has no command {}{}", name, word,
                       suggestion(word, command_names(command)));
  return fmt::format("{} does not expect '{}'; see {} --help", name, word, name);
}

}  // namespace

CommandLine::CommandLine()
    : app_("Trains convolutional networks on images too large for one device, across MPI ranks.") {
  app_.name("mpi4dl");
  app_.require_subcommand(1);
  app_.fallthrough();
  app_.set_version_flag("--version", version_text);
  app_.add_option("--timeout", session_.timeout_seconds,
                  "Seconds that a rank waits for another before the job ends")
      ->check(more_than(0))
      ->capture_default_str();
  app_.add_option(
          "--allocator", allocator_,
          "Allocator of tensors: caching keeps freed blocks, in huge pages; system is malloc")
      ->check(CLI::IsMember({"caching", "system"}))
      ->capture_default_str();
  add_device_flags();
  app_.set_config("--config", "", "Read flags from this file: [train] batch-size=4");
  app_.config_formatter(std::make_shared<ConfigFile>(app_));
  add_commands();
}

void CommandLine::add_device_flags() {
  app_.option_defaults()->group("Device");
  app_.add_option("--device", device_,
                  "Where to compute: cpu, cuda (a rank takes one by its place on the node), cuda:0 "
                  "..., or auto: an accelerator where there is one and the command computes")
      ->capture_default_str();
  app_.add_option(
          "--backend", session_.backend,
          "Who computes: cpu, our kernels; composed, libtorch's operators; auto: cpu on the "
          "cpu, composed on a device")
      ->check(CLI::IsMember({"auto", "cpu", "composed"}))
      ->capture_default_str();
  app_.add_option("--device-transport", transport_,
                  "How halos of a device travel: through host memory, or by an mpi that reads "
                  "memory of the device; auto: host")
      ->check(CLI::IsMember({"auto", "host", "mpi"}))
      ->capture_default_str();
  app_.add_flag("--tf32", arithmetic_.tf32,
                "On a device, multiply float32 with the 10 bits of TensorFloat32");
  app_.add_flag("--deterministic", arithmetic_.deterministic,
                "Compute the same bits in every run, as the cpu always does; libtorch warns of "
                "operators of a device that cannot");
  app_.option_defaults()->group("Options");
}

/// Takes no device unasked where nothing is computed on it.
std::string CommandLine::device() const {
  constexpr std::array<std::string_view, 5> kComputing{"train", "evaluate", "predict", "verify",
                                                       "bench"};
  if (device_ != "auto") return device_;
  const std::string command = app_.get_subcommands().at(0)->get_name();
  const bool computes = std::ranges::find(kComputing, command) != kComputing.end();
  return computes && session_.backend != "cpu" ? "auto" : "cpu";
}

bool CommandLine::takes_device_by_place() const {
  return device_.find(':') == std::string::npos;
}

SessionOptions CommandLine::session_options(const Launch& launch) const {
  SessionOptions options = session_;
  options.device = choose_device(device(), launch.local_rank);
  const bool on_cpu = options.device.is_cpu();
  validate(!on_cpu || transport_ == "auto",
           "--device-transport {} is about halos of a device, but this run computes on the cpu",
           transport_);
  validate(!on_cpu || !arithmetic_.tf32,
           "--tf32 is about products on a device, but this run computes on the cpu");
  options.device_aware_mpi = transport_ == "mpi";
  return options;
}

void CommandLine::add_commands() {
  add_train(app_, chosen_);
  add_evaluate(app_, chosen_);
  add_predict(app_, chosen_);
  add_plan(app_, chosen_);
  add_export(app_, chosen_);
  add_import(app_, chosen_);
  add_verify(app_, chosen_);
  CLI::App* data = app_.add_subcommand("data", "Make data sets and look at them");
  data->require_subcommand(1);
  add_make_glyphs(*data, chosen_);
  add_make_megapixel_mnist(*data, chosen_);
  add_cut_patches(*data, chosen_);
  add_data_inspect(*data, chosen_);
  CLI::App* bench = app_.add_subcommand("bench", "Measure this machine and this system");
  bench->require_subcommand(1);
  add_bench_halo(*bench, chosen_);
  add_bench_train(*bench, chosen_);
}

std::optional<int> CommandLine::parse(int argc, char** argv, const Launch& launch) {
  if (argc > 1 && std::string(argv[1]) == "help") return show_help(argc, argv, launch);
  try {
    app_.parse(argc, argv);
    check_whole_numbers_of(app_);
  } catch (const CLI::Success& help) {
    if (const auto unknown = app_.remaining(/*recurse=*/true); !unknown.empty())
      throw UsageError(sentence_about_unknown(innermost(app_), unknown[0]));
    return launch.rank == 0 ? app_.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    explain(error, launch);
  }
  refuse_empty_values(app_);
  return std::nullopt;
}

std::string CommandLine::list_of_commands() const {
  std::string text = "Commands, each with a --help of its own:\n";
  list_below(app_, "", text);
  return text;
}

/// Lists the commands for `mpi4dl help`; `mpi4dl help bench halo` is `mpi4dl bench halo --help`.
std::optional<int> CommandLine::show_help(int argc, char** argv, const Launch& launch) {
  const CLI::App* command = &app_;
  for (int i = 2; i < argc; ++i) {
    const auto names = command_names(*command);
    const auto found = std::find(names.begin(), names.end(), argv[i]);
    validate(found != names.end(), "{} has no command {}{}; see mpi4dl help", full_name(*command),
             argv[i], suggestion(argv[i], names));
    command = command->get_subcommand(*found);
  }
  if (launch.rank != 0) return 0;
  fmt::print("{}", command == &app_ ? app_.get_description() + "\n\n" + list_of_commands()
                                    : command->help(full_name(*command->get_parent())));
  return 0;
}

/// CLI11 says what is missing before it says what it did not understand, though a typing error is
/// often the reason for both.
std::string CommandLine::sentence_about(const CLI::ParseError& error) const {
  const CLI::App& command = innermost(app_);
  const std::vector<std::string> unknown = app_.remaining(/*recurse=*/true);
  if (!unknown.empty()) return sentence_about_unknown(command, unknown[0]);
  if (!lacks_command(command))
    return fmt::format("{}; see {} --help", in_plain_words(error), full_name(command));
  return fmt::format("{} needs a command: {}", full_name(command),
                     CLI::detail::join(command_names(command), ", "));
}

void CommandLine::explain(const CLI::ParseError& error, const Launch& launch) const {
  const auto config_file = [&] { return app_.get_config_ptr()->as<std::string>(); };
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr)
    throw ConfigFileError(fmt::format("--config {}, {}", config_file(), error.what()));
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr)
    throw ConfigFileError(fmt::format("--config {}: {}", config_file(),
                                      std::filesystem::is_directory(config_file())
                                          ? "this is a folder, not a file"
                                          : "there is no such file"));
  if (launch.rank == 0 && lacks_command(innermost(app_)))
    fmt::print(stderr, "{}\n", list_of_commands());
  throw UsageError(sentence_about(error));
}

}  // namespace mpi4dl
