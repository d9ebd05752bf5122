// These demos show how positions, scaled scores and heads of attention work.
//
// ScaleDemo shows the factor 1 / √d_k: the variance of q·k for a width d_k, and the softmax of such scores.
// PositionsDemo shows the table of sinusoids, and why it lets attention compute distances. HeadsDemo shows the
// parameters of three forms of attention, and heads as parts of one map of low rank.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int64_t kWidths[] = {1, 8, 64, 512};     // that are shown beside the caller's
constexpr int64_t kMaxNumbers = int64_t{1} << 28;  // in all keys of a width: 1 GiB

struct ScaleOptions {
  int64_t d_k = 64, keys = 16, draws = 1000;
  uint64_t seed = 1;
};

// The figures of one width, as means over all draws.
struct Figures {
  double variance, largest, entropy, gradient;
  std::vector<double> weights;  // from the largest to the smallest
};

// Draws queries and keys of unit Gaussians, and computes attention weights. The gradient is that of the scores, if the
// weights' gradient consists of unit Gaussians, too: dS = P ∘ (dP - ΣP∘dP), which Weft's autograd computes.
absl::StatusOr<Figures> Measure(const ScaleOptions& options, int64_t width, bool scaled) {
  Tape tape;
  const int64_t draws = options.draws, keys = options.keys;
  const Var q = tape.Parameter("q", {kF32, {draws, 1, width}}, Gaussian(1));
  const Var k = tape.Parameter("k", {kF32, {draws, keys, width}}, Gaussian(1));
  const Var dp = tape.Parameter("dP", {kF32, {draws, 1, keys}}, Gaussian(1));
  Var scores = MatMul(q, k, {.transpose_b = true});  // [draws, 1, keys]
  if (scaled) scores = scores / std::sqrt(static_cast<double>(width));
  const Var p = Softmax(scores);
  const Var ds = Gradient(Sum(p * dp), {scores})[0];
  const Var entropy = Mean(Sum(-(p * LogSoftmax(scores)), -1));
  const Var sorted = Mean(TopK(p, keys)[0], {0, 1});  // [keys]
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v,
                        EvaluateOnce(tape, {Mean(Square(scores)), entropy, Mean(Abs(ds)), sorted}, options.seed));
  return Figures{.variance = v[0][0], .largest = v[3][0], .entropy = v[1][0], .gradient = v[2][0], .weights = v[3]};
}

absl::StatusOr<DemoResult> Run(const ScaleOptions& options) {
  std::vector<int64_t> widths(std::begin(kWidths), std::end(kWidths));
  if (std::find(widths.begin(), widths.end(), options.d_k) == widths.end()) widths.push_back(options.d_k);
  std::sort(widths.begin(), widths.end());
  if (options.draws * options.keys * widths.back() > kMaxNumbers) {
    return InvalidArgument("draws: ", options.draws, " draws of ", options.keys, " keys of width ", widths.back(),
                           " are more than ", kMaxNumbers, " numbers");
  }
  DemoResult result;
  std::vector<CurvePanel> panels;
  for (const bool scaled : {false, true}) {
    DemoTable table = {.name = scaled ? "scaled" : "unscaled",
                       .title = scaled ? "scores q·k / √d_k" : "scores q·k",
                       .columns = {"d_k", "variance", "theory", "largest weight", "entropy", "gradient"}};
    CurvePanel panel = {
        .title = scaled ? "softmax(q·k / √d_k)" : "softmax(q·k)", .x_label = "key, by its weight", .first = 1};
    for (const int64_t width : widths) {
      WEFT_ASSIGN_OR_RETURN(Figures f, Measure(options, width, scaled));
      const int64_t theory = scaled ? 1 : width;
      table.rows.push_back({width, f.variance, theory, f.largest, f.entropy, f.gradient});
      panel.curves.push_back({absl::StrCat("d_k = ", width), std::move(f.weights)});
    }
    result.tables.push_back(std::move(table));
    panels.push_back(std::move(panel));
  }
  result.picture = DrawCurves("Attention weights by rank, without and with the division by the root of d_k", panels);
  return result;
}

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

struct HeadsOptions {
  int64_t width = 512, heads = 8;
  uint64_t seed = 1;
};
constexpr int64_t kMaxCompared = 2048;  // width above which M_h [d, d] would need too much memory and time

struct Form {
  const char* name;
  const char* formula;
  bool all_heads;  // or one
  HeadMerge merge;
};

constexpr Form kForms[] = {
    {"one full head", "d(2·d_q + d)", false, HeadMerge::kAverage},
    {"h heads, averaged", "h·d(2·d_q + d)", true, HeadMerge::kAverage},
    {"h heads, concatenated", "h·d(d_q + d_k + 2·d_v)", true, HeadMerge::kProject},
};

// Returns the number of weights that attention of this form records. Queries and keys have the width d / h.
absl::StatusOr<int64_t> CountParameters(const Form& form, int64_t width, int64_t heads) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 2, width}});
  AttentionOptions options = {.heads = form.all_heads ? heads : 1,
                              .variant = {.query_width = width / heads, .merge = form.merge}};
  options.bias = false;
  if (form.merge == HeadMerge::kAverage) options.variant.value_width = width;
  MultiHeadAttention("attention", x, options);
  WEFT_RETURN_IF_ERROR(tape.status());
  int64_t count = 0;
  for (const ParameterSpec& spec : tape.program().parameters) count += spec.type.shape.elements();
  return count;
}

