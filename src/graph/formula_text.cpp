#include "graph/formula_text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int kDeepest = 100;

/// Returns "1e20", which is a name too: without a plus sign.
std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  std::erase(text, '+');
  return text;
}

FormulaFunction function_named(const std::string& name) {
  const auto& words = kWords<FormulaFunction>;
  const auto found = std::ranges::find(words, name, &Word<FormulaFunction>::name);
  validate(found != words.end() && arguments_of(found->value).operands > 0,
           "there is no function {} that computes a weight", name);
  return found->value;
}

std::vector<int64_t> lengths(LineReader& words) {
  return read_list(words.name(), whole_number);
}

Formula read_operand(LineReader& words, int depth);

/// Reads what follows "mean(".
Formula read_call(LineReader& words, const std::string& name, int depth) {
  validate(depth < kDeepest, "a weight is computed in too many steps");
  const FormulaFunction function = function_named(name);
  const FormulaArguments arguments = arguments_of(function);
  std::vector<Formula> operands;
  for (int i = 0; i < arguments.operands; ++i) {
    if (i > 0) words.expect(',');
    operands.push_back(read_operand(words, depth + 1));
  }
  std::vector<int64_t> axes;
  double number = 0;
  if (arguments.lengths || arguments.axes) {
    words.expect(',');
    axes = lengths(words);
  }
  if (arguments.number) {
    words.expect(',');
    number = real_number(words.name());
  }
  words.expect(')');
  return arguments.lengths ? reshape_formula(std::move(operands[0]), axes)
                           : make_formula(function, std::move(operands), axes, number);
}

Formula read_operand(LineReader& words, int depth) {
  const bool frozen = words.take_word(kFrozen);
  const std::string name = words.name();
  if (words.take(':')) return parameter_formula(name, lengths(words), frozen);
  if (words.take('(')) return read_call(words, name, depth);
  return number_formula(real_number(name));
}

}  // namespace

std::string to_text(const Formula& formula) {
  const auto word =
      std::ranges::find(kWords<FormulaFunction>, formula.function, &Word<FormulaFunction>::value);
  if (formula.function == FormulaFunction::number) return number_text(formula.number);
  if (formula.function == FormulaFunction::parameter)
    return fmt::format("{}{}:{}", formula.frozen ? std::string(kFrozen) + " " : "",
                       name_text(formula.name), to_string(formula.shape));
  const FormulaArguments arguments = arguments_of(formula.function);
  std::vector<std::string> texts;
  for (const Formula& operand : formula.operands) texts.push_back(to_text(operand));
  if (arguments.lengths) texts.push_back(to_string(formula.shape));
  if (arguments.axes) texts.push_back(to_string(formula.axes));
  if (arguments.number) texts.push_back(number_text(formula.number));
  return fmt::format("{}({})", word->name, fmt::join(texts, ", "));
}

ParameterChoice read_choice(LineReader& words) {
  const bool frozen = words.take_word(kFrozen);
  const std::string name = words.name();
  if (!frozen && words.take('(')) return {.formula = read_call(words, name, 0)};
  return {.name = name, .frozen = frozen};
}

}  // namespace mpi4dl
