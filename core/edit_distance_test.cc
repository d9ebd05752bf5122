#include "weft/core/edit_distance.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weft