// Compares concatenated heads with the same heads that have a matrix M_h = W_O,h · W_V,h [d, d] each, and are added.
// Returns a table with the difference of the results.
absl::StatusOr<DemoTable> CompareWithLowRank(const HeadsOptions& o) {
  constexpr int64_t kTokens = 6;
  Tape tape;
  const int64_t d = o.width, d_v = d / o.heads;
  const auto matrix = [&](absl::string_view name, int64_t rows, int64_t columns) {
    return tape.Parameter(name, {kF64, {rows, columns}}, LeCunGaussian());
  };
  const Var x = tape.Parameter("x", {kF64, {kTokens, d}}, Gaussian(1));
  Var concatenated, sum;
  for (int64_t h = 0; h < o.heads; ++h) {
    const Var w_q = matrix(absl::StrCat("q", h), d_v, d), w_k = matrix(absl::StrCat("k", h), d_v, d),
              w_v = matrix(absl::StrCat("v", h), d_v, d), w_o = matrix(absl::StrCat("o", h), d, d_v);
    const auto linear = [&](Var rows, Var weight) { return MatMul(rows, weight, {.transpose_b = true}); };
    const Var scores = linear(linear(x, w_q), linear(x, w_k)) / std::sqrt(static_cast<double>(d_v));
    const Var weights = Softmax(scores);                            // [T, T]
    const Var part = linear(MatMul(weights, linear(x, w_v)), w_o);  // of the output layer: that of the head
    const Var full = MatMul(weights, linear(x, MatMul(w_o, w_v)));  // [T, d]
    concatenated = h == 0 ? part : concatenated + part;
    sum = h == 0 ? full : sum + full;
  }
  const Var difference = Max(Abs(concatenated - sum), {0, 1}), size = Max(Abs(sum), {0, 1});
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, {difference, size}, o.seed));
  return DemoTable{.name = "low_rank",
                   .title = "W_V,h [d_v, d] and W_O,h [d, d_v] of a head as one matrix M_h = W_O,h · W_V,h [d, d]",
                   .columns = {"rank of M_h", "parameters of M_h", "of its factors", "equal results"},
                   .rows = {{d_v, d * d, 2 * d * d_v, v[0][0] <= 1e-9 * v[1][0] ? "yes" : "no"}}};
}

absl::StatusOr<DemoResult> Run(const HeadsOptions& options) {
  if (options.width % options.heads != 0) {
    return InvalidArgument("heads: ", options.heads, " heads do not divide the width ", options.width);
  }
  const double full = 4.0 * options.width * options.width;
  DemoTable table = {.name = "parameters",
                     .title = absl::StrCat("d = ", options.width, ", h = ", options.heads,
                                           ", d_q = d_k = d / h = ", options.width / options.heads),
                     .columns = {"form", "formula", "parameters", "of 4d²"}};
  CurvePanel panel = {
      .title = "parameters / 4d²", .x_label = "heads: 2 to the power of", .low = 0.1, .high = 100, .logarithmic = true};
  for (const Form& form : kForms) {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountParameters(form, options.width, options.heads));
    table.rows.push_back({form.name, form.formula, count, count / full});
    panel.curves.push_back({form.name, {}});
    for (int64_t heads = 1; heads <= 64 && options.width % heads == 0; heads *= 2) {
      WEFT_ASSIGN_OR_RETURN(const int64_t each, CountParameters(form, options.width, heads));
      panel.curves.back().values.push_back(each / full);
    }
  }
  DemoResult result = {{std::move(table)},
                       DrawCurves("Parameters of three forms of attention by the number of heads", {panel})};
  if (options.width <= kMaxCompared) {
    WEFT_ASSIGN_OR_RETURN(result.tables.emplace_back(), CompareWithLowRank(options));
  }
  return result;
}

}  // namespace

Demo ScaleDemo() {
  auto options = std::make_shared<ScaleOptions>();
  return {.name = "scale",
          .summary = "shows why scores are divided by √d_k",
          .about =
              "Measures the variance of q·k for vectors of width d_k, and the softmax of such scores, with and "
              "without the division by √d_k.",
          .example = "--d-k=128",
          .flags = {{"d-k", "width of a query and of a key", &options->d_k, {.low = 1, .high = 4096}},
                    {"keys", "number of keys of each query", &options->keys, {.low = 2, .high = 256}},
                    {"draws", "number of random queries", &options->draws, {.low = 1, .high = 1e6}},
                    {"seed", "seed of the random numbers", &options->seed}},
          .run = [options] { return Run(*options); }};
}

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

Demo HeadsDemo() {
  auto options = std::make_shared<HeadsOptions>();
  return {
      .name = "heads",
      .summary = "counts what each form of attention heads costs",
      .about = absl::StrCat(
          "Counts the parameters of one full head, of averaged heads and of concatenated heads. Up to a width of ",
          kMaxCompared, ", also shows that a head's values have a low rank."),
      .example = "--width=768 --heads=12",
      .flags = {{"width", "width d of the model", &options->width, {.low = 1, .high = 16384}},
                {"heads", "number h of heads, which must divide the width", &options->heads, {.low = 1, .high = 128}},
                {"seed", "seed of the random numbers", &options->seed}},
      .run = [options] { return Run(*options); }};
}

}  // namespace weft
