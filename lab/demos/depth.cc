// These demos show what norms and depth do.
//
// NormsDemo shows a sentence's result in batches with more and more padding, with LayerNorm and with BatchNorm.
// DepthDemo shows activations and gradients in a deep stack of feed-forward layers, with and without residual
// connections and norms, and the saturation of tanh by the initial weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
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
// `name`: of the norm's parameters.
Var Normalized(const std::string& name, bool batch_norm, Var sentences, Var padding_vector, int64_t padding) {
  const int64_t batch = sentences.shape().dim(0), length = sentences.shape().dim(1), width = sentences.shape().dim(2);
  Var x = sentences;
  if (padding > 0) x = Concat({x, BroadcastTo(padding_vector, {batch, padding, width})}, 1);
  VarList updates;
  const Var y = batch_norm ? BatchNorm(name, x, {}, &updates) : LayerNorm(name, x);
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
      // Parts of short sentences round to the same number of rows, so the part gives the norm its name.
      const std::string name = absl::StrCat(batch_norm ? "batch_norm" : "layer_norm", part);
      const Var y = Normalized(name, batch_norm, x, padding_vector, padding);
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
                      .curves = {{"LayerNorm", {}}, {"BatchNorm", {}}}};
  for (size_t i = 0; i < paddings.size(); ++i) {
    table.rows.push_back({o.length, paddings[i], v[4 * i + 1][0], v[4 * i][0], v[4 * i + 3][0], v[4 * i + 2][0]});
    panel.curves[0].values.push_back(v[4 * i][0]);
    panel.curves[1].values.push_back(v[4 * i + 2][0]);
    panel.high = std::max(panel.high, std::ceil(2 * v[4 * i + 2][0]) / 2);
  }
  return DemoResult{{std::move(table)}, DrawCurves("The change of normalised sentences by padding", {panel})};
}

constexpr int64_t kRows = 32;        // vectors that go through the stack
constexpr double kSaturated = 0.99;  // |tanh| above which its slope is below 0.02
constexpr int64_t kSaturatedLayers = 10;

struct DepthOptions {
  int64_t layers = 200, width = 64;
  uint64_t seed = 1;
};

struct Form {
  const char* name;
  bool residual;
  enum { kNone, kBefore, kAfter } norm;
};

constexpr Form kForms[] = {{"plain", false, Form::kNone},
                           {"norm", false, Form::kAfter},
                           {"residual", true, Form::kNone},
                           {"residual, norm after", true, Form::kAfter},
                           {"residual, norm before", true, Form::kBefore}};

// He's initial weights are for the product before a rectifier; the product after it gets Xavier's.
struct Initial {
  const char* name;
  Initializer hidden, output;
};
const Initial kInitial[] = {{"Gaussian 0.02", Gaussian(0.02f), Gaussian(0.02f)},
                            {"Xavier", XavierGaussian(), XavierGaussian()},
                            {"He", HeGaussian(), XavierGaussian()}};

Var Rms(Var x) { return Sqrt(Mean(Square(x))); }

struct Stack {
  Numbers activations, gradients;  // of each layer's result, the input first
};

// Returns the root mean squares of all layers' results, and of the gradients of a loss Σ g ∘ y by them, with random g.
absl::StatusOr<Stack> Measure(const DepthOptions& o, const Form& form, const Initial& initial) {
  Tape tape;
  Var x = tape.Parameter("x", {kF64, {kRows, o.width}}, Gaussian(1));
  const FeedForwardOptions options = {.width = o.width,
                                      .activation = Activation::kRelu,
                                      .initializer = initial.hidden,
                                      .output_initializer = initial.output};
  VarList results = {x};
  for (int64_t i = 0; i < o.layers; ++i) {
    const std::string layer = absl::StrCat("layer", i), norm = absl::StrCat("norm", i);
    Var y = FeedForward(layer, form.norm == Form::kBefore ? LayerNorm(norm, x) : x, options);
    if (form.residual) y = x + y;
    x = form.norm == Form::kAfter ? LayerNorm(norm, y) : y;
    results.push_back(x);
  }
  const Var g = tape.Parameter("g", {kF64, {kRows, o.width}}, Gaussian(1));
  VarList fetch;
  for (const Var& result : results) fetch.push_back(Rms(result));
  for (const Var& gradient : Gradient(Sum(g * x), results)) fetch.push_back(Rms(gradient));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, o.seed));
  Stack stack;
  for (size_t i = 0; i < v.size(); ++i) (i < results.size() ? stack.activations : stack.gradients).push_back(v[i][0]);
  return stack;
}

