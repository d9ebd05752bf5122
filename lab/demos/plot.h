// These functions draw curves and heat maps as SVG pictures, which need no script, no style sheet and no other file.
//
//   DrawCurves("The weights by rank", {{.title = "scaled", .x_label = "key", .curves = {{"d_k = 8", {0.4, 0.2,
//   0.1}}}}});
#ifndef WEFT_LAB_DEMOS_PLOT_H_
#define WEFT_LAB_DEMOS_PLOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weft {

struct PlotCurve {
  std::string name;
  std::vector<double> values;  // one for each whole number x, from CurvePanel::first on
};

struct CurvePanel {
  std::string title, x_label;
  std::vector<PlotCurve> curves;
  int64_t first = 0;
  double low = 0, high = 1;  // the ends of the y axis; values beyond them are drawn at the ends
  bool logarithmic = false;  // powers of ten on the y axis; `low` must be positive
};

struct HeatMap {
  std::string title, row_label, column_label;
  int64_t rows = 0, columns = 0;
  std::vector<double> values;           // row by row
  double low = 0, high = 1;             // blue and red, with white between them; from white to blue if low is 0
  std::vector<std::string> names = {};  // of rows and columns; empty: numbers
};

// Return a picture with the panels side by side. `title` is for readers who don't see the picture.
std::string DrawCurves(const std::string& title, absl::Span<const CurvePanel> panels);
std::string DrawHeatMaps(const std::string& title, absl::Span<const HeatMap> maps);

}  // namespace weft

#endif  // WEFT_LAB_DEMOS_PLOT_H_
