#include "weft/lab/page.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(PageTest, NoTextOfTheDataEndsTheScript) {
  EXPECT_EQ(FillPage("<script>/*DATA*/</script>", R"({"a": "</script><!-- $& \\"})"),
            R"(<script>{"a": "\u003c/script>\u003c!-- $& \\"}</script>)");
}

TEST(PageTest, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(Shortened("né", 3), "né");
  EXPECT_EQ(Shortened("née", 3), "né…");
  EXPECT_EQ(Shortened("née", 2, " ..."), "n ...");
}

}  // namespace
}  // namespace weft
