#include "graph/text.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"
#include "models/registry.hpp"

namespace mpi4dl {
namespace {

const char* const kSmall =
    "input 3x16x20\n"
    "cell stem\n"
    "stem.conv = convolution(input) out_channels=8 kernel=3x3 padding=1x1 bias=false with "
    "c.weight\n"
    "stem.bn = batch_norm(stem.conv) eps=0.001\n"
    "cell \"a block\"\n"
    "\"a block.again\" = convolution(stem.bn) out_channels=8 kernel=1x3 with w, frozen b\n"
    "\"a block.up\" = resize(\"a block.again\") factor=3x1.5 mode=bilinear\n"
    "cell head\n"
    "head.pool = global_average_pooling(\"a block.up\")\n"
    "head.join = concat(head.pool, head.pool)\n"
    "head.fc = linear(head.join) out_features=4\n"
    "output head.fc\n";

TEST(GraphText, IsReadAsItIsWritten) {
  const Graph graph = parse_graph(kSmall);
  EXPECT_EQ(to_text(graph), kSmall);
  EXPECT_EQ(graph.cells(), (std::vector<std::string>{"stem", "a block", "head"}));
  EXPECT_EQ(graph.node(1).parameters[0].name, "c.weight");
  EXPECT_EQ(graph.node(2).parameters[0].name, "stem.bn.weight");
  EXPECT_TRUE(graph.node(3).parameters[0].trained());
  EXPECT_EQ(graph.node(3).parameters[1].kind, ParameterKind::frozen);
  EXPECT_EQ(graph.node(4).shape, (Shape{8, {48, 27}}));
  EXPECT_EQ(graph.node(6).inputs, (std::vector<int>{5, 5}));
  EXPECT_EQ(graph.output(), 7);
}

TEST(GraphText, DescribesModelsCompletely) {
  for (const char* name : {"resnet", "amoebanet"}) {
    const Graph graph =
        build_model({.name = name, .image = {64, 64}, .depth = 11, .num_layers = 3});
    const Graph again = parse_graph(to_text(graph));
    EXPECT_EQ(to_text(again), to_text(graph));
    ASSERT_EQ(again.nodes().size(), graph.nodes().size());
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      EXPECT_EQ(again.nodes()[id].shape, graph.nodes()[id].shape) << graph.nodes()[id].name;
      EXPECT_EQ(again.nodes()[id].cell, graph.nodes()[id].cell);
    }
    EXPECT_EQ(again.parameter_count(), graph.parameter_count());
    EXPECT_EQ(flops_per_image(again), flops_per_image(graph));
  }
}

TEST(GraphText, HasNoWordForAValueThatIsNone) {
  Graph graph({4, {32, 32}});
  graph.begin_cell("all");
  graph.set_output(
      graph.add("pad", Pad{.before = {1, 1}, .after = {1, 1}, .mode = static_cast<PadMode>(77)},
                {graph.input()}));
  EXPECT_THROW(to_text(graph), Error);
}

TEST(GraphText, WritesEveryOptionThatIsNotItsDefault) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Graph graph({4, {32, 32}});
  graph.begin_cell("all");
  Value x = graph.add("a",
                      TransposedConvolution{.out_channels = 6,
                                            .kernel = {3, 2},
                                            .stride = {2, 3},
                                            .padding = {1, 0},
                                            .dilation = {1, 2},
                                            .output_padding = {1, 2},
                                            .groups = 2,
                                            .bias = false},
                      {graph.input()});
  x = graph.add("b", AvgPool{{3, 3}, {1, 2}, {1, 1}, true, false}, {x});
  x = graph.add("c", MaxPool{{3, 3}, {1, 2}, {1, 1}, {2, 2}, true}, {x});
  x = graph.add("d", ChannelSlice{2, 5}, {x});
  x = graph.add("e", GroupNorm{.groups = 3, .eps = 1.0 / 3}, {x});
  x = graph.add("f", Dropout{0.1}, {x});
  const Value y = graph.add("p", Pointwise{PointwiseFunction::hardtanh, -0.5, 6}, {x});
  x = graph.add("q", Elementwise{ElementwiseFunction::divide}, {x, y});
  x = graph.add("r", PRelu{3}, {graph.add("s", ChannelScale{true}, {x})});
  x = graph.add("t", ChannelNorm{1e-6, false}, {graph.add("u", BatchNorm{1e-3, 0.01, false}, {x})});
  x = graph.add("v", AdaptiveAvgPool{{5, 3}}, {x});
  x = graph.add("g", GlobalMaxPool{}, {x});
  x = graph.add("h", Broadcast{{7, 9}}, {x});
  x = graph.add("i", Resize{{}, {0.5, 3}, Interpolation::bicubic, true}, {x});
  x = graph.add("j", Pad{{1, -2}, {0, 3}, PadMode::constant, -infinity}, {x});
  x = graph.add("k", Dropout{0.25, DropoutUnit::image}, {x});
  x = graph.add("l", MaxPool{.kernel = {2, 2}, .padding = {1, 0}, .padding_end = {0, 1}}, {x});
  graph.set_output(x);
  EXPECT_EQ(
      to_text(graph),
      "input 4x32x32\n"
      "cell all\n"
      "all.a = transposed_convolution(input) out_channels=6 kernel=3x2 stride=2x3 padding=1x0 "
      "dilation=1x2 output_padding=1x2 groups=2 bias=false\n"
      "all.b = average_pooling(all.a) kernel=3x3 stride=1x2 padding=1x1 ceil_mode=true "
      "count_include_pad=false\n"
      "all.c = max_pooling(all.b) kernel=3x3 stride=1x2 padding=1x1 dilation=2x2 "
      "ceil_mode=true\n"
      "all.d = channel_slice(all.c) begin=2 end=5\n"
      "all.e = group_norm(all.d) groups=3 eps=0.3333333333333333\n"
      "all.f = dropout(all.e) probability=0.1\n"
      "all.p = pointwise(all.f) function=hardtanh a=-0.5 b=6\n"
      "all.q = elementwise(all.f, all.p) function=divide\n"
      "all.s = channel_scale(all.q) bias=true\n"
      "all.r = prelu(all.s) num_parameters=3\n"
      "all.u = batch_norm(all.r) eps=0.001 momentum=0.01 affine=false\n"
      "all.t = channel_norm(all.u) eps=1e-06 affine=false\n"
      "all.v = adaptive_average_pooling(all.t) size=5x3\n"
      "all.g = global_max_pooling(all.v)\n"
      "all.h = broadcast(all.g) space=7x9\n"
      "all.i = resize(all.h) factor=0.5x3 mode=bicubic align_corners=true\n"
      "all.j = padding(all.i) before=1x-2 after=0x3 value=-inf\n"
      "all.k = dropout(all.j) probability=0.25 per=image\n"
      "all.l = max_pooling(all.k) kernel=2x2 padding=1x0 padding_end=0x1\n"
      "output all.l\n");
  EXPECT_EQ(to_text(parse_graph(to_text(graph))), to_text(graph));
}

