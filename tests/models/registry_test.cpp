#include "models/registry.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

TEST(Registry, FindsModelsByName) {
  EXPECT_EQ(build_model({}).parameter_count(), 7'162'922);
  EXPECT_EQ(
      build_model({.name = "amoebanet", .num_layers = 3, .num_filters = 32}).parameter_count(),
      391'354);
}

TEST(Registry, PassesImageChannelsAndClassesOn) {
  for (const char* name : {"amoebanet", "resnet"}) {
    const Graph graph = build_model({.name = name,
                                     .channels = 5,
                                     .image = {64, 48},
                                     .classes = 17,
                                     .depth = 11,
                                     .num_layers = 3,
                                     .num_filters = 8});
    EXPECT_EQ(graph.shape(graph.input()), (Shape{5, {64, 48}}));
    EXPECT_EQ(graph.node(graph.output()).shape, (Shape{17, {}}));
  }
}

TEST(Registry, ListsWhatThereIsForAnUnknownName) {
  try {
    build_model({.name = "vgg"});
    FAIL() << "there is no such model";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown model 'vgg'; there are amoebanet, resnet");
  }
}

TEST(Registry, TakesModelsOfUsersOnce) {
  const ModelBuilder tiny = [](const ModelOptions& options) {
    Graph graph({options.channels, options.image});
    graph.begin_cell("all");
    graph.set_output(graph.add("pool", GlobalAvgPool{}, {graph.input()}));
    return graph;
  };
  register_model("tiny", tiny);
  EXPECT_EQ(build_model({.name = "tiny"}).cells(), (std::vector<std::string>{"all"}));
  EXPECT_EQ(model_names(), (std::vector<std::string>{"amoebanet", "resnet", "tiny"}));
  EXPECT_THROW(register_model("tiny", tiny), UsageError);
  EXPECT_THROW(register_model("resnet", tiny), UsageError);
}

}  // namespace
}  // namespace mpi4dl
