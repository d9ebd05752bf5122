// The demo of sparse patterns: which sources a target sees, how many scores that are, and how many layers a token's
// content needs to reach every later token. It also counts the work of both score functions.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"
#include "weft/models/attention.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct PatternsOptions {
  int64_t tokens = 16, window = 4, stride = 4, dilation = 2, key_width = 64;
};

struct Pattern {
  std::string name;
  AttentionOptions options;
};

std::vector<Pattern> Patterns(const PatternsOptions& o) {
  return {{"global", {.causal = true}},
          {"local", {.causal = true, .variant = {.patterns = {{.window = o.window}}}}},
          {"strided", {.causal = true, .variant = {.patterns = {{.window = o.window, .stride = o.stride}}}}},
          {"dilated", {.causal = true, .variant = {.patterns = {{.window = o.window, .dilation = o.dilation}}}}}};
}

// Returns the smallest number of layers after which every target depends on all sources before it, or 0 if no number of
// layers suffices. `weights`: [T, T], not 0 where a target sees a source. The number of layers from a source to a
// target is the length of the shortest path of such steps (Floyd and Warshall).
int64_t LayersToSeeAll(const Numbers& weights, int64_t tokens) {
  std::vector<int64_t> layers(weights.size());
  std::transform(weights.begin(), weights.end(), layers.begin(), [&](double w) { return w != 0 ? 1 : tokens + 1; });
  for (int64_t between = 0; between < tokens; ++between) {
    for (int64_t target = 0; target < tokens; ++target) {
      for (int64_t source = 0; source < tokens; ++source) {
        int64_t& least = layers[target * tokens + source];
        least = std::min(least, layers[target * tokens + between] + layers[between * tokens + source]);
      }
    }
  }
  int64_t most = 1;
  for (int64_t target = 0; target < tokens; ++target) {
    const auto row = layers.begin() + target * tokens;
    most = std::max(most, *std::max_element(row, row + target + 1));
  }
  return most <= tokens ? most : 0;
}

// Returns a table with the work of one head's scores, for each score function.
DemoTable ScoreTable(const PatternsOptions& o) {
  const int64_t pairs = o.tokens * o.tokens, d = o.key_width;
  return {.name = "scores",
          .title = absl::StrCat("one head's scores of ", o.tokens, " targets and ", o.tokens, " sources, d_k = ", d),
          .columns = {"score", "weights", "multiplications", "tanh", "values that the backward pass reads"},
          .rows = {{"dot", int64_t{0}, pairs * d, int64_t{0}, 2 * o.tokens * d},
                   {"additive", 2 * d * d + d, 2 * o.tokens * d * d + pairs * d, pairs * d, pairs * d}}};
}

absl::StatusOr<DemoResult> Run(const PatternsOptions& o) {
  Tape tape;
  const Var x = tape.Parameter("x", {kF64, {1, o.tokens, 4}}, Gaussian(1));
  const std::vector<Pattern> patterns = Patterns(o);
  for (const Pattern& pattern : patterns) MultiHeadAttention(pattern.name, x, pattern.options);
  VarList fetch;  // the attention weights of each, [1, 1, T, T]
  for (const Tape::NamedValue& probe : tape.probes()) fetch.push_back(probe.value);
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> weights, EvaluateOnce(tape, fetch));
  DemoTable table = {.name = "patterns",
                     .title = absl::StrCat("patterns of a decoder with ", o.tokens, " tokens"),
                     .columns = {"pattern", "scores", "share of global", "layers until all is seen"}};
  std::vector<HeatMap> maps;
  int64_t global = 0;
  for (size_t i = 0; i < patterns.size(); ++i) {
    Numbers seen = weights[i];
    for (double& weight : seen) weight = weight != 0 ? 1 : 0;
    const int64_t scores = std::count(seen.begin(), seen.end(), 1.0);
    if (i == 0) global = scores;
    const int64_t layers = LayersToSeeAll(seen, o.tokens);
    table.rows.push_back({patterns[i].name, scores, static_cast<double>(scores) / static_cast<double>(global),
                          layers == 0 ? std::string("never") : absl::StrCat(layers)});
    maps.push_back({patterns[i].name, i == 0 ? "target" : "", "source", o.tokens, o.tokens, std::move(seen)});
  }
  return DemoResult{.tables = {std::move(table), ScoreTable(o)},
                    .picture = DrawHeatMaps("The sources that a target sees under four patterns", maps)};
}

}  // namespace

Demo PatternsDemo() {
  auto options = std::make_shared<PatternsOptions>();
  return {.name = "patterns",
          .summary = "shows local, strided and dilated attention",
          .about =
              "Counts the scores of global, local, strided and dilated attention, and the layers until every token has "
              "seen all earlier ones. It also counts the work of dot and additive scores.",
          .example = "--tokens=64 --window=8 --stride=8",
          .flags = {{"tokens", "number of tokens", &options->tokens, {.low = 2, .high = 256}},
                    {"window",
                     "a target sees the tokens less than this number of positions away",
                     &options->window,
                     {.low = 1, .high = 256}},
                    {"stride",
                     "in the strided pattern, a target also sees distances that are multiples of this number",
                     &options->stride,
                     {.low = 1, .high = 256}},
                    {"dilation",
                     "in the dilated pattern, distances are multiples of this number",
                     &options->dilation,
                     {.low = 1, .high = 256}},
                    {"key-width",
                     "width d_k of a head's queries and keys, and of the additive score's hidden layer",
                     &options->key_width,
                     {.low = 1, .high = 65536}}},
          .run = [options] { return Run(*options); }};
}

}  // namespace weft
