#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "weft/core/tensor.h"
#include "weft/tests/parse_shape.h"

namespace weft {
namespace {

// Returns as text the shape to which `a` and `b` broadcast: "[2,3]" for "[2,1]" and "[3]", or "no" if there is none.
std::string BroadcastText(const char* a, const char* b) {
  const std::optional<Shape> shape = Broadcast(*ParseShape(a), *ParseShape(b));
  return shape.has_value() ? ToString(*shape) : "no";
}

TEST(ShapeTest, SizesAndViews) {
  const Shape s = {2, 3, 5};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.dim(0), 2);
  EXPECT_EQ(s.dim(-1), 5);
  EXPECT_EQ(s.dim(3), 1);  // outside the rank, as in broadcasting
  EXPECT_EQ(s.dim(-4), 1);
  EXPECT_EQ(s.elements(), 30);
  EXPECT_EQ(s.rows(), 6);
  EXPECT_EQ(s.cols(), 5);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape{}.rows(), 1);
  EXPECT_EQ(Shape{}.cols(), 1);
  EXPECT_EQ((Shape{0, 4}).elements(), 0);
  EXPECT_EQ((Shape{4, 0}).rows(), 4);
  EXPECT_EQ(WithDim(s, -1, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(WithDim(s, 0, 7), (Shape{7, 3, 5}));
}

TEST(ShapeTest, Equality) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(ShapeTest, Validity) {
  EXPECT_TRUE(Shape{}.valid());
  EXPECT_TRUE((Shape{0, 7}).valid());
  EXPECT_FALSE((Shape{2, -1}).valid());
  EXPECT_FALSE((Shape{1, 1, 1, 1, 1, 1, 1}).valid());
  EXPECT_TRUE((Shape{int64_t{1} << 24, int64_t{1} << 24}).valid());
  EXPECT_FALSE((Shape{int64_t{1} << 24, int64_t{1} << 25}).valid());
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE((Shape{most, most, most}).valid());
  EXPECT_FALSE((Shape{0, most, most}).valid());
}

TEST(ShapeTest, Parse) {
  for (const char* text : {"[]", "[0]", "[2,3]", "[1,2,3,4,5,6]"}) {
    ASSERT_TRUE(ParseShape(text).has_value()) << text;
    EXPECT_EQ(ToString(*ParseShape(text)), text);
  }
  for (const char* text : {"", "2,3", "[2,3", "2,3]", "[2,,3]", "[a]", "[1,2,3,4,5,6,7]", "[99999999999999999999]"}) {
    EXPECT_FALSE(ParseShape(text).has_value()) << text;
  }
}

TEST(ShapeTest, Broadcast) {
  EXPECT_EQ(BroadcastText("[]", "[]"), "[]");
  EXPECT_EQ(BroadcastText("[2,3]", "[]"), "[2,3]");
  EXPECT_EQ(BroadcastText("[3]", "[2,1]"), "[2,3]");
  EXPECT_EQ(BroadcastText("[4,1,5]", "[3,1]"), "[4,3,5]");
  EXPECT_EQ(BroadcastText("[0]", "[1]"), "[0]");
  EXPECT_EQ(BroadcastText("[2]", "[3]"), "no");
  EXPECT_EQ(BroadcastText("[2,3]", "[3,2]"), "no");
  EXPECT_EQ(BroadcastText("[0]", "[2]"), "no");
}

TEST(ShapeTest, NormalAxis) {
  const Shape s = {2, 3};
  EXPECT_EQ(NormalAxis(s, 1), 1);
  EXPECT_EQ(NormalAxis(s, -2), 0);
  EXPECT_EQ(NormalAxis(s, 2), std::nullopt);
  EXPECT_EQ(NormalAxis(s, -3), std::nullopt);
  EXPECT_EQ(NormalAxis(Shape{}, 0), std::nullopt);
}

}  // namespace
}  // namespace weft
