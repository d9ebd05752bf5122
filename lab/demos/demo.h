// A Demo computes the figures of one idea of the Transformer with Weft's own ops and layers: for instance the variance
// of q·k for a width that the caller chooses. `weft demo` has a command for each.
//
//   Demo demo = ScaleDemo();
//   WEFT_RETURN_IF_ERROR(SetFromText("64", demo.flags[0]));
//   WEFT_ASSIGN_OR_RETURN(const DemoResult result, demo.run());
//   std::fputs(PrintText(result).c_str(), stdout);
#ifndef WEFT_LAB_DEMOS_DEMO_H_
#define WEFT_LAB_DEMOS_DEMO_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/run/runner.h"
#include "weft/options/hyperparameters.h"

namespace weft {

using DemoCell = std::variant<std::string, int64_t, double>;

struct DemoTable {
  std::string name;                         // the key in JSON
  std::string title;                        // a line above the table
  std::vector<std::string> columns;         // all different; the keys in JSON, with _ for spaces
  std::vector<std::vector<DemoCell>> rows;  // each as long as `columns`
};

struct DemoMatrix {
  std::string name;   // the key in JSON
  std::string title;  // a line above the matrix
  int64_t rows = 0, columns = 0;
  std::vector<double> values;  // row by row
};

struct PlotCurve {
  std::string name;
  std::vector<double> values;  // from x = CurvePanel::first on, in steps of 1 / CurvePanel::per_unit
};

struct CurvePanel {
  std::string title, x_label;
  std::vector<PlotCurve> curves;
  int64_t first = 0, per_unit = 1;
  double low = 0, high = 1;  // the ends of the y axis; values beyond them are drawn at the ends
  bool logarithmic = false;  // powers of ten on the y axis; `low` must be positive
};

struct HeatMap {
  std::string title, row_label, column_label;
  int64_t rows = 0, columns = 0;
  std::vector<double> values;           // row by row
  double low = 0, high = 1;             // blue and red, with white between them; from white to blue if low is 0
  std::vector<std::string> names = {};  // of rows and columns; empty: numbers from `first` on
  int64_t first = 0;
};

// Return an SVG picture with the panels side by side, which needs no script, no style sheet and no other file. `title`
// is for readers who don't see the picture.
std::string DrawCurves(const std::string& title, absl::Span<const CurvePanel> panels);
std::string DrawHeatMaps(const std::string& title, absl::Span<const HeatMap> maps);

struct DemoResult {
  std::vector<DemoTable> tables;
  std::string picture;  // of DrawCurves or DrawHeatMaps
  std::vector<DemoMatrix> matrices = {};
};

struct Demo {
  std::string name;     // "scale", for `weft demo scale`
  std::string summary;  // the command's line in the help of `weft`
  std::string about;    // the first line of its own help
  std::string example;  // flags of an example, such as "--d-k=512"
  Hyperparameters flags;
  std::function<absl::StatusOr<DemoResult>()> run;  // reads the values of `flags`
};

// Returns the tables and matrices with aligned columns. Numbers have 4 significant digits. But a matrix of whole
// numbers below 1e9 has no decimals, and another one has 4 if its largest finite number is at least 0.01 and below 1e6
// in size.
std::string PrintText(const DemoResult& result);
// Returns one JSON object with an array for each table, which has an object for each row, and an array for each matrix,
// which has an array for each row. Numbers that are not finite are null.
std::string PrintJson(const DemoResult& result);

using Numbers = std::vector<double>;
// Compiles a tape, runs it once, and returns the elements of each of `fetch`, which must be f32 or f64. `seed`: of the
// initial values of parameters.
absl::StatusOr<std::vector<Numbers>> EvaluateOnce(const Tape& tape, const VarList& fetch, uint64_t seed = 1,
                                                  absl::Span<const FeedPair> feeds = {});

// Returns all demos, in the order of the help of `weft`, which has a command for each.
std::vector<Demo> AllDemos();
Demo AttentionDemo();    // every matrix of attention on a few tokens
Demo ScaleDemo();        // why scores are divided by the square root of d_k
Demo HeadsDemo();        // the parameters of one head, of averaged and of concatenated heads
Demo MasksDemo();        // attention weights under several masks
Demo PatternsDemo();     // local, strided and dilated attention, and the work of score functions
Demo PositionsDemo();    // sinusoids and shifts
Demo NormsDemo();        // LayerNorm and BatchNorm on padded batches
Demo DepthDemo();        // activations and gradients in deep stacks
Demo ActivationsDemo();  // ReLU, GELU and SiLU

}  // namespace weft

#endif  // WEFT_LAB_DEMOS_DEMO_H_
