// Compiled with the checks of Debug builds.
#include "base/expects.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

TEST(Expects, SaysWhichPromiseWasBrokenAndWhere) {
  expects(true, "a number is even");
  try {
    expects(false, "a number is even");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find("a number is even"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("expects_test.cpp"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace mpi4dl
