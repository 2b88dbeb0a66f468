#include "report/confusion_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mpi4dl {

std::string confusion_table(const Metrics& metrics, const std::vector<std::string>& names) {
  size_t row = 8, column = 7;  // at least
  for (const std::string& name : names) {
    row = std::max(row, name.size());
    column = std::max(column, name.size() + 3);
  }
  std::string text = fmt::format("{:>{}}", "label", row);
  for (const std::string& name : names) text += fmt::format(" {:>{}}", "as " + name, column);
  text += fmt::format(" {:>9}\n", "AUC");
  for (size_t label = 0; label < names.size(); ++label) {
    text += fmt::format("{:>{}}", names[label], row);
    for (const int64_t count : metrics.confusion[label])
      text += fmt::format(" {:>{}}", count, column);
    const std::optional<double> area = metrics.auc.empty() ? std::nullopt : metrics.auc[label];
    text += fmt::format(" {:>9}\n", area ? fmt::format("{:.4f}", *area) : "-");
  }
  return text;
}

}  // namespace mpi4dl
