#include "storage/state_dict_pickle.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

// A state_dict of 100,000 tensors has fewer; a hostile pickle makes one with a byte or two.
constexpr int64_t kMostPickledValues = 4'000'000, kValuesOfTensor = 8;
constexpr size_t kMostPickledAxes = 8, kLongestRecord = 100;

struct Item;
/// Points to what the machine owns. Lists may hold each other, and hold each other in circles.
using Ref = Item*;

/// Item is a value of Python, as far as a state_dict needs it.
struct Item {
  enum class Kind { other, mark, integer, text, sequence, dict, name, storage, tensor };
  Kind kind = Kind::other;
  c10::ScalarType type = c10::ScalarType::Float;  // of a storage
  int64_t integer = 0;
  std::string text = {};        // of a text, a name or a storage's record
  std::vector<Ref> items = {};  // of a sequence; of a dict: key, value, key, value, ...
  std::unique_ptr<ArchivedTensor> tensor = {};
};

const Item& expect(Ref item, Item::Kind kind) {
  ensure(item->kind == kind, "it is not built as a state_dict");
  return *item;
}

/// Returns a text that is the name of something: values that share one have a copy each.
const std::string& name_in(Ref item) {
  const std::string& text = expect(item, Item::Kind::text).text;
  ensure(text.size() <= kLongestRecord, "it has a name of {} characters", text.size());
  return text;
}

std::vector<int64_t> integers(Ref sequence) {
  const std::vector<Ref>& items = expect(sequence, Item::Kind::sequence).items;
  ensure(items.size() <= kMostPickledAxes, "it has a tensor of {} axes", items.size());
  std::vector<int64_t> found;
  for (const Ref item : items) found.push_back(expect(item, Item::Kind::integer).integer);
  return found;
}

c10::ScalarType type_of_storage(const std::string& name) {
  static const std::map<std::string, c10::ScalarType> kTypes{
      {"torch.DoubleStorage", c10::ScalarType::Double},
      {"torch.FloatStorage", c10::ScalarType::Float},
      {"torch.HalfStorage", c10::ScalarType::Half},
      {"torch.BFloat16Storage", c10::ScalarType::BFloat16},
      {"torch.LongStorage", c10::ScalarType::Long},
      {"torch.IntStorage", c10::ScalarType::Int},
      {"torch.ShortStorage", c10::ScalarType::Short},
      {"torch.CharStorage", c10::ScalarType::Char},
      {"torch.ByteStorage", c10::ScalarType::Byte},
      {"torch.BoolStorage", c10::ScalarType::Bool}};
  const auto found = kTypes.find(name);
  ensure(found != kTypes.end(), "it holds values of {}", name);
  return found->second;
}

/// Machine is the stack machine that a pickle is a program for. What it returns lives as long as it
/// does.
class Machine {
 public:
  explicit Machine(std::string_view program) : rest_(program) {}

