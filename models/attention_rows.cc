// One row for each option of attention (attention.h). Options that differ between layers are lists.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/decimal.h"
#include "weft/base/status.h"
#include "weft/models/options.h"

namespace weft {
namespace {

constexpr std::pair<const char*, DistanceBias> kBiases[] = {
    {"none", DistanceBias::kNone}, {"alibi", DistanceBias::kAlibi}, {"buckets", DistanceBias::kBuckets}};
constexpr std::pair<const char*, std::optional<RotaryLayout>> kRotary[] = {
    {"none", std::nullopt}, {"halves", RotaryLayout::kHalves}, {"pairs", RotaryLayout::kPairs}};
constexpr std::pair<const char*, RotaryScalingKind> kScalings[] = {{"none", RotaryScalingKind::kNone},
                                                                   {"linear", RotaryScalingKind::kLinear},
                                                                   {"llama3", RotaryScalingKind::kLlama3},
                                                                   {"yarn", RotaryScalingKind::kYarn}};
constexpr std::pair<const char*, QueryKeyNorm> kQueryKeyNorms[] = {
    {"none", QueryKeyNorm::kNone}, {"head", QueryKeyNorm::kHead}, {"full", QueryKeyNorm::kFull}};

// Returns the shortest decimal number, without an exponent, that is `value` when it is read.
std::string Decimal(double value) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed).ptr};
}

// Returns a row for one field of the attention patterns: a number for all layers, or a list that layers repeat.
template <class T>
Hyperparameter PatternRow(const char* flag, const char* help, T AttentionPattern::*field,
                          std::vector<AttentionPattern>* patterns, const char* needs = "") {
  constexpr bool kWhole = !std::is_same_v<T, double>;  // a bool is 0 or 1
  constexpr double kHigh = std::is_same_v<T, bool> ? 1 : 1e15;
  const T usual = AttentionPattern().*field;
  const double low = std::is_same_v<T, bool> ? 0 : static_cast<double>(usual);
  const auto get = [=]() -> std::string {
    std::vector<double> values;
    for (const AttentionPattern& each : *patterns) values.push_back(static_cast<double>(each.*field));
    if (values.empty()) values.push_back(static_cast<double>(usual));
    size_t period = 1;
    while (values.size() % period != 0 ||
           !std::equal(values.begin() + static_cast<std::ptrdiff_t>(period), values.end(), values.begin())) {
      ++period;
    }
    values.resize(period);
    return absl::StrJoin(values, ",", [](std::string* out, double value) { absl::StrAppend(out, Decimal(value)); });
  };
  const auto set = [=](absl::string_view text) -> absl::Status {
    std::vector<double> values;
    for (const absl::string_view word : absl::StrSplit(text, ',')) {
      if (double value = 0;
          ParseDecimal(word, &value) && value >= low && value <= kHigh && (!kWhole || value == std::floor(value))) {
        values.push_back(value);
      } else {
        return InvalidArgument("'", word, "' is not a ", kWhole ? "whole " : "", "number of at least ", low,
                               kHigh == 1 ? " and at most 1" : "", "; wanted one for all layers, or a list such as ",
                               kHigh == 1 ? 1 : 8, ",", low, " that layers repeat");
      }
    }
    constexpr size_t kMaxPeriod = 4096;
    std::vector<AttentionPattern> old = *patterns;
    if (old.empty()) old.emplace_back();
    const size_t size = std::lcm(old.size(), values.size());
    if (size > kMaxPeriod) return InvalidArgument("the patterns repeat after ", size, " layers only");
    patterns->resize(size);
    for (size_t i = 0; i < size; ++i) {
      (*patterns)[i] = old[i % old.size()];
      (*patterns)[i].*field = static_cast<T>(values[i % values.size()]);
    }
    if (std::all_of(patterns->begin(), patterns->end(),
                    [](const AttentionPattern& each) { return each == AttentionPattern(); })) {
      patterns->clear();
    }
    return absl::OkStatus();
  };
  return {flag, help, Hyperparameter::Text{get, set}, {.needs = needs, .type = "N[,N...]"}};
}

}  // namespace

