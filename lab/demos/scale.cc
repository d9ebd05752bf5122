// The demo of the factor 1 / √d_k: the variance of q·k for a width d_k, and the softmax of such scores.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
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
  if (options.draws * options.keys * options.d_k > kMaxNumbers) {
    return InvalidArgument("draws: ", options.draws, " draws of ", options.keys, " keys of width ", options.d_k,
                           " are more than ", kMaxNumbers, " numbers");
  }
  std::vector<int64_t> widths(std::begin(kWidths), std::end(kWidths));
  if (std::find(widths.begin(), widths.end(), options.d_k) == widths.end()) widths.push_back(options.d_k);
  std::sort(widths.begin(), widths.end());
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

}  // namespace weft
