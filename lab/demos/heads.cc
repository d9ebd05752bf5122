// The demo of heads: the parameters of three forms of attention, and heads as parts of one map of low rank.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/models/attention.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct HeadsOptions {
  int64_t width = 512, heads = 8;
  uint64_t seed = 1;
};

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
  WEFT_ASSIGN_OR_RETURN(DemoTable low_rank, CompareWithLowRank(options));
  return DemoResult{{std::move(table), std::move(low_rank)},
                    DrawCurves("Parameters of three forms of attention by the number of heads", {panel})};
}

}  // namespace

Demo HeadsDemo() {
  auto options = std::make_shared<HeadsOptions>();
  return {
      .name = "heads",
      .summary = "counts what each form of attention heads costs",
      .about =
          "Counts the parameters of one full head, of averaged heads and of concatenated heads, and shows that "
          "a head's values have a low rank.",
      .example = "--width=768 --heads=12",
      .flags = {{"width", "width d of the model", &options->width, {.low = 1, .high = 2048}},
                {"heads", "number h of heads, which must divide the width", &options->heads, {.low = 1, .high = 64}},
                {"seed", "seed of the random numbers", &options->seed}},
      .run = [options] { return Run(*options); }};
}

}  // namespace weft
