// The demo of positions: the table of sinusoids, and why it lets attention compute distances.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct PositionsOptions {
  int64_t length = 64, width = 64;
};

absl::StatusOr<DemoResult> Run(const PositionsOptions& o) {
  if (o.width % 2 != 0) return InvalidArgument("width: ", o.width, " is odd, but sinusoids come in pairs");
  Tape tape;
  const Var table = SinusoidalPositions(&tape, kF64, o.length, o.width);       // [T, C]
  const Var products = MatMul(table, table, {.transpose_b = true});            // [T, T]
  const VarList angles = RotaryTables(&tape, kF64, o.length, o.width, 10000);  // [T, C/2] each
  DemoTable rows = {.name = "shifts",
                    .title = "position p + k from position p, by one rotation for all p",
                    .columns = {"k", "largest error", "product of rows p and p + k", "spread"}};
  VarList fetch = {table, products};
  std::vector<int64_t> shifts;
  for (int64_t k = 1; k < o.length; k *= 2) {
    shifts.push_back(k);
    // A row has pairs (sin, cos). Turning each pair back by the angle of position k adds k to p.
    const Var turned = Rotary(Slice(table, 0, 0, o.length - k), Slice(angles[0], 0, k, k + 1),
                              -Slice(angles[1], 0, k, k + 1), RotaryLayout::kPairs);
    const Var later = Slice(table, 0, k, o.length);
    fetch.push_back(Max(Abs(turned - later), {0, 1}));
    fetch.push_back(Sum(Slice(table, 0, 0, o.length - k) * later, -1));  // [T - k]
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch));
  for (size_t i = 0; i < shifts.size(); ++i) {
    const Numbers& product = v[3 + 2 * i];
    const auto [low, high] = std::minmax_element(product.begin(), product.end());
    const auto rounded = [](double error) { return error < 1e-9 ? 0 : error; };  // rounding of f64
    rows.rows.push_back({shifts[i], rounded(v[2 + 2 * i][0]), product[0], rounded(*high - *low)});
  }
  const double largest = static_cast<double>(o.width) / 2;
  const HeatMap maps[] = {
      {"sinusoids", "position p", "feature", o.length, o.width, v[0], -1, 1},
      {"products of positions", "position p", "position p'", o.length, o.length, v[1], -largest, largest}};
  return DemoResult{{std::move(rows)}, DrawHeatMaps("Sinusoidal positions, and the products of their rows", maps)};
}

}  // namespace

Demo PositionsDemo() {
  auto options = std::make_shared<PositionsOptions>();
  return {.name = "positions",
          .summary = "draws sinusoidal positions and shifts them",
          .about =
              "Draws the table of sinusoidal positions. Shows that one rotation moves every position by k, and that "
              "the product of two positions depends on their distance only.",
          .example = "--width=128",
          .flags = {{"length", "number of positions", &options->length, {.low = 2, .high = 512}},
                    {"width", "width of the model, an even number", &options->width, {.low = 2, .high = 512}}},
          .run = [options] { return Run(*options); }};
}

}  // namespace weft
