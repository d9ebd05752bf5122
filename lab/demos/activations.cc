// ActivationsDemo shows the activations of feed-forward layers and their slopes, which autograd computes.
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int64_t kLast = 4, kPerUnit = 10;  // the picture has x from -kLast to kLast in tenths

absl::StatusOr<DemoResult> Run() {
  Tape tape;
  const Var x = tape.Input("x", {kF64, {2 * kLast * kPerUnit + 1}});
  Numbers points;
  for (int64_t i = -kLast * kPerUnit; i <= kLast * kPerUnit; ++i) points.push_back(static_cast<double>(i) / kPerUnit);
  const std::pair<const char*, Var> kinds[] = {{"ReLU", Relu(x)}, {"GELU", Gelu(x)}, {"SiLU", Silu(x)}};
  VarList fetch;
  for (const auto& [name, y] : kinds) fetch.insert(fetch.end(), {y, Gradient(Sum(y), {x})[0]});
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, 1, {{x, points}}));

  DemoTable table = {.name = "activations", .title = "activations and their slopes", .columns = {"x"}};
  CurvePanel values = {
      .title = "activation", .x_label = "x", .first = -kLast, .per_unit = kPerUnit, .low = -1, .high = 4};
  CurvePanel slopes = {.title = "slope", .x_label = "x", .first = -kLast, .per_unit = kPerUnit, .low = -0.5, .high = 2};
  for (size_t k = 0; k < std::size(kinds); ++k) {
    table.columns.insert(table.columns.end(), {kinds[k].first, absl::StrCat("slope of ", kinds[k].first)});
    values.curves.push_back({kinds[k].first, v[2 * k]});
    slopes.curves.push_back({kinds[k].first, v[2 * k + 1]});
  }
  for (size_t i = kPerUnit; i < points.size() - kPerUnit; i += kPerUnit) {
    table.rows.push_back({points[i]});
    for (const Numbers& column : v) table.rows.back().emplace_back(column[i]);
  }
  return DemoResult{{std::move(table)}, DrawCurves("Activations and their slopes", {values, slopes})};
}

}  // namespace

Demo ActivationsDemo() {
  return {.name = "activations",
          .summary = "compares ReLU, GELU and SiLU, and their slopes",
          .about = "Prints and draws the activations of feed-forward layers, and their slopes.",
          .example = "--json",
          .flags = {},
          .run = Run};
}

}  // namespace weft
