#include "import/cells.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kUsualCells = 16;
/// A module with less than this share of a cell's work is no cell of its own.
constexpr int64_t kSmallShare = 4;

/// Is a run of nodes, [begin, end).
struct Run {
  std::string module;  ///< empty for nodes of no module that is small enough
  size_t begin, end;
  int64_t work;
};

/// Returns "layer1" and "layer1.0" for "layer1.0".
std::vector<std::string> prefixes(const std::string& path) {
  std::vector<std::string> found;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    found.push_back(path.substr(0, dot));
  if (!path.empty()) found.push_back(path);
  return found;
}

class CellCutter {
 public:
  explicit CellCutter(const Draft& draft) : draft_(draft) {
    double work = 0;
    for (const DraftNode& node : draft.nodes) work += static_cast<double>(draft.flops(node));
    validate(work <= kMostOperations, "it would take {:.3g} operations an image", work);
    for (const DraftNode& node : draft.nodes) {
      work_of_.push_back(draft.flops(node));
      all_work_ += work_of_.back();
      const std::vector<std::string> modules = prefixes(node.module);
      for (size_t i = 0; i < modules.size(); ++i) {
        work_[modules[i]] += work_of_.back();
        if (i + 1 < modules.size()) has_parts_.insert(modules[i]);
      }
    }
  }

  /// Returns runs of nodes, each the largest module with at most so much work.
  std::vector<Run> runs(int64_t most) const {
    std::vector<Run> found;
    for (size_t id = 1; id < draft_.nodes.size(); ++id) {
      const std::string module = cell_of(draft_.nodes[id].module, most);
      if (found.empty() || found.back().module != module) found.push_back({module, id, id, 0});
      found.back().end = id + 1;
      found.back().work += work_of_[id];
    }
    return join_small(std::move(found), most);
  }

  std::vector<Run> usual_runs() const { return runs(all_work_ / kUsualCells); }

  /// Returns about so many: smaller modules until there are enough, then the smallest neighbours
  /// together.
  std::vector<Run> about(int count) const {
    std::vector<Run> found;
    for (int64_t parts = 1; parts <= 4096; parts *= 2) {
      found = runs(all_work_ / (count * parts));
      if (static_cast<int>(found.size()) >= count) break;
    }
    while (static_cast<int>(found.size()) > count) join_lightest(found);
    return found;
  }

 private:
  /// Returns the outermost module of a path that has at most so much work. One that has more, and
  /// no modules in it, is a cell all the same.
  std::string cell_of(const std::string& path, int64_t most) const {
    for (const std::string& module : prefixes(path))
      if (work_.at(module) <= most) return module;
    return has_parts_.contains(path) ? std::string() : path;
  }

  /// Joins what belongs to no module, or has little work, with the next run; at the end with the
  /// one before.
  static std::vector<Run> join_small(std::vector<Run> runs, int64_t most) {
    std::vector<Run> kept;
    for (size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      const bool small = run.module.empty() || run.work < most / kSmallShare;
      if (!small || (i + 1 == runs.size() && kept.empty())) {
        kept.push_back(std::move(run));
      } else if (i + 1 < runs.size()) {
        runs[i + 1].begin = run.begin;
        runs[i + 1].work += run.work;
        if (runs[i + 1].module.empty()) runs[i + 1].module = run.module;
      } else {
        kept.back().end = run.end;
        kept.back().work += run.work;
      }
    }
    return kept;
  }

  static void join_lightest(std::vector<Run>& runs) {
    size_t best = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i + 1 < runs.size(); ++i)
      if (const int64_t work = runs[i].work + runs[i + 1].work; work < least) {
        least = work;
        best = i;
      }
    Run& first = runs[best];
    const Run& second = runs[best + 1];
    if (second.work > first.work) first.module = second.module;
    first.end = second.end;
    first.work = least;
    runs.erase(runs.begin() + static_cast<int64_t>(best) + 1);
  }

  const Draft& draft_;
  std::vector<int64_t> work_of_;
  std::map<std::string, int64_t> work_;  // of a module and all in it
  std::set<std::string> has_parts_;
  int64_t all_work_ = 0;
};

/// Gives out names that no other has.
class UniqueNames {
 public:
  std::string next(const std::string& name) {
    std::string found = name;
    for (int& number = numbers_[name]; !names_.insert(found).second; ++number)
      found = fmt::format("{}_{}", name, number + 2);
    return found;
  }

 private:
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;  // how many have been tried
};

/// Returns the name of a node below its cell: the rest of its module's path, or of its value in the
/// file where it is the cell's own.
std::string name_below(const std::string& cell, const DraftNode& node) {
  if (node.module.empty() || node.module == cell) return node.label;
  return node.module.starts_with(cell + ".") ? node.module.substr(cell.size() + 1) : node.module;
}

}  // namespace

Graph cut_into_cells(const Draft& draft, int cells) {
  const CellCutter cutter(draft);
  const std::vector<Run> runs = cells > 0 ? cutter.about(cells) : cutter.usual_runs();
  Graph graph(draft.nodes.front().shape);
  std::vector<Value> values{graph.input()};
  UniqueNames cell_names;
  for (const Run& run : runs) {
    const std::string cell = cell_names.next(run.module.empty() ? "model" : run.module);
    graph.begin_cell(cell);
    UniqueNames names;
    for (size_t id = run.begin; id < run.end; ++id) {
      const DraftNode& node = draft.nodes[id];
      std::vector<Value> inputs;
      for (const int input : node.inputs) inputs.push_back(values[input]);
      values.push_back(
          graph.add(names.next(name_below(run.module, node)), node.op, inputs, node.parameters));
    }
  }
  graph.set_output(values[draft.output]);
  return graph;
}

}  // namespace mpi4dl
