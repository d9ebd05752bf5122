// Tests the pictures of demos.
#include <cmath>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weft/lab/demos/demo.h"

namespace weft {
namespace {

TEST(PlotTest, CurvesStayInsideThePanel) {
  const std::string svg =
      DrawCurves("t", {{.title = "a < b & c", .x_label = "x", .curves = {{"y", {-3, 0.5, NAN, 9}}}}});
  EXPECT_TRUE(absl::StrContains(svg, "M56.0 260.0L162.7 150.0L269.3 40.0L376.0 40.0")) << svg;
  EXPECT_TRUE(absl::StrContains(svg, "a &lt; b &amp; c")) << svg;
}

TEST(PlotTest, LogarithmicAxis) {
  const std::string svg =
      DrawCurves("t", {{.curves = {{"y", {1, 10, 0}}}, .low = 1, .high = 100, .logarithmic = true}});
  EXPECT_TRUE(absl::StrContains(svg, "M56.0 260.0L216.0 150.0L376.0 260.0")) << svg;
}

TEST(PlotTest, CellsOfAHeatMapHaveColoursByTheirValues) {
  const std::string svg = DrawHeatMaps("t", {{.rows = 2, .columns = 2, .values = {-1, 0, 1, 9}, .low = -1, .high = 1}});
  EXPECT_TRUE(absl::StrContains(svg, "<path d=\"M0 0h1v1h-1z\" fill=\"#be2d14\"/>")) << svg;
  EXPECT_TRUE(absl::StrContains(svg, "<path d=\"M1 0h1v1h-1z\" fill=\"#ffffff\"/>")) << svg;
  EXPECT_TRUE(absl::StrContains(svg, "<path d=\"M0 1h1v1h-1zM1 1h1v1h-1z\" fill=\"#144b96\"/>")) << svg;
}

}  // namespace
}  // namespace weft