  Ref run() {
    while (true) {
      const auto opcode = static_cast<unsigned char>(bytes(1)[0]);
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  std::string_view bytes(size_t count) {
    ensure(count <= rest_.size(), "it ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  /// Reads a little-endian number of so many bytes.
  int64_t number(size_t count) {
    const std::string_view taken = bytes(count);
    int64_t value = 0;
    std::memcpy(&value, taken.data(), std::min(count, sizeof(value)));
    return value;
  }

  std::string line() {
    const std::string_view taken = bytes(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
    return std::string(taken.substr(0, taken.size() - 1));
  }

  Ref pop() {
    ensure(!stack_.empty(), "it is not built as a state_dict");
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }

  Item& top(Item::Kind kind) {
    ensure(!stack_.empty() && stack_.back()->kind == kind, "it is not built as a state_dict");
    return *stack_.back();
  }

  std::vector<Ref> pop_items(size_t count) {
    ensure(count <= stack_.size(), "it is not built as a state_dict");
    const auto first = stack_.end() - static_cast<int64_t>(count);
    std::vector<Ref> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }

  std::vector<Ref> pop_to_mark() {
    const auto mark = std::find_if(stack_.rbegin(), stack_.rend(),
                                   [](Ref item) { return item->kind == Item::Kind::mark; });
    ensure(mark != stack_.rend(), "it is not built as a state_dict");
    std::vector<Ref> items = pop_items(static_cast<size_t>(mark - stack_.rbegin()));
    stack_.pop_back();
    return items;
  }

  void push(Item item) {
    values_ += item.tensor ? kValuesOfTensor : 1;
    ensure(values_ <= kMostPickledValues, "it has more than {} values", kMostPickledValues);
    stack_.push_back(&items_.emplace_back(std::move(item)));
  }
  void push_integer(int64_t value) { push({.kind = Item::Kind::integer, .integer = value}); }
  void push_sequence(std::vector<Ref> items) {
    push({.kind = Item::Kind::sequence, .items = std::move(items)});
  }
  void push_text(size_t length) {
    push({.kind = Item::Kind::text, .text = std::string(bytes(length))});
  }
  void extend(Item::Kind kind, const std::vector<Ref>& items) {
    std::vector<Ref>& all = top(kind).items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void remember(int64_t number) {
    ensure(!stack_.empty(), "it is not built as a state_dict");
    memory_[number] = stack_.back();
  }
  void recall(int64_t number) {
    ensure(memory_.contains(number), "it is not built as a state_dict");
    stack_.push_back(memory_.at(number));
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        bytes(1);
        break;
      case 0x95:  // FRAME
        bytes(8);
        break;
      case 'q':
        return remember(number(1));
      case 'r':
        return remember(number(4));
      case 0x94:  // MEMOIZE
        return remember(static_cast<int64_t>(memory_.size()));
      case 'h':
        return recall(number(1));
      case 'j':
        return recall(number(4));
      case '(':
        return push({.kind = Item::Kind::mark});
      case ')':
      case ']':
        return push_sequence({});
      case 0x85:
      case 0x86:
      case 0x87:
        return push_sequence(pop_items(opcode - 0x84));
      case 't':
        return push_sequence(pop_to_mark());
      case 'a':
        return extend(Item::Kind::sequence, pop_items(1));
      case 'e':
        return extend(Item::Kind::sequence, pop_to_mark());
      case '}':
        return push({.kind = Item::Kind::dict});
      case 's':
        return extend(Item::Kind::dict, pop_items(2));
      case 'u':
        return extend(Item::Kind::dict, pop_to_mark());
      case 'X':
        return push_text(number(4));
      case 0x8c:
        return push_text(number(1));
      case 'K':
        return push_integer(number(1));
      case 'M':
        return push_integer(number(2));
      case 'J':
        return push_integer(static_cast<int32_t>(number(4)));
      case 0x8a: {  // LONG1: only what fits, and no negative ones
        return push_integer(number(number(1)));
      }
      case 'G':
        bytes(8);
        return push({});
      case 'N':
      case 0x88:
      case 0x89:
        return push({});
      case 'c': {
        const std::string module = line();
        return push({.kind = Item::Kind::name, .text = module + "." + line()});
      }
      case 0x93: {  // STACK_GLOBAL
        const auto parts = pop_items(2);
        return push(
            {.kind = Item::Kind::name, .text = name_in(parts[0]) + "." + name_in(parts[1])});
      }
      case 'Q':
        return push_storage();
      case 'R':
        return call();
      case 'b':  // BUILD: attributes of a dict, such as its version
        pop();
        break;
      default:
        throw Error(fmt::format("opcode {} occurs in no state_dict", opcode));
    }
  }

  /// Takes ("storage", torch.FloatStorage, record, device, elements)
  void push_storage() {
    const Ref description = pop();
    const auto& parts = expect(description, Item::Kind::sequence).items;
    ensure(parts.size() == 5, "it is not built as a state_dict");
    push({.kind = Item::Kind::storage,
          .type = type_of_storage(expect(parts[1], Item::Kind::name).text),
          .text = name_in(parts[2])});
  }

  void call() {
    const Ref arguments = pop(), function = pop();
    const auto& given = expect(arguments, Item::Kind::sequence).items;
    const std::string& name = expect(function, Item::Kind::name).text;
    if (name == "collections.OrderedDict") return push({.kind = Item::Kind::dict});
    const bool parameter = name == "torch._utils._rebuild_parameter" ||
                           name == "torch._utils._rebuild_parameter_with_state";
    ensure(parameter || name == "torch._utils._rebuild_tensor_v2",
           "it holds an object of {}; save a state_dict alone", name);
    ensure(given.size() >= (parameter ? 1 : 4), "it is not built as a state_dict");
    if (parameter) return stack_.push_back(given[0]);
    const Item& storage = expect(given[0], Item::Kind::storage);
    push({.kind = Item::Kind::tensor,
          .tensor = std::make_unique<ArchivedTensor>(
              ArchivedTensor{.info = {storage.type, integers(given[2])},
                             .storage = storage.text,
                             .offset = expect(given[1], Item::Kind::integer).integer,
                             .strides = integers(given[3])})});
  }

  std::string_view rest_;
  std::deque<Item> items_;
  int64_t values_ = 0;
  std::vector<Ref> stack_;
  std::map<int64_t, Ref> memory_;
};

}  // namespace

std::map<std::string, ArchivedTensor> read_state_dict(std::string_view pickle) {
  Machine machine(pickle);
  const Item& top = *machine.run();
  ensure(top.kind == Item::Kind::dict, "it holds no state_dict");
  std::map<std::string, ArchivedTensor> tensors;
  for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
    const std::string& name = expect(top.items[i], Item::Kind::text).text;
    ensure(top.items[i + 1]->kind == Item::Kind::tensor,
           "its entry '{}' is no tensor; save a state_dict alone", name);
    tensors[name] = *top.items[i + 1]->tensor;
  }
  return tensors;
}

}  // namespace mpi4dl
