#include "weft/tests/tour/same_output.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(SameOutputTest, AnyText) {
  EXPECT_TRUE(SameOutput("a 1\nb\nc\n", "a   1\n…\nc\n"));
  EXPECT_TRUE(SameOutput("a took 12 s of 3\n", "a took … s of 3\n"));
  EXPECT_TRUE(SameOutput("a\n", "a\n…\n"));
  EXPECT_FALSE(SameOutput("a\nb\n", "a\n"));
  EXPECT_FALSE(SameOutput("a\n", "a\n…\nb\n"));
  EXPECT_FALSE(SameOutput("a took 12 s of 3\n", "a took … s of 4\n"));
}

TEST(SameOutputTest, Numbers) {
  EXPECT_TRUE(SameOutput("x=1.2346,", "x=1.2345,"));
  EXPECT_TRUE(SameOutput("-1.234e-05", "-1.235e-05"));
  EXPECT_FALSE(SameOutput("x=1.2349", "x=1.2345"));
  EXPECT_FALSE(SameOutput("13", "12"));
  EXPECT_FALSE(SameOutput("1.2", "-1.2"));
  EXPECT_TRUE(Rounds("1.2", 1.24));
  EXPECT_FALSE(Rounds("1.2", 1.26));
  EXPECT_TRUE(Rounds("12", 12));
}

}  // namespace
}  // namespace weft