Hyperparameters AttentionRows(AttentionVariant* attention) {
  AttentionVariant& a = *attention;
  return {
      Size("key-value-heads",
           "number of heads of keys and values; all serve equally many query heads; 0: the number of query heads",
           &a.key_value_heads, kMaxWidth, 0),
      Size("query-width", "width of a head's queries; 0: that of its keys", &a.query_width, kMaxWidth, 0),
      Size("key-width", "width of a head's keys; 0: query-width, or else width / heads", &a.key_width, kMaxWidth, 0),
      Size("value-width", "width of a head's values; 0: key-width or, with --head-merge=average, width", &a.value_width,
           kMaxWidth, 0),
      ChoiceRow<ScoreFunction>("score",
                               "function that compares a query with a key: their scaled product, or a small network "
                               "(Bahdanau et al., 2015)",
                               kScoreNames, &a.score),
      Size("score-width", "width of the hidden layer of --score=additive; 0: key-width", &a.score_width, kMaxWidth, 0,
           "score=additive"),
      ChoiceRow<HeadMerge>("head-merge",
                           "how the outputs of the heads are combined: by a linear layer, or as their mean",
                           kMergeNames, &a.merge),
      PatternRow("window",
                 "a token sees the tokens less than this number of positions away; 0: all; a list, such as 8,0, is "
                 "repeated over the layers",
                 &AttentionPattern::window, &a.patterns),
      PatternRow("stride",
                 "a token also sees each token whose distance is a multiple of this number; 0: none; may be a list",
                 &AttentionPattern::stride, &a.patterns),
      PatternRow(
          "dilation",
          "a token sees every token of the window whose distance is a multiple of this number, and the window is this "
          "many times as long; may be a list",
          &AttentionPattern::dilation, &a.patterns),
      ChoiceRow<DistanceBias>("distance-bias",
                              "number that is added to a score by distance: none, ALiBi's slopes, or learnt numbers "
                              "for buckets of distances as in T5",
                              kBiases, &a.distance_bias),
      Size("buckets", "number of buckets of --distance-bias=buckets", &a.buckets, kMaxWidth, 4,
           "distance-bias=buckets"),
      Size("max-distance", "distance from which on all tokens share the last bucket of --distance-bias=buckets",
           &a.max_distance, kMaxWidth, 4, "distance-bias=buckets"),
      AtLeast0("soft-cap", "bound C of attention scores, which become C · tanh(score / C); 0: no bound", &a.soft_cap),
      AtLeast0("score-scale", "factor of the products of queries and keys; 0: 1 divided by the root of key-width",
               &a.score_scale),
      ChoiceRow<QueryKeyNorm>("query-key-norm",
                              "norm of queries and keys before rotary positions: none, over each head's features, or "
                              "over the features of all heads",
                              kQueryKeyNorms, &a.query_key_norm),
      {"projection-bias", "the layers of queries, keys and values have biases; default: bias", &a.projection_bias},
      {"output-bias", "the output layer of attention has a bias; default: bias", &a.output_bias},
      ChoiceRow<std::optional<RotaryLayout>>(
          "rotary", "rotary positions, which turn pairs of features: i and i + half (Llama), or 2i and 2i + 1", kRotary,
          &a.rotary),
      Above0("rotary-base", "base of the angles of rotary positions", &a.rotary_base, "rotary"),
      Size("rotary-width", "number of features of a head, the first ones, that rotary positions turn; 0: all",
           &a.rotary_width, kMaxWidth, 0, "rotary"),
      PatternRow("rotary-layers", "1: a layer has rotary positions, 0: it has none; may be a list",
                 &AttentionPattern::rotary, &a.patterns, "rotary"),
      PatternRow("layer-rotary-base", "base of a layer's own, unscaled angles; 0: --rotary-base; may be a list",
                 &AttentionPattern::rotary_base, &a.patterns, "rotary"),
      ChoiceRow<RotaryScalingKind>("rotary-scaling",
                                   "how rotary positions are stretched to a longer context: all angles are divided, or "
                                   "only slow ones (Llama 3, YaRN)",
                                   kScalings, &a.rotary_scaling.kind, {.needs = "rotary"}),
      Above0("rotary-factor", "divisor of angles in --rotary-scaling", &a.rotary_scaling.factor, "rotary"),
      Size("rotary-context", "number of positions of the training before --rotary-scaling=llama3 or yarn",
           &a.rotary_scaling.context, kMaxWidth, 1, "rotary"),
      Above0("rotary-slow", "angles that turn at most this number of times in rotary-context are divided",
             &a.rotary_scaling.slow, "rotary"),
      AtLeast0("rotary-fast",
               "angles that turn at least this number of times in rotary-context stay; 0: 4 for llama3, 32 for yarn",
               &a.rotary_scaling.fast, "rotary"),
      AtLeast0("rotary-gain", "factor of the rotated features in --rotary-scaling=yarn; 0: that of the paper",
               &a.rotary_scaling.gain, "rotary"),
  };
}

}  // namespace weft