TEST(GraphText, ReadsFunctionsAndInfinities) {
  const Graph graph = parse_graph(
      "input 1x4x4\ncell a\na.b = pointwise(input) function=clamp a=-inf b=1\noutput a.b");
  EXPECT_EQ(to_text(graph, graph.node(1)), "a.b = pointwise(input) function=clamp a=-inf b=1");
}

TEST(GraphText, QuotesNames) {
  Graph graph({1, {4, 4}});
  graph.begin_cell("it's \"so\"\n");
  const Value x = graph.add("\\ frozen", Linear{}, {graph.add("flat", Flatten{}, {graph.input()})},
                            {{"frozen"}, {"with", true}});
  graph.set_output(x);
  const Graph again = parse_graph(to_text(graph));
  EXPECT_EQ(again.cells(), graph.cells());
  EXPECT_EQ(again.node(2).name, graph.node(2).name);
  EXPECT_EQ(again.node(2).parameters[0].name, "frozen");
  EXPECT_EQ(again.node(2).parameters[1].name, "with");
  EXPECT_EQ(again.node(2).parameters[1].kind, ParameterKind::frozen);
}

TEST(GraphText, MayHaveCommentsAndEmptyLines) {
  const Graph graph = parse_graph(
      "# a model\n\ninput 1x4x4  # grey\ncell a\n  a.r = relu(input) # and so on\noutput a.r");
  EXPECT_EQ(graph.node(1).name, "a.r");
}

/// Says what the user reads whose text has this line instead of one of kSmall's.
std::string complaint(const std::string& line, const std::string& instead) {
  std::string text = kSmall;
  const size_t begin = text.find(line);
  EXPECT_NE(begin, std::string::npos);
  text.replace(begin, line.size(), instead);
  try {
    parse_graph(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(GraphText, NamesTheLineThatIsWrong) {
  EXPECT_EQ(complaint("input 3x16x20", "image 3x16x20"),
            "line 1 of the graph: it does not begin with the input");
  EXPECT_EQ(complaint("3x16x20", "3x16xa"), "line 1 of the graph: 'a' is no number");
  EXPECT_EQ(complaint("batch_norm", "batchnorm"),
            "line 4 of the graph: there is no operator batchnorm");
  EXPECT_EQ(complaint("eps=0.001", "epsilon=0.001"),
            "line 4 of the graph: batch norm has no option epsilon");
  EXPECT_EQ(complaint("(stem.conv)", "(stem.con)"),
            "line 4 of the graph: there is no node stem.con before this line");
  EXPECT_EQ(complaint("stem.bn =", "head.bn ="),
            "line 4 of the graph: head.bn is not in cell stem");
  EXPECT_EQ(complaint("bias=false", "bias=no"),
            "line 3 of the graph: 'no' is neither true nor false");
  EXPECT_EQ(complaint("kernel=3x3", "kernel=3x30000000000"),
            "line 3 of the graph: 30000000000 is too large");
  EXPECT_EQ(complaint("mode=bilinear", "mode=cubic"),
            "line 7 of the graph: 'cubic' is none of nearest, nearest_exact, bilinear, bicubic");
  EXPECT_EQ(complaint("\"a block\"\n", "\"a block\n"),
            "line 5 of the graph: a name in quotes has no end");
  EXPECT_EQ(complaint("out_features=4\n", "out_features=4 with\n"),
            "line 11 of the graph: there is no name before ''");
  EXPECT_EQ(complaint("output head.fc\n", ""), "it has no output");
  EXPECT_EQ(complaint("kernel=1x3", "kernel=90x3"),
            "line 6 of the graph: a block.again (convolution) cannot read stem.bn (8x16x20): its "
            "kernel 90x3 covers 90x3 pixels, but the input has only 16x20 with padding");
}

/// An operator that forgets to name one of its options is none.
struct Forgetful {
  int64_t named = 0, forgotten = 0;
  static constexpr std::tuple kFields{Field{"named", &Forgetful::named}};
};
static_assert(!NamesItsFields<Forgetful>);
static_assert(NamesItsFields<Convolution> && NamesItsFields<Relu>);

}  // namespace
}  // namespace mpi4dl
