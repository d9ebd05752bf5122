// These demos show which tokens a token attends to.
//
// MasksDemo applies several masks to the same scores. It also shows which outputs change with the last token.
// PatternsDemo shows which sources a target sees under sparse patterns, how many scores that are, and how many layers a
// token's content needs to reach every later token. It also counts the work of both score functions.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
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

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr int64_t kWidth = 8;

struct MasksOptions {
  int64_t tokens = 5, padding = 2;
  uint64_t seed = 1;
};

struct Mask {
  const char* name;
  const char* title;
  bool causal;
  bool padding, empty;  // whether sources are padding: the last ones, or all of them
};

constexpr Mask kMasks[] = {{"none", "no mask", false, false, false},
                           {"causal", "causal mask: no later sources", true, false, false},
                           {"padding", "padding mask: no padded sources", false, true, false},
                           {"both", "both masks", true, true, false},
                           {"nothing", "all sources are padding: rows that see nothing", false, false, true}};

// Returns a table with the size of each target's change if the last token changes, with and without a causal mask.
absl::StatusOr<DemoTable> ChangeTheLastToken(const MasksOptions& o) {
  Tape tape;
  const Var x = tape.Parameter("x", {kF64, {1, o.tokens, kWidth}}, Gaussian(1));
  const Var other = tape.Parameter("other", {kF64, {1, 1, kWidth}}, Gaussian(1));
  const Var changed = Concat({Slice(x, 1, 0, o.tokens - 1), other}, 1);
  DemoTable table = {.name = "changes",
                     .title = "change of each target's result if the last token is another one",
                     .columns = {"mask"}};
  VarList fetch;
  for (const bool causal : {false, true}) {
    const auto attend = [&](Var rows) {  // the same weights for both texts
      return ScaledDotProductAttention(rows, rows, rows, {.heads = 1, .causal = causal});
    };
    fetch.push_back(Norm(attend(x) - attend(changed), {2}));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, o.seed));
  for (int64_t i = 0; i < o.tokens; ++i) table.columns.push_back(absl::StrCat("target ", i + 1));
  for (size_t row = 0; row < v.size(); ++row) {
    table.rows.push_back({row == 0 ? "none" : "causal"});
    table.rows.back().insert(table.rows.back().end(), v[row].begin(), v[row].end());
  }
  return table;
}

absl::StatusOr<DemoResult> Run(const MasksOptions& o) {
  if (o.padding >= o.tokens) {
    return InvalidArgument("padding: ", o.padding, " of ", o.tokens, " tokens leave no token of the text");
  }
  Tape tape;
  const Var scores = tape.Parameter("scores", {kF64, {1, 1, o.tokens, o.tokens}}, Gaussian(1));
  VarList fetch;
  for (const Mask& mask : kMasks) {
    Var s = scores;
    if (mask.causal) s = CausalMask(s, kHidden);
    if (mask.padding || mask.empty) {
      const Var length = Fill(&tape, {kI32, {1}}, static_cast<double>(mask.empty ? 0 : o.tokens - o.padding));
      s = MaskFill(s, PaddingMask(length, o.tokens), kHidden);
    }
    fetch.push_back(Softmax(s));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, o.seed));
  DemoResult result;
  std::vector<HeatMap> maps;
  std::vector<std::string> names;
  for (int64_t i = 0; i < o.tokens; ++i) names.push_back(absl::StrCat(i + 1));
  for (size_t m = 0; m < v.size(); ++m) {
    DemoTable table = {.name = kMasks[m].name, .title = kMasks[m].title, .columns = {"target"}};
    for (int64_t i = 0; i < o.tokens; ++i) table.columns.push_back(absl::StrCat("source ", i + 1));
    table.columns.push_back("sum");
    for (int64_t i = 0; i < o.tokens; ++i) {
      const auto weights = v[m].begin() + i * o.tokens;
      std::vector<DemoCell> row = {i + 1};
      row.insert(row.end(), weights, weights + o.tokens);
      row.emplace_back(std::accumulate(weights, weights + o.tokens, 0.0));
      table.rows.push_back(std::move(row));
    }
    result.tables.push_back(std::move(table));
    maps.push_back({kMasks[m].name, m == 0 ? "target" : "", "source", o.tokens, o.tokens, v[m], 0, 1, names});
  }
  WEFT_ASSIGN_OR_RETURN(DemoTable changes, ChangeTheLastToken(o));
  result.tables.push_back(std::move(changes));
  result.picture = DrawHeatMaps("Attention weights of the same scores under five masks", maps);
  return result;
}

struct PatternsOptions {
  int64_t tokens = 16, window = 4, stride = 4, dilation = 2, key_width = 64;
};

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
  const std::pair<const char*, AttentionOptions> patterns[] = {
      {"global", {.causal = true}},
      {"local", {.causal = true, .variant = {.patterns = {{.window = o.window}}}}},
      {"strided", {.causal = true, .variant = {.patterns = {{.window = o.window, .stride = o.stride}}}}},
      {"dilated", {.causal = true, .variant = {.patterns = {{.window = o.window, .dilation = o.dilation}}}}}};
  for (const auto& [name, options] : patterns) MultiHeadAttention(name, x, options);
  VarList fetch;  // the attention weights of each, [1, 1, T, T]
  for (const Tape::NamedValue& probe : tape.probes()) fetch.push_back(probe.value);
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> weights, EvaluateOnce(tape, fetch));
  DemoTable table = {.name = "patterns",
                     .title = absl::StrCat("patterns of a decoder with ", o.tokens, " tokens"),
                     .columns = {"pattern", "scores", "share of global", "layers until all is seen"}};
  std::vector<HeatMap> maps;
  int64_t global = 0;
  for (size_t i = 0; i < std::size(patterns); ++i) {
    Numbers seen = weights[i];
    for (double& weight : seen) weight = weight != 0 ? 1 : 0;
    const int64_t scores = std::count(seen.begin(), seen.end(), 1.0);
    if (i == 0) global = scores;
    const int64_t layers = LayersToSeeAll(seen, o.tokens);
    table.rows.push_back({patterns[i].first, scores, static_cast<double>(scores) / static_cast<double>(global),
                          layers == 0 ? std::string("never") : absl::StrCat(layers)});
    maps.push_back({patterns[i].first, i == 0 ? "target" : "", "source", o.tokens, o.tokens, std::move(seen)});
    maps.back().first = 1;  // as in the masks
  }
  return DemoResult{.tables = {std::move(table), ScoreTable(o)},
                    .picture = DrawHeatMaps("The sources that a target sees under four patterns", maps)};
}

}  // namespace

Demo MasksDemo() {
  auto options = std::make_shared<MasksOptions>();
  return {.name = "masks",
          .summary = "shows attention weights under several masks",
          .about =
              "Prints the attention weights of the same random scores without a mask, with a causal mask, with a "
              "padding mask, with both, and if everything is hidden.",
          .example = "--tokens=8 --padding=3",
          .flags = {{"tokens", "number of tokens, padding included", &options->tokens, {.low = 2, .high = 16}},
                    {"padding", "number of padded tokens at the end", &options->padding, {.low = 0, .high = 15}},
                    {"seed", "seed of the random numbers", &options->seed}},
          .run = [options] { return Run(*options); }};
}

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
