// The demo of masks: the attention weights of the same scores under several masks, and what a later token can change.
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

}  // namespace weft
