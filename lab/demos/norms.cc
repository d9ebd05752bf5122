// The demo of norms: a sentence's result in batches with more and more padding, with LayerNorm and with BatchNorm.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/models/layers.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct NormsOptions {
  int64_t width = 64, sentences = 8, length = 10;
  uint64_t seed = 1;
};

// Returns norm(x) of sentences [B, T, C] that `padding` rows of the padding token's vector follow, without these rows.
Var Normalized(bool batch_norm, Var sentences, Var padding_vector, int64_t padding) {
  const int64_t batch = sentences.shape().dim(0), length = sentences.shape().dim(1), width = sentences.shape().dim(2);
  Var x = sentences;
  if (padding > 0) x = Concat({x, BroadcastTo(padding_vector, {batch, padding, width})}, 1);
  VarList updates;
  const Var y = batch_norm ? BatchNorm(absl::StrCat("batch_norm", padding), x, {}, &updates)
                           : LayerNorm(absl::StrCat("layer_norm", padding), x);
  return Slice(y, 1, 0, length);
}

absl::StatusOr<DemoResult> Run(const NormsOptions& o) {
  Tape tape;
  const Var x = tape.Parameter("x", {kF64, {o.sentences, o.length, o.width}}, Gaussian(1));
  const Var padding_vector = tape.Parameter("padding", {kF64, {1, 1, o.width}}, Gaussian(1));
  constexpr int64_t kParts[] = {0, 10, 25, 50, 75, 90};  // percent of the rows that are padding
  VarList fetch;
  VarList plain;  // without padding
  std::vector<int64_t> paddings;
  for (const int64_t part : kParts) {
    const int64_t padding = (o.length * part + (100 - part) / 2) / (100 - part);
    paddings.push_back(padding);
    for (const bool batch_norm : {false, true}) {
      const Var y = Normalized(batch_norm, x, padding_vector, padding);
      if (part == 0) plain.push_back(y);
      fetch.push_back(Sqrt(Mean(Square(y - plain[batch_norm]))));
      fetch.push_back(Sqrt(Mean(Square(y))));
    }
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, o.seed));
  DemoTable table = {.name = "padding",
                     .title = "root mean square of the results, and of their change by padding",
                     .columns = {"length", "padded", "LayerNorm", "change", "BatchNorm", "its change"}};
  CurvePanel panel = {.title = "change of the sentences' own results",
                      .x_label = "padded rows, in steps: 0, 10, 25, 50, 75 and 90 %",
                      .curves = {{"LayerNorm", {}}, {"BatchNorm", {}}},
                      .high = 2};
  for (size_t i = 0; i < paddings.size(); ++i) {
    table.rows.push_back({o.length, paddings[i], v[4 * i + 1][0], v[4 * i][0], v[4 * i + 3][0], v[4 * i + 2][0]});
    panel.curves[0].values.push_back(v[4 * i][0]);
    panel.curves[1].values.push_back(v[4 * i + 2][0]);
  }
  return DemoResult{{std::move(table)}, DrawCurves("The change of normalised sentences by padding", {panel})};
}

}  // namespace

Demo NormsDemo() {
  auto options = std::make_shared<NormsOptions>();
  return {.name = "norms",
          .summary = "compares LayerNorm and BatchNorm on padded batches",
          .about =
              "Normalises the same sentences with more and more padding behind them, and measures how far the "
              "results of their own tokens change.",
          .example = "--length=20 --sentences=4",
          .flags = {{"width", "width of the model", &options->width, {.low = 2, .high = 1024}},
                    {"sentences", "number of sentences in the batch", &options->sentences, {.low = 1, .high = 64}},
                    {"length", "tokens of each sentence", &options->length, {.low = 1, .high = 64}},
                    {"seed", "seed of the random numbers", &options->seed}},
          .run = [options] { return Run(*options); }};
}

}  // namespace weft
