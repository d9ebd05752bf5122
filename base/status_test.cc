#include "weft/base/status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

// The expected values follow from the definition: each row says which edits are meant.
TEST(EditDistanceTest, CountsEdits) {
  const struct {
    const char *a, *b;
    size_t distance;
  } kRows[] = {
      {"", "", 0},
      {"", "abc", 3},
      {"abc", "", 3},
      {"width", "width", 0},
      {"wdth", "width", 1},    // one insertion
      {"wiidth", "width", 1},  // one removal
      {"wisth", "width", 1},   // one replacement
      {"widht", "width", 1},   // one swap of neighbours
      {"kitten", "sitting", 3},
      {"ca", "abc", 3},  // 3, not 2: no byte takes part in two edits
  };
  for (const auto& [a, b, distance] : kRows) {
    EXPECT_EQ(EditDistance(a, b), distance) << a << " " << b;
    EXPECT_EQ(EditDistance(b, a), distance) << b << " " << a;
  }
}

TEST(EditDistanceTest, FindsTheFirstOfTheNearestWords) {
  const std::vector<std::string> known = {"height", "width", "wideth", "depth-first"};
  EXPECT_EQ(NearestWord("widht", known, 2), 1);
  EXPECT_EQ(NearestWord("wideth", known, 0), 2);
  EXPECT_EQ(NearestWord("dep", known, 1), 3);  // a beginning
  EXPECT_EQ(NearestWord("de", known, 1), 4);   // is too short
  EXPECT_EQ(NearestWord("weight", known, 1), 0);
  EXPECT_EQ(NearestWord("wxxth", known, 1), 4);
  EXPECT_EQ(NearestWord(std::string(1000, 'a'), {std::string(1000, 'a')}, 2), 1);
}

}  // namespace
}  // namespace weft
