#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/nearest_name.hpp"
#include "base/trimmed.hpp"
#include "base/utf8.hpp"
#include "cli/checks.hpp"
#include "cli/command_names.hpp"

namespace mpi4dl {
namespace {

[[noreturn]] void complain(int line, const std::string& problem) {
  throw CLI::ConfigError(fmt::format("line {}: {}", line, problem), CLI::ExitCodes::ConfigError);
}

bool is_text(const std::string& line) {
  return std::none_of(line.begin(), line.end(),
                      [](unsigned char c) { return c < ' ' && c != '\t' && c != '\r'; });
}

/// Removes the comment, which begins with # or ; at the line's begin or behind a blank.
std::string without_comment(const std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    const bool begins = i == 0 || std::isspace(static_cast<unsigned char>(line[i - 1])) != 0;
    if (!quoted && begins && (line[i] == '#' || line[i] == ';')) return line.substr(0, i);
  }
  return line;
}

std::string unquoted(const std::string& value, int line) {
  if (value.empty() || value.front() != '"') return value;
  if (value.size() < 2 || value.find('"', 1) != value.size() - 1)
    complain(line, fmt::format("{} has no closing quote at its end", value));
  return value.substr(1, value.size() - 2);
}

/// Finds a command by its section: [train], and [bench.halo] or [bench halo].
CLI::App& find_command(CLI::App& app, std::string section, int line) {
  CLI::App* command = &app;
  std::replace(section.begin(), section.end(), ' ', '.');
  for (const std::string& name : CLI::detail::split(section, '.')) {
    const std::vector<std::string> names = command_names(*command);
    if (std::find(names.begin(), names.end(), name) == names.end())
      complain(line, fmt::format("[{}] is not a command{}", section, suggestion(name, names)));
    command = command->get_subcommand(name);
  }
  return *command;
}

CLI::Option& find_option(CLI::App& command, const std::string& key, int line) {
  if (CLI::Option* option = command.get_option_no_throw("--" + key))
    if (option->get_configurable()) return *option;
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (option->get_configurable())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  const std::string near = suggestion(key, names);
  const bool above_sections = command.get_parent() == nullptr;
  if (above_sections && near.empty())
    complain(line, fmt::format("{} is not a flag of every command; flags of one command stand in "
                               "its section, such as [train]",
                               key));
  complain(line, fmt::format("{} has no flag {}{}", full_name(command), key, near));
}

void assign(CLI::Option& option, const std::string& value, int line) {
  const bool is_switch = option.get_expected_max() == 0;
  if (is_switch && value != "true" && value != "false")
    complain(line,
             fmt::format("{} is a switch: true or false, not {}", option.get_lnames()[0], value));
  if (is_switch && value == "false") return;
  try {
    option.add_result(value);
    option.run_callback();
    check_whole_numbers(option);
  } catch (const CLI::ParseError& error) {
    complain(line, in_plain_words(error));
  }
}

/// Returns whether a value needs quotes to be read as it is.
bool needs_quotes(const std::string& value) {
  return value != trimmed(value) || value.find_first_of("#;") != std::string::npos ||
         value.starts_with('"');
}

/// Writes the flags of one command that were given, a line each.
std::string lines_of(const CLI::App& command, const std::vector<std::string>& left_out) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty() || !option->get_configurable())
      continue;
    const std::string& key = option->get_lnames()[0];
    if (std::find(left_out.begin(), left_out.end(), key) != left_out.end()) continue;
    const std::string value = option->get_expected_max() == 0
                                  ? "true"
                                  : CLI::detail::join(option->reduced_results(), ",");
    const char* quote = needs_quotes(value) ? "\"" : "";
    text += fmt::format("{} = {}{}{}\n", key, quote, value, quote);
  }
  return text;
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& in) const {
  CLI::App* command = &app_;
  std::set<const CLI::Option*> seen;
  std::string raw;
  for (int line = 1; std::getline(in, raw); ++line) {
    if (line == 1 && raw.starts_with(kByteOrderMark)) raw.erase(0, kByteOrderMark.size());
    if (!is_text(raw)) complain(line, "this is not a text file");
    const std::string text = trimmed(without_comment(raw));
    if (text.empty()) continue;
    if (text.front() == '{')
      complain(line,
               "this looks like JSON; write lines such as batch-size = 4 in sections such as "
               "[train]");
    if (text.front() == '[') {
      if (text.back() != ']') complain(line, fmt::format("{} has no closing bracket", text));
      command = &find_command(app_, trimmed(text.substr(1, text.size() - 2)), line);
      continue;
    }
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      complain(line, fmt::format("'{}' is neither a section such as [train] nor a flag such as "
                                 "batch-size = 4",
                                 text.substr(0, 60)));
    CLI::Option& option = find_option(*command, trimmed(text.substr(0, equals)), line);
    if (!seen.insert(&option).second)
      complain(line, fmt::format("{} stands here a second time", option.get_lnames()[0]));
    // An option that is not empty was given on the command line, which goes before the file.
    const std::string value = unquoted(trimmed(text.substr(equals + 1)), line);
    if (value.empty()) complain(line, fmt::format("{} has no value", option.get_lnames()[0]));
    if (option.empty()) assign(option, value, line);
  }
  return {};
}

std::string ConfigFile::to_config(const CLI::App* app, bool /*defaults*/, bool /*descriptions*/,
                                  std::string /*prefix*/) const {
  return given_flags(*app, {});
}

const CLI::App& program_of(const CLI::App& command) {
  const CLI::App* app = &command;
  while (app->get_parent() != nullptr) app = app->get_parent();
  return *app;
}

std::string given_flags(const CLI::App& command, const std::vector<std::string>& left_out) {
  const CLI::App& program = program_of(command);
  if (&command == &program) return lines_of(program, left_out);
  std::string name = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != &program; above = above->get_parent())
    name = above->get_name() + "." + name;
  return lines_of(program, left_out) + "[" + name + "]\n" + lines_of(command, left_out);
}

}  // namespace mpi4dl
