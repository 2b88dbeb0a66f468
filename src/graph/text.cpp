#include "graph/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "graph/formula_text.hpp"
#include "graph/line_reader.hpp"

namespace mpi4dl {
namespace {

constexpr std::string_view kOutput = "output", kCell = "cell", kInput = "input", kWith = "with";

/// Returns "global_average_pooling".
std::string kind_text(std::string_view kind) {
  std::string text(kind);
  std::ranges::replace(text, ' ', '_');
  return text;
}

// Values of options.

std::string value_text(int64_t value) {
  return fmt::format("{}", value);
}
std::string value_text(double value) {
  return fmt::format("{}", value);
}
std::string value_text(bool value) {
  return value ? "true" : "false";
}
std::string value_text(const Extents& values) {
  return to_string(values);
}
std::string value_text(const Shape& shape) {
  return to_string(shape);
}
std::string value_text(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, "x"));
}
template <typename E>
  requires std::is_enum_v<E>
std::string value_text(E value) {
  static_assert(!kWords<E>.empty(), "its values have no words");
  const auto found = std::ranges::find(kWords<E>, value, &Word<E>::value);
  ensure(found != kWords<E>.end(), "an option has the value {}, for which there is no word",
         static_cast<int64_t>(value));
  return std::string(found->name);
}

void read_value(std::string_view text, int64_t& value) {
  value = whole_number(text);
}
void read_value(std::string_view text, double& value) {
  value = real_number(text);
}
void read_value(std::string_view text, bool& value) {
  validate(text == "true" || text == "false", "'{}' is neither true nor false", std::string(text));
  value = text == "true";
}
void read_value(std::string_view text, Extents& values) {
  values = read_list(text, whole_number);
}
void read_value(std::string_view text, std::vector<double>& values) {
  values = read_list(text, real_number);
}
void read_value(std::string_view text, Shape& shape) {
  const auto lengths = read_list(text, whole_number);
  shape = {lengths.front(), {lengths.begin() + 1, lengths.end()}};
}
template <typename E>
  requires std::is_enum_v<E>
void read_value(std::string_view text, E& value) {
  static_assert(!kWords<E>.empty(), "its values have no words");
  const auto found = std::ranges::find(kWords<E>, text, &Word<E>::name);
  std::vector<std::string_view> names;
  for (const Word<E>& word : kWords<E>) names.push_back(word.name);
  validate(found != kWords<E>.end(), "'{}' is none of {}", std::string(text),
           fmt::join(names, ", "));
  value = found->value;
}

// Operators.

template <typename Op>
std::string options_text(const Op& op) {
  std::string text;
  const Op usual{};
  const auto add = [&](const auto& field) {
    if (op.*field.member != usual.*field.member)
      text += fmt::format(" {}={}", field.name, value_text(op.*field.member));
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, Op::kFields);
  return text;
}

template <typename Op>
void read_option(Op& op, const std::string& name, std::string_view text) {
  bool known = false;
  const auto try_field = [&](const auto& field) {
    if (field.name != name) return;
    read_value(text, op.*field.member);
    known = true;
  };
  std::apply([&](const auto&... field) { (try_field(field), ...); }, Op::kFields);
  validate(known, "{} has no option {}", Op::kName, name);
}

template <size_t... index>
std::optional<Operator> operator_named(const std::string& kind,
                                       std::index_sequence<index...> /**/) {
  std::optional<Operator> found;
  const auto try_kind = [&]<typename Op>(Op op) {
    if (kind_text(Op::kName) == kind) found = op;
  };
  (try_kind(std::variant_alternative_t<index, Operator>{}), ...);
  return found;
}

Operator operator_named(const std::string& kind) {
  const auto found =
      operator_named(kind, std::make_index_sequence<std::variant_size_v<Operator>>());
  validate(found.has_value(), "there is no operator {}", kind);
  return *found;
}

