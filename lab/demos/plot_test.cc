// Tests the pictures of demos.
#include <cmath>
#include <string>
#include <vector>

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

TEST(PlotTest, AxisOfXHasWholeNumbers) {
  const std::string svg =
      DrawCurves("t", {{.curves = {{"y", {0, 0, 0, 0, 0, 0, 0, 0, 0}}}, .first = -1, .per_unit = 4}});
  for (const char* label :
       {"x=\"56.0\" y=\"278.0\" text-anchor=\"middle\">-1<", "x=\"216.0\" y=\"278.0\" text-anchor=\"middle\">0<",
        "x=\"376.0\" y=\"278.0\" text-anchor=\"middle\">1<"}) {
    EXPECT_TRUE(absl::StrContains(svg, label)) << svg;
  }
}

TEST(PlotTest, HeatMapsOfManyRowsHaveFewLabels) {
  const std::string svg =
      DrawHeatMaps("t", {{.rows = 64, .columns = 64, .values = std::vector<double>(64 * 64), .first = 1}});
  for (const char* label : {">1<", ">17<", ">33<", ">49<"}) EXPECT_TRUE(absl::StrContains(svg, label)) << svg;
  EXPECT_FALSE(absl::StrContains(svg, ">2<")) << svg;
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
