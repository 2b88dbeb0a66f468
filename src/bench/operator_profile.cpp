#include "bench/operator_profile.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns whether an operator computes nothing: it copies, joins, pads, fills or converts.
bool moves_data(const std::string& name) {
  static const std::set<std::string> movers{
      "aten::copy_",           "aten::cat",        "aten::_cat",
      "aten::constant_pad_nd", "aten::fill_",      "aten::zero_",
      "aten::clone",           "aten::contiguous", "aten::to",
      "aten::stack",           "aten::_to_copy",   "aten::slice_backward",
      "aten::repeat",          "aten::roll",       "aten::select_backward",
      "aten::resize_",         "aten::zeros",      "aten::pad",
      "aten::new_zeros"};
  return movers.contains(name);
}

}  // namespace

/// Times an operator under way.
struct OperatorProfile::Call : at::ObserverContext {
  Clock::time_point start;
  double inside = 0;  // seconds of operators that it has called
  Call* caller = nullptr;
};

thread_local OperatorProfile* OperatorProfile::current_ = nullptr;

OperatorProfile::OperatorProfile() {
  ensure(current_ == nullptr, "only one profile at a time");
  current_ = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

OperatorProfile::~OperatorProfile() {
  at::removeCallback(handle_);
  current_ = nullptr;
}

std::unique_ptr<at::ObserverContext> OperatorProfile::begin(const at::RecordFunction&) {
  auto call = std::make_unique<Call>();
  call->caller = std::exchange(current_->innermost_, call.get());
  call->start = Clock::now();
  return call;
}

void OperatorProfile::end(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* call = static_cast<Call*>(context);
  const double seconds = std::chrono::duration<double>(Clock::now() - call->start).count();
  current_->innermost_ = call->caller;
  if (call->caller != nullptr) call->caller->inside += seconds;
  Line& line = current_->lines_[function.name()];
  line.calls += 1;
  line.seconds += seconds - call->inside;
}

std::vector<OperatorProfile::Line> OperatorProfile::lines() const {
  std::vector<Line> all;
  for (const auto& [name, line] : lines_)
    all.push_back({name, line.calls, line.seconds, moves_data(name)});
  std::sort(all.begin(), all.end(),
            [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace mpi4dl