std::string parameters_text(const Graph& graph, const Node& node) {
  Shapes shapes;
  for (const int id : node.inputs) shapes.push_back(graph.node(id).shape);
  const std::vector<Parameter> usual = parameters(node.op, shapes);
  std::vector<std::string> texts;
  size_t needed = 0;
  for (size_t i = 0; i < usual.size(); ++i) {
    const NodeWeight& weight = node.weights[i];
    const bool frozen = weight.parameter.kind == ParameterKind::frozen;
    texts.push_back(weight.formula ? to_text(*weight.formula)
                                   : (frozen ? std::string(kFrozen) + " " : "") +
                                         name_text(weight.parameter.name));
    if (frozen || weight.formula || weight.parameter.name != node.name + "." + usual[i].name)
      needed = i + 1;
  }
  texts.resize(needed);
  return texts.empty() ? "" : fmt::format(" {} {}", kWith, fmt::join(texts, ", "));
}

// Graphs.

class GraphReader {
 public:
  void read_line(const std::string& line) {
    LineReader words(line);
    if (words.at_end()) return;
    if (!graph_) return read_input(words);
    if (words.take_word(kCell)) {
      cell_ = words.name();
      graph_->begin_cell(cell_);
    } else if (words.take_word(kOutput)) {
      graph_->set_output(value(words.name()));
      has_output_ = true;
    } else {
      read_node(words);
    }
    validate(words.at_end(), "there is more than there should be");
  }

  Graph finish() {
    validate(graph_.has_value(), "it has no input");
    validate(has_output_, "it has no output");
    return std::move(*graph_);
  }

 private:
  void read_input(LineReader& words) {
    validate(words.take_word(kInput), "it does not begin with the input");
    Input input;
    read_value(words.word(), input.shape);
    graph_.emplace(input.shape);
    values_.emplace("input", graph_->input());
  }

  Value value(const std::string& name) const {
    const auto found = values_.find(name);
    validate(found != values_.end(), "there is no node {} before this line", name);
    return found->second;
  }

  void read_node(LineReader& words) {
    const std::string name = words.name();
    validate(name.starts_with(cell_ + "."), "{} is not in cell {}", name, cell_);
    words.expect('=');
    Operator op = operator_named(words.name());
    std::vector<Value> inputs;
    words.expect('(');
    do inputs.push_back(value(words.name()));
    while (words.take(','));
    words.expect(')');
    std::vector<ParameterChoice> parameters;
    while (!words.at_end() && parameters.empty())
      if (words.take_word(kWith))
        parameters = read_parameters(words);
      else
        read_option(words, op);
    values_.emplace(name, graph_->add(name.substr(cell_.size() + 1), op, inputs, parameters));
  }

  static void read_option(LineReader& words, Operator& op) {
    const std::string name = words.name();
    words.expect('=');
    const std::string_view text = words.word();
    std::visit([&](auto& its) { mpi4dl::read_option(its, name, text); }, op);
  }

  static std::vector<ParameterChoice> read_parameters(LineReader& words) {
    std::vector<ParameterChoice> choices;
    do choices.push_back(read_choice(words));
    while (words.take(','));
    return choices;
  }

  std::optional<Graph> graph_;
  std::map<std::string, Value> values_;
  std::string cell_;
  bool has_output_ = false;
};

}  // namespace

std::string to_text(const Graph& graph, const Node& node) {
  if (const auto* input = std::get_if<Input>(&node.op))
    return fmt::format("{} {}", kInput, value_text(input->shape));
  std::vector<std::string> inputs;
  for (const int id : node.inputs) inputs.push_back(name_text(graph.node(id).name));
  const std::string options = std::visit([](const auto& op) { return options_text(op); }, node.op);
  return fmt::format("{} = {}({}){}{}", name_text(node.name), kind_text(kind(node.op)),
                     fmt::join(inputs, ", "), options, parameters_text(graph, node));
}

std::string to_text(const Graph& graph) {
  std::string text = to_text(graph, graph.node(0)) + "\n";
  int cell = -1;
  for (size_t id = 1; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    while (cell < node.cell)
      text += fmt::format("{} {}\n", kCell, name_text(graph.cells()[++cell]));
    text += to_text(graph, node) + "\n";
  }
  return text + fmt::format("{} {}\n", kOutput, name_text(graph.node(graph.output()).name));
}

Graph parse_graph(const std::string& text) {
  GraphReader reader;
  int line = 0;
  try {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      ++line;
      reader.read_line(text.substr(begin, end - begin));
      begin = end + 1;
    }
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("line {} of the graph: {}", line, error.what()));
  }
  return reader.finish();
}

}  // namespace mpi4dl
