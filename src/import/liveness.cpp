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

/// Returns the value that a call writes to: its first argument, or the one that it is to fill.
const Reference* written(const Call& call) {
  const Argument* to = call.find("out");
  if (to == nullptr && in_place(call) && !call.arguments.empty())
    to = &call.arguments.front().second;
  return to == nullptr ? nullptr : std::get_if<Reference>(&to->value);
}

Aliases aliases_of(const Program& program) {
  Aliases aliases;
  std::map<std::string, std::string> values;  // of tensors
  for (const auto& [value, tensor] : program.state)
    aliases.join(values.emplace(tensor, value).first->second, value);
  for (const Call& call : program.calls) {
    const TableRow* row = find_row(call);
    if (const Reference* to = written(call))
      for (const std::string& result : call.results) aliases.join(to->name, result);
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

std::vector<StateChange> state_changes(const Program& program, const std::vector<bool>& live) {
  Aliases aliases = aliases_of(program);
  std::map<std::string, std::string> tensors;
  for (const auto& [value, tensor] : program.state) tensors[aliases.first(value)] = tensor;
  std::map<std::string, const Call*> readers;  // of tensors
  for (size_t i = 0; i < program.calls.size(); ++i)
    for (const auto& [name, argument] : program.calls[i].arguments)
      if (live[i])
        each_name(argument, [&](const std::string& value) {
          if (const auto tensor = tensors.find(aliases.first(value)); tensor != tensors.end())
            readers.emplace(tensor->second, &program.calls[i]);
        });
  std::vector<StateChange> changes;
  for (const std::string& tensor : program.changed)
    if (!program.decomposed)  // whose norms are refused by themselves
      if (const auto reader = readers.find(tensor); reader != readers.end())
        changes.push_back({reader->second, tensor});
  for (const Call& call : program.calls) {
    const Reference* to = written(call);
    const auto tensor = to == nullptr ? tensors.end() : tensors.find(aliases.first(to->name));
    if (tensor != tensors.end() && readers.contains(tensor->second))
      changes.push_back({&call, tensor->second});
  }
  return changes;
}

}  // namespace mpi4dl
