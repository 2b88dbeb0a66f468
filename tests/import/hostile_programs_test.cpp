// Programs whose JSON is sound, and which are made to do harm: to take all memory or all time, or
// to compute with numbers that do not fit. Each is refused with a sentence, soon.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "base/error.hpp"
#include "import/imported_model.hpp"
#include "small_archive.hpp"
#include "small_program.hpp"
#include "support/scratch_folder.hpp"

namespace mpi4dl {
namespace {

using testing::archive_bytes;
using testing::as;
using testing::aten;
using testing::call;
using testing::model_archive;
using testing::model_json;
using testing::number;
using testing::tensor;

/// Returns why a file cannot be imported, in one line.
std::string failure_of(const std::string& bytes, const Extents& image = {4, 4}) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch / "net.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    import_model(path, {.image = image});
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

std::string failure_of_calls(const std::string& calls) {
  return failure_of(model_archive(model_json(calls)));
}

/// Gives the image other sizes than 2x2x4x4.
std::string failure_of_image(const std::string& batch, const std::string& channels,
                             const std::string& calls, const Extents& image = {4, 4}) {
  std::string json = model_json(calls);
  const std::string usual = R"([{"as_int": 2}, {"as_int": 2},)";
  json.replace(json.find(usual), usual.size(),
               fmt::format("[{}, {},", as("int", batch), as("int", channels)));
  return failure_of(model_archive(json), image);
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text.substr(0, 500);
  EXPECT_LT(text.size(), 1000);
}

/// Fails where something takes more time of a core than a sanitized build may need.
class Soon {
 public:
  ~Soon() { EXPECT_LT((std::clock() - begin_) / CLOCKS_PER_SEC, 20); }

