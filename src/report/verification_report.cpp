#include "report/verification_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "verify/comparison.hpp"

namespace mpi4dl {

nlohmann::ordered_json verification_report(const StepResult& result, const StepResult& expected,
                                           const Usage& used, const std::optional<Usage>& planned,
                                           double tolerance) {
  const Comparison comparison = compare(result, expected);
  const bool equal = comparison.max_relative_error <= tolerance && result.replicas_agree;
  nlohmann::ordered_json report{{"equal", equal},
                                {"loss", result.loss},
                                {"loss_one_rank", expected.loss},
                                {"max_relative_error", comparison.max_relative_error},
                                {"worst", comparison.worst},
                                {"replicas_agree", result.replicas_agree},
                                {"tolerance", tolerance},
                                {"messages", used.messages},
                                {"bytes", used.bytes},
                                {"peak_bytes", used.peak_bytes},
                                {"peak_bytes_one_rank", expected.peak_bytes}};
  if (planned) {
    report["messages_planned"] = planned->messages;
    report["bytes_planned"] = planned->bytes;
  }
  return report;
}

void print_verification(const std::string& title, const nlohmann::ordered_json& report) {
  const auto value = [&](const char* key) { return report[key].get<double>(); };
  const auto counted = [&](const std::string& key) {
    const std::string planned = key + "_planned";
    const std::string text = fmt::format("{}", report[key].get<int64_t>());
    return report.contains(planned)
               ? fmt::format("{} (planned {})", text, report[planned].get<int64_t>())
               : text;
  };
  fmt::print("{}\n", title);
  fmt::print("  loss                 {:.15g}\n", value("loss"));
  fmt::print("  loss on one rank     {:.15g}\n", value("loss_one_rank"));
  fmt::print("  messages sent        {}\n", counted("messages"));
  fmt::print("  bytes sent           {}\n", counted("bytes"));
  fmt::print("  most memory a rank   {:.1f} MiB (one rank alone {:.1f})\n",
             mebibytes(value("peak_bytes")), mebibytes(value("peak_bytes_one_rank")));
  const auto worst = report["worst"].get<std::string>();
  fmt::print("  max relative error   {:.3g}{}{}\n", value("max_relative_error"),
             worst.empty() ? "" : ", in the ", worst);
  if (!report["replicas_agree"].get<bool>())
    fmt::print("  ranks that hold the same parameters have different values of them\n");
  fmt::print("{}: tolerance {:g}\n",
             report["equal"].get<bool>() ? "equal to one rank" : "NOT EQUAL", value("tolerance"));
}

}  // namespace mpi4dl