// Returns a table of a stack of tanh(Linear(x)), for standard deviations of the weights from 0.1 / √C to 10 / √C.
absl::StatusOr<DemoTable> Saturation(const DepthOptions& o) {
  DemoTable table = {.name = "saturation",
                     .title = absl::StrCat(kSaturatedLayers, " layers of tanh, by the weights' standard deviation"),
                     .columns = {"deviation · √C", "mean |y|", "saturated", "gradient of x"}};
  for (const double gain : {0.1, 1.0, 3.0, 10.0}) {
    Tape tape;
    const Var x = tape.Parameter("x", {kF64, {kRows, o.width}}, Gaussian(1));
    Var y = x;
    const LinearOptions options = {.initializer = XavierGaussian(static_cast<float>(gain))};
    for (int64_t i = 0; i < kSaturatedLayers; ++i) y = Tanh(Linear(absl::StrCat("layer", i), y, o.width, options));
    const Var g = tape.Parameter("g", {kF64, {kRows, o.width}}, Gaussian(1));
    const Var size = Abs(y), saturated = Cast(Greater(size, Number(size, kSaturated)), kF64);
    WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v,
                          EvaluateOnce(tape, {Mean(size), Mean(saturated), Rms(Gradient(Sum(g * y), {x})[0])}, o.seed));
    table.rows.push_back({gain, v[0][0], v[1][0], v[2][0]});
  }
  return table;
}

absl::StatusOr<DemoResult> Run(const DepthOptions& o) {
  DemoTable table = {
      .name = "depth",
      .title = "size of the results of layers, and of the gradient of the input",
      .columns = {"form", "initial weights", "y after 1", absl::StrCat("y after ", o.layers), "gradient of x"}};
  CurvePanel results = {.title = "size of the results (Xavier)",
                        .x_label = "layer (beyond 1e±12: at the edge)",
                        .low = 1e-12,
                        .high = 1e12,
                        .logarithmic = true};
  CurvePanel gradients = results;
  gradients.title = "size of the gradients (Xavier)";
  for (const Form& form : kForms) {
    for (const Initial& initial : kInitial) {
      WEFT_ASSIGN_OR_RETURN(Stack stack, Measure(o, form, initial));
      const size_t n = stack.activations.size();
      table.rows.push_back(
          {form.name, initial.name, stack.activations[1], stack.activations[n - 1], stack.gradients[0]});
      if (std::string(initial.name) != "Xavier") continue;
      results.curves.push_back({form.name, std::move(stack.activations)});
      gradients.curves.push_back({form.name, std::move(stack.gradients)});
    }
  }
  WEFT_ASSIGN_OR_RETURN(DemoTable saturation, Saturation(o));
  return DemoResult{{std::move(table), std::move(saturation)},
                    DrawCurves("Results and gradients by depth", {results, gradients})};
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

Demo DepthDemo() {
  auto options = std::make_shared<DepthOptions>();
  return {.name = "depth",
          .summary = "follows activations and gradients through many layers",
          .about =
              "Measures activations and gradients in a deep stack of feed-forward layers, with and without "
              "residual connections and norms, by initial weights.",
          .example = "--layers=50",
          .flags = {{"layers", "number of layers", &options->layers, {.low = 2, .high = 500}},
                    {"width", "width C of each layer", &options->width, {.low = 2, .high = 256}},
                    {"seed", "seed of the random numbers", &options->seed}},
          .run = [options] { return Run(*options); }};
}

}  // namespace weft
