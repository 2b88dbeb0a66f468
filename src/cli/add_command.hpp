#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <type_traits>

#include "cli/commands.hpp"
#include "comm/session.hpp"

namespace mpi4dl {

/// NewCommand is a command that was just added, to which its flags are to be added. Both live as
/// long as the command line.
template <typename Flags>
struct NewCommand {
  CLI::App& app;
  Flags& flags;
};

/// Adds a command below `above`, and sets `chosen` when it is used. `run`: (Session&, Flags&), or
/// (Session&, Flags&, CLI::App&) with the command as it was parsed, -> exit code. For `check` see
/// Command.
template <typename Flags, typename Run>
NewCommand<Flags> add_command(
    CLI::App& above, Command& chosen, const std::string& name, const std::string& help, Run run,
    void (*check)(const Flags&, int ranks) = [](const Flags&, int) {}) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = above.add_subcommand(name, help);
  app->option_defaults()->always_capture_default();
  app->callback([=, &chosen] {
    chosen.check = [=](int ranks) { check(*flags, ranks); };
    chosen.run = [=](Session& session) {
      if constexpr (std::is_invocable_v<Run, Session&, Flags&, CLI::App&>)
        return run(session, *flags, *app);
      else
        return run(session, *flags);
    };
  });
  return {*app, *flags};
}

}  // namespace mpi4dl