 private:
  std::clock_t begin_ = std::clock();
};

TEST(HostileProgram, HasNumbersThatAreNone) {
  for (const char* value : {"1e300", "0.5", "18446744073709551615", "\"4\"", "[4]"})
    expect_says(failure_of_calls(aten("view", {{"self", tensor("x")},
                                               {"size", as("ints", fmt::format("[{}]", value))}})),
                "is no whole number");
}

TEST(HostileProgram, HasSizesThatAreTooLarge) {
  const auto view = [](const std::string& sizes) {
    return failure_of_calls(
        aten("view", {{"self", tensor("x")}, {"size", as("ints", fmt::format("[{}]", sizes))}}));
  };
  expect_says(view("9223372036854775807"), "its size is too large a number");
  expect_says(view("1099511627776, 1099511627776"), "no regrouping of its axes");
  expect_says(view("-1, -1"), "no regrouping of its axes");
  expect_says(view("-2"), "no regrouping of its axes");
  expect_says(view("0, -1"), "no regrouping of its axes");
}

TEST(HostileProgram, ComputesWithNumbersThatDoNotFit) {
  const auto size = call("torch.ops.aten.sym_size.int",
                         {{"self", tensor("x")}, {"dim", as("int", "2")}}, number("n"));
  const auto of = [&](const std::string& target, const std::string& other) {
    return failure_of_calls(
        size + "," + call(target, {{"a", number("n")}, {"b", other}}, number("m")) + "," +
        aten("view",
             {{"self", tensor("x")}, {"size", as("sym_ints", fmt::format("[{}]", number("m")))}}));
  };
  expect_says(of("_operator.floordiv", as("int", "0")), "it divides by zero");
  expect_says(of("_operator.mod", as("int", "0")), "it divides by zero");
  expect_says(of("_operator.mul", as("int", "9007199254740992")), "is too large a number");
  expect_says(of("_operator.mul", as("int", "9223372036854775807")), "is too large a number");
  expect_says(of("_operator.pow", as("int", "400")), "its size is no whole number");
  expect_says(of("_operator.truediv", as("int", "0")), "its size is no whole number");
  expect_says(of("_operator.add", as("int", "-6")), "no regrouping of its axes");
}

TEST(HostileProgram, HasCallsWithoutArguments) {
  expect_says(failure_of_calls(aten("contiguous", {})), "it has no argument");
  expect_says(failure_of_calls(aten("relu", {})), "its self is missing");
  expect_says(failure_of_calls(aten("relu_", {})), "its self is missing");
  expect_says(failure_of_calls(call("_operator.add", {}, number("y"))), "it has too few arguments");
}

TEST(HostileProgram, HasAnImageThatIsTooLarge) {
  const std::string relu = aten("relu", {{"self", tensor("x")}});
  expect_says(failure_of_image("2", "9223372036854775807", relu), "its input has the axes");
  expect_says(failure_of_image("2", "-1", relu), "channels of its input is not fixed");
  expect_says(failure_of_image("1000000", "2", relu), "it was exported for 1000000 images");
  expect_says(failure_of_image("2", "1073741824", relu, {1 << 20, 1 << 20}), "elements");
  EXPECT_EQ(failure_of_image("2", "1024", relu, {1 << 18, 1 << 18}), "no failure");
}

TEST(HostileProgram, ResizesToWhatIsTooLarge) {
  for (const char* size : {"1099511627776", "2147483648"})
    expect_says(failure_of_calls(aten("upsample_nearest2d",
                                      {{"input", tensor("x")},
                                       {"output_size", as("ints", fmt::format("[4, {}]", size))}})),
                "is too large");
  expect_says(failure_of_calls(
                  aten("upsample_nearest2d",
                       {{"input", tensor("x")}, {"scale_factors", as("floats", "[1.0, 1e300]")}})),
              "its factor must be positive and fit");
  expect_says(failure_of_calls(
                  aten("pad", {{"self", tensor("x")}, {"pad", as("ints", "[1099511627776, 0]")}})),
              "is too large");
  expect_says(
      failure_of_calls(aten("max_pool2d", {{"self", tensor("x")},
                                           {"kernel_size", as("ints", "[1073741824, 1]")},
                                           {"dilation", as("ints", "[1099511627776, 1]")}})),
      "is too large");
  expect_says(
      failure_of_calls(aten("pixel_shuffle", {{"self", tensor("x")},
                                              {"upscale_factor", as("int", "1099511627776")}})),
      "is too large");
}

TEST(HostileProgram, ExpandsToWhatIsTooLarge) {
  const std::string pooled = aten(
      "mean",
      {{"self", tensor("x")}, {"dim", as("ints", "[2, 3]")}, {"keepdim", as("bool", "true")}}, "p");
  const auto expanded = [&](const std::string& size) {
    return failure_of_calls(pooled + "," +
                            aten("expand", {{"self", tensor("p")}, {"size", as("ints", size)}}));
  };
  EXPECT_EQ(expanded("[2, 2, 4, 4]"), "no failure");
  expect_says(expanded("[2, 2, 1099511627776, 4]"), "is too large");
  expect_says(expanded("[2, 2, 1073741824, 1073741824]"), "elements");
  expect_says(expanded("[2, 2, -4, 4]"), "has no pixels");
  expect_says(expanded("[2, 2, 0, 4]"), "has no pixels");
}

TEST(HostileProgram, TakesAValueApart) {
  const Soon soon;
  const std::string split =
      call("torch.ops.aten.split.Tensor",
           {{"self", tensor("x")}, {"split_size", as("int", "1")}, {"dim", as("int", "1")}},
           as("tensors", R"([{"name": "y"}])"));
  EXPECT_EQ(failure_of_image("2", "100", split), "no failure");
  expect_says(failure_of_image("2", "1073741824", split),
              "its parts have 1 of 1073741824 channels");
}

/// Each call copies the axes of its input.
TEST(HostileProgram, AddsAxesWithoutEnd) {
  const Soon soon;
  std::string calls, from = "x";
  for (int i = 0; i < 20'000; ++i) {
    const std::string to = i == 19'999 ? "y" : fmt::format("u{}", i);
    calls += i == 0 ? "" : ",";
    calls += aten("unsqueeze", {{"self", tensor(from)}, {"dim", as("int", "0")}}, to);
    from = to;
  }
  expect_says(failure_of_calls(calls), "its result has 17 axes");
}

TEST(HostileProgram, HasModulesWithinModulesWithoutEnd) {
  const Soon soon;
  const auto in_module = [](const std::string& path) {
    return failure_of_calls(call("torch.ops.aten.relu.default", {{"self", tensor("x")}},
                                 tensor("y"),
                                 fmt::format(R"({{"nn_module_stack": "key,{},Class"}})", path)));
  };
  EXPECT_EQ(in_module("a.b.c"), "no failure");
  expect_says(in_module(std::string(1'000'000, '.')), "the path of a module has 1000000 letters");
  expect_says(in_module(std::string(100, '.')), "100 points");
}

TEST(HostileProgram, HasAStackTraceWithoutEnd) {
  const Soon soon;
  std::string trace;
  for (int i = 0; i < 200'000; ++i) trace += R"(File \" )";
  EXPECT_EQ(
      failure_of_calls(call("torch.ops.aten.relu.default", {{"self", tensor("x")}}, tensor("y"),
                            fmt::format(R"({{"stack_trace": "{}\", line 3"}})", trace))),
      "no failure");
}

/// All nodes are of one module, so that their names differ by a number alone.
TEST(HostileProgram, MayBeLarge) {
  const Soon soon;
  std::string calls, from = "x";
  constexpr int kCalls = 100'000;
  for (int i = 0; i < kCalls; ++i) {
    const std::string to = i == kCalls - 1 ? "y" : fmt::format("v{}", i);
    calls += i == 0 ? "" : ",";
    calls += call("torch.ops.aten.relu.default", {{"self", tensor(from)}}, tensor(to),
                  R"({"nn_module_stack": "key,layers.relu,Class"})");
    from = to;
  }
  EXPECT_EQ(failure_of_calls(calls), "no failure");
}

TEST(HostileProgram, NestsArguments) {
  const auto nested = [](int depth) {
    std::string value = as("int", "1");
    for (int i = 0; i < depth; ++i) value = as("sym_int", value);
    return failure_of_calls(aten("softmax", {{"self", tensor("x")}, {"dim", value}}));
  };
  EXPECT_EQ(nested(10), "no failure");
  expect_says(nested(1000), "is nested more than 64 deep");
}

/// A pickle that runs os.system("true") where Python reads it, in the archive that PyTorch 2.6
/// writes within the file.
TEST(HostileProgram, HasCodeInItsPickles) {
  const std::string pickle(
      "\x80\x02"
      "cos\nsystem\nX\x04\0\0\0true\x85R.",
      25);
  const std::string saved = archive_bytes({{"archive/data.pkl", pickle}});
  expect_says(failure_of(archive_bytes({{"net/serialized_exported_program.json", "{}"},
                                        {"net/models/model.json", model_json()},
                                        {"net/data/weights/model.pt", saved}})),
              "it holds an object of os.system; save a state_dict alone");
}

TEST(HostileProgram, NamesTensorsElsewhere) {
  const auto at = [](const std::string& path, const std::string& pickled) {
    const std::string config = fmt::format(
        R"({{"config": {{"w": {{"path_name": "{}", "use_pickle": {}, "tensor_meta": {{"dtype": 7,
        "layout": 7, "requires_grad": true, "sizes": [{{"as_int": 1}}], "strides": [{{"as_int": 1}}],
        "storage_offset": {{"as_int": 0}}}}}}}}}})",
        path, pickled);
    return failure_of(
        archive_bytes({{"net/models/model.json", model_json()},
                       {"net/data/weights/model_weights_config.json", config},
                       {"net/data/weights/weight_0", std::string(4, '\0')},
                       {"net/data/constants/model_constants_config.json", R"({"config": {}})"}}));
  };
  EXPECT_EQ(at("weight_0", "false"), "no failure");
  for (const char* path :
       {"/etc/passwd", "../../../../etc/passwd", "", "../constants/../weights/weight_0"})
    expect_says(at(path, "false"), "the values of w are not in it");
  expect_says(at("weight_0", "true"), "a pickled object");
}

}  // namespace
}  // namespace mpi4dl
