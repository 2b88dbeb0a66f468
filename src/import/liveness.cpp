#include "import/liveness.hpp"

#include <map>
#include <set>
#include <string>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

/// Puts names into classes of those that may be one tensor in memory.
class Aliases {
 public:
  std::string first(const std::string& name) {
    const auto found = above_.find(name);
    return found == above_.end() ? name : above_[name] = first(found->second);
  }
  void join(const std::string& a, const std::string& b) {
    const std::string root = first(a), other = first(b);
    if (root != other) above_[other] = root;
  }

 private:
  std::map<std::string, std::string> above_;
};

/// Calls `act` with each name that an argument has.
template <typename Act>
void each_name(const Argument& argument, const Act& act) {
  if (const auto* one = std::get_if<Reference>(&argument.value)) act(one->name);
  if (const auto* list = std::get_if<Argument::List>(&argument.value))
    for (const Argument& item : *list) each_name(item, act);
}

Aliases aliases_of(const Program& program) {
  Aliases aliases;
  for (const Call& call : program.calls) {
    const TableRow* row = find_row(call);
    if (call.arguments.empty() || (!in_place(call) && (row == nullptr || !row->view))) continue;
    if (const auto* self = std::get_if<Reference>(&call.arguments.front().second.value))
      for (const std::string& result : call.results) aliases.join(self->name, result);
  }
  return aliases;
}

}  // namespace

bool in_place(const Call& call) {
  return call.target.size() > 1 && call.target.ends_with('_') && !call.target.ends_with("__");
}

std::vector<bool> live_calls(const Program& program) {
  Aliases aliases = aliases_of(program);
  std::set<std::string> read{aliases.first(program.result)};
  std::vector<bool> live(program.calls.size());
  for (size_t i = program.calls.size(); i-- > 0;) {
    const Call& call = program.calls[i];
    for (const std::string& result : call.results)
      if (read.contains(aliases.first(result))) live[i] = true;
    if (!live[i]) continue;
    for (const auto& [name, argument] : call.arguments)
      each_name(argument, [&](const std::string& value) { read.insert(aliases.first(value)); });
  }
  return live;
}

}  // namespace mpi4dl
