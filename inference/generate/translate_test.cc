#include "weft/inference/generate/translate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/options.h"

namespace weft {
namespace {

using ::testing::AnyOfArray;
using ::testing::Each;
using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;
using Translations = std::vector<std::vector<Hypothesis>>;

constexpr int32_t kBegin = 1, kEnd = 2;

TransformerConfig Small() {
  return {.source_vocabulary = 11,
          .target_vocabulary = 5,
          .context = 24,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .heads = 2,
          .width = 8,
          .feed_forward = 12};
}

std::vector<std::pair<std::string, TransformerConfig>> Forms() {
  TransformerConfig other = Small();
  other.pre_norm = true;
  other.positions = TransformerConfig::Positions::kLearned;
  other.memory = TransformerConfig::Memory::kSameLayer;
  other.tied_head = false;
  other.attention.patterns = {{.window = 2}, {.stride = 2}};
  TransformerConfig f64 = Small();
  f64.dtype = kF64;
  std::vector<std::pair<std::string, TransformerConfig>> forms = {
      {"as published", Small()}, {"other", other}, {"f64", f64}};
  const std::vector<std::pair<std::string, AttentionVariant>> kVariants = {
      {"window and stride", {.patterns = {{.window = 2, .stride = 3}}}},
      {"dilation", {.patterns = {{.window = 2, .dilation = 2}}}},
      {"ALiBi", {.distance_bias = DistanceBias::kAlibi}},
      {"buckets", {.distance_bias = DistanceBias::kBuckets, .buckets = 4, .max_distance = 6}},
      {"soft cap", {.soft_cap = 0.5}},
      {"additive", {.query_width = 6, .key_width = 4, .score = ScoreFunction::kAdditive, .score_width = 5}},
      {"average", {.merge = HeadMerge::kAverage}},
      {"widths", {.key_value_heads = 1, .key_width = 6, .value_width = 4}},
      {"rotary", {.rotary = RotaryLayout::kPairs, .rotary_base = 100}},
  };
  for (const auto& [name, attention] : kVariants) {
    TransformerConfig& config = forms.emplace_back(name, Small()).second;
    config.attention = attention;
    config.positions = PositionKind::kAuto;
  }
  // Without residuals or norms, an untrained model has equal scores or very large ones.
  for (const Ablation& ablation :
       {Ablation{.feed_forward = true}, Ablation{.value = true}, Ablation{.query_is_key = true}}) {
    forms.emplace_back(absl::StrCat("without ", ToText(ablation)), Small()).second.ablation = ablation;
  }
  TransformerConfig halves = Small();
  halves.positions = PositionKind::kSinusoidalHalves;
  halves.first_position = 2;
  forms.emplace_back("sinusoids of halves", halves);
  return forms;
}

std::vector<Tokens> Sources(int64_t n, int64_t longest) {
  std::vector<Tokens> sources;
  for (int64_t i = 0; i < n; ++i) {
    Tokens& source = sources.emplace_back();
    for (int64_t j = 0; j < 1 + i * 5 % longest; ++j) source.push_back(static_cast<int32_t>((i + 3 * j + i * j) % 11));
  }
  return sources;
}

Translations Translate(const TransformerConfig& config, absl::Span<const Tokens> sources,
                       const BeamSearchOptions& options, const RuntimeOptions& how = {},
                       absl::Span<const Tokens> shortlists = {}) {
  Parameters parameters({.seed = 4});
  const auto translator = Translator::Create(config, &parameters, how);
  EXPECT_TRUE(translator.ok()) << translator.status();
  if (!translator.ok()) return {};
  const absl::StatusOr<Translations> translations = (*translator)->Translate(sources, options, shortlists);
  EXPECT_TRUE(translations.ok()) << translations.status();
  return translations.ok() ? *translations : Translations();
}

// Computes log-probabilities [rows, T, V] of the next tokens of targets [rows, T] of one source, without a cache.
std::vector<float> LogProbabilities(const TransformerConfig& config, const Tokens& source, const Tokens& targets,
                                    int64_t rows) {
  Tape tape;
  const Var in = tape.Input("source", {kI32, {rows, static_cast<int64_t>(source.size())}}, {.below = 11});
  const Var out = tape.Input("target", {kI32, {rows, static_cast<int64_t>(targets.size()) / rows}}, {.below = 5});
  const Var y = LogSoftmax(Cast(Transformer(config).Logits(in, out), kF32));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 4});
  Runner runner(*graph, &parameters);
  Tokens repeated;
  for (int64_t i = 0; i < rows; ++i) repeated.insert(repeated.end(), source.begin(), source.end());
  const absl::StatusOr<Outputs> outputs = runner.Run({{in, repeated}, {out, targets}});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  const absl::Span<const float> values = (*outputs)[y].span<const float>();
  return {values.begin(), values.end()};
}

// Ranks all texts of up to three tokens. With 4 tokens besides the end token, 1 + 4 + 16 texts end and 64 do not.
std::vector<Hypothesis> AllTexts(const TransformerConfig& config, const Tokens& source, double length_penalty) {
  constexpr int64_t kV = 5, kT = 3;
  const Tokens letters = {0, 1, 3, 4};
  Tokens targets;
  for (int32_t a : letters) {
    for (int32_t b : letters) targets.insert(targets.end(), {kBegin, a, b});
  }
  const std::vector<float> all = LogProbabilities(config, source, targets, 16);
  std::vector<Hypothesis> texts;
  const auto add = [&](Tokens tokens, double sum, bool ended) {
    const double length = static_cast<double>(tokens.size() + (ended ? 1 : 0));
    texts.push_back({std::move(tokens), sum, sum / std::pow(length, length_penalty), ended});
  };
  for (size_t row = 0; row < 16; ++row) {
    const int32_t a = targets[row * kT + 1], b = targets[row * kT + 2];
    const float *first = &all[row * kT * kV], *second = first + kV, *third = second + kV;
    if (row == 0) add({}, first[kEnd], true);
    if (row % 4 == 0) add({a}, first[a] + second[kEnd], true);
    add({a, b}, first[a] + second[b] + third[kEnd], true);
    for (int32_t c : letters) add({a, b, c}, first[a] + second[b] + third[c], false);
  }
  std::sort(texts.begin(), texts.end(), [](const auto& x, const auto& y) { return x.score > y.score; });
  return texts;
}

TEST(TranslateTest, AWideBeamFindsWhatTryingAllTextsFinds) {
  for (const auto& [name, config] : Forms()) {
    for (const double length_penalty : {1.0, 0.6}) {
      SCOPED_TRACE(name);
      const std::vector<Tokens> sources = Sources(3, 6);
      const Translations got =
          Translate(config, sources, {.beam = 100, .n_best = 85, .length_penalty = length_penalty, .max_length = 3});
      ASSERT_EQ(got.size(), 3);
      for (size_t i = 0; i < sources.size(); ++i) {
        const std::vector<Hypothesis> wanted = AllTexts(config, sources[i], length_penalty);
        ASSERT_EQ(got[i].size(), wanted.size());
        for (size_t n = 0; n < wanted.size(); ++n) {
          ASSERT_EQ(got[i][n].tokens, wanted[n].tokens) << n;
          ASSERT_EQ(got[i][n].ended, wanted[n].ended) << n;
          ASSERT_NEAR(got[i][n].log_probability, wanted[n].log_probability, 1e-5);
          ASSERT_NEAR(got[i][n].score, wanted[n].score, 1e-5);
        }
      }
    }
  }
}

TEST(TranslateTest, ABeamOfOneTakesTheLikeliestToken) {
  for (const auto& [name, config] : Forms()) {
    SCOPED_TRACE(name);
    const std::vector<Tokens> sources = Sources(4, 20);
    const Translations got = Translate(config, sources, {.min_length = 3, .max_length = 12});
    ASSERT_EQ(got.size(), sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      Tokens text = {kBegin};
      while (text.size() <= 12) {
        const std::vector<float> all = LogProbabilities(config, sources[i], text, 1);
        auto last = all.end() - 5;
        std::vector<float> chances(last, all.end());
        if (text.size() <= 3) chances[kEnd] = -1e9f;
        text.push_back(static_cast<int32_t>(std::max_element(chances.begin(), chances.end()) - chances.begin()));
        if (text.back() == kEnd) break;
      }
      text.erase(text.begin());
      if (text.back() == kEnd) text.pop_back();
      EXPECT_EQ(got[i].at(0).tokens, text);
      EXPECT_GE(text.size(), 3);
    }
  }
}

// Expects the same bits.
void ExpectSame(const Translations& wanted, const Translations& got) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (size_t n = 0; n < got[i].size(); ++n) {
      EXPECT_EQ(got[i][n].tokens, wanted[i][n].tokens) << i << " " << n;
      EXPECT_EQ(got[i][n].log_probability, wanted[i][n].log_probability) << i << " " << n;
    }
  }
}

TEST(TranslateTest, ASentenceHasTheSameTranslationsInAnyCompany) {
  TransformerConfig wide = Small();  // with weights that may be stored in other formats, and sources of many tokens
  wide.width = 64;
  wide.feed_forward = 96;
  wide.context = 260;
  std::vector<Tokens> sources = Sources(13, 20);
  for (const size_t length : {70, 200}) {
    sources.emplace_back(length);
    std::iota(sources.back().begin(), sources.back().end(), 0);
    for (int32_t& token : sources.back()) token %= 11;
  }
  for (const int64_t beam : {1, 4, 170}) {
    const BeamSearchOptions options = {
        .beam = beam, .n_best = std::min<int64_t>(beam, 4), .max_length = beam == 4 ? 0 : 9};
    for (const DType weights : {kF32, kBF16, kQ8_0}) {
      const Translations together = Translate(wide, sources, options, {.weights = weights});
      ASSERT_EQ(together.size(), sources.size());
      for (const int64_t batch : {1, 3, 7}) {
        ExpectSame(together, Translate(wide, sources, options, {.batch = batch, .weights = weights}));
      }
      for (size_t i = 0; i < sources.size(); ++i) {
        ExpectSame({together[i]}, Translate(wide, {sources[i]}, options, {.weights = weights}));
      }
    }
  }
}

// A model with enough target tokens for shortlists of several sizes.
TransformerConfig Many() {
  TransformerConfig config = Small();
  config.target_vocabulary = 700;
  config.width = 64;
  return config;
}

std::vector<Tokens> Shortlists(size_t n) {
  std::vector<Tokens> shortlists;
  for (size_t i = 0; i < n; ++i) {
    Tokens& list = shortlists.emplace_back();
    for (size_t k = 0; k < 1 + i * 97 % 400; ++k) list.push_back(static_cast<int32_t>((i + k * (k + 3)) % 700));
  }
  return shortlists;
}

TEST(TranslateTest, ShortlistsAreKeptInAnyCompany) {
  TransformerConfig untied = Many();
  untied.tied_head = false;
  untied.head_bias = true;
  const std::vector<Tokens> sources = Sources(13, 20), shortlists = Shortlists(13);
  for (const TransformerConfig& config : {Many(), untied}) {
    for (const DType weights : {kF32, kQ8_0}) {
      const BeamSearchOptions options = {.beam = 4, .n_best = 4, .max_length = 9};
      const Translations together = Translate(config, sources, options, {.weights = weights}, shortlists);
      ASSERT_EQ(together.size(), sources.size());
      for (const int64_t batch : {1, 3, 7}) {
        ExpectSame(together, Translate(config, sources, options, {.batch = batch, .weights = weights}, shortlists));
      }
      for (size_t i = 0; i < sources.size(); ++i) {
        ExpectSame({together[i]}, Translate(config, {sources[i]}, options, {.weights = weights}, {shortlists[i]}));
        for (const Hypothesis& hypothesis : together[i]) {
          EXPECT_THAT(hypothesis.tokens, Each(AnyOfArray(shortlists[i])));
        }
      }
    }
  }
}

TEST(TranslateTest, AShortlistOfAllTokensChangesNothing) {
  const std::vector<Tokens> sources = Sources(5, 20);
  Tokens all(700);
  std::iota(all.begin(), all.end(), 0);
  const BeamSearchOptions options = {.beam = 3, .n_best = 3};
  const Translations wanted = Translate(Many(), sources, options);
  const Translations got = Translate(Many(), sources, options, {}, std::vector<Tokens>(5, all));
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (size_t n = 0; n < wanted[i].size(); ++n) {
      EXPECT_EQ(got[i][n].tokens, wanted[i][n].tokens);
      EXPECT_NEAR(got[i][n].log_probability, wanted[i][n].log_probability, 1e-4);
    }
  }
}

TEST(TranslateTest, ProbabilitiesAreThoseAmongTheShortlist) {
  const Tokens source = {3, 4};
  const BeamSearchOptions options = {.beam = 3, .n_best = 3, .max_length = 1};
  const std::vector<float> all = LogProbabilities(Small(), source, {kBegin}, 1);
  const Hypothesis best = Translate(Small(), {source}, options, {}, {{4, 0, 4}})[0][0];
  const int32_t token = best.ended ? kEnd : best.tokens[0];
  const double sum = std::exp(all[0]) + std::exp(all[kEnd]) + std::exp(all[4]);
  EXPECT_NEAR(best.log_probability, all[static_cast<size_t>(token)] - std::log(sum), 1e-5);
  EXPECT_GE(all[static_cast<size_t>(token)], std::max({all[0], all[kEnd], all[4]}));
}

TEST(TranslateTest, ThreadsDontChangeABit) {
  const std::vector<Tokens> sources = Sources(7, 20);
  const BeamSearchOptions options = {.beam = 3, .n_best = 3};
  const Translations wanted = Translate(Small(), sources, options, {.threads = 1});
  for (const int threads : {2, 4}) {
    ExpectSame(wanted, Translate(Small(), sources, options, {.threads = threads}));
  }
}

// A batch does not see what an earlier batch has left in the caches.
TEST(TranslateTest, OneTranslatorServesManyCalls) {
  Parameters parameters({.seed = 4});
  const auto translator = Translator::Create(Small(), &parameters, {.batch = 4});
  ASSERT_TRUE(translator.ok()) << translator.status();
  const std::vector<Tokens> sources = Sources(10, 20);
  const BeamSearchOptions options = {.beam = 3};
  const auto first = (*translator)->Translate(sources, options);
  ASSERT_TRUE((*translator)->Translate(Sources(10, 7)).ok());
  const auto again = (*translator)->Translate(sources, options);
  ASSERT_TRUE(first.ok() && again.ok());
  ExpectSame(*first, *again);
}

// Caches have few sizes, however many lengths the sources have.
TEST(TranslateTest, CachesAreOfFewSizes) {
  TransformerConfig config = Small();
  config.context = 200;
  Parameters parameters;
  const auto translator = Translator::Create(config, &parameters);
  ASSERT_TRUE(translator.ok()) << translator.status();
  for (int64_t length = 1; length <= 200; ++length) {
    const Tokens source(static_cast<size_t>(length), 3);
    ASSERT_TRUE((*translator)->Translate({source}, {.max_length = 1}).ok());
  }
  // A sentence alone has 2 slots for memories, of 1, 2, 4 or 8 pages.
  for (const int pages : {2, 4, 8, 16}) {
    EXPECT_TRUE(parameters.Find("translate.memory." + std::to_string(pages) + ".0.key").ok()) << pages;
  }
  EXPECT_FALSE(parameters.Find("translate.memory.6.0.key").ok());
}

TEST(TranslateTest, SaysWhatDoesNotFit) {
  Parameters parameters;
  const auto translator = Translator::Create(Small(), &parameters);
  ASSERT_TRUE(translator.ok()) << translator.status();
  const auto error = [&](const std::vector<Tokens>& sources, const BeamSearchOptions& options = {}) {
    return std::string((*translator)->Translate(sources, options).status().message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({{1}, {}}), HasSubstr("source 1 has no tokens"));
  EXPECT_THAT(error({Tokens(25)}), HasSubstr("source 0 has 25 tokens, but the model's context is 24"));
  EXPECT_THAT(error({{1, 11}}), HasSubstr("source 0 has the token 11, but the vocabulary ends at 10"));
  EXPECT_THAT(error({{1}}, {.beam = 2, .n_best = 3}), HasSubstr("beam 2 and n_best 3"));
  EXPECT_THAT(error({{1}}, {.max_length = 25}), HasSubstr("max_length is 25, but the model's context is 24"));
  EXPECT_THAT(error({{1}}, {.min_length = 4, .max_length = 3}), HasSubstr("min_length is 4"));
  EXPECT_THAT(error({{1}}, {.beam = 300000, .n_best = 1}),
              HasSubstr("beam 300000 with caches of 24 tokens: beam * tokens may be at most "));
  EXPECT_THAT(error({}, {.beam = int64_t{1} << 60}), HasSubstr("at most 4194304"));
  EXPECT_THAT(error({{1}}, {.end = {5}}), HasSubstr("has the token 5, but the vocabulary ends at 4"));
  EXPECT_FALSE(Translator::Create(Small(), &parameters, {.batch = 0}).ok());
  const auto shortlist_error = [&](const std::vector<Tokens>& shortlists) {
    return std::string((*translator)->Translate({Tokens{1}, {2}}, {}, shortlists).status().message());
  };
  EXPECT_THAT(shortlist_error({{1}}), HasSubstr("1 shortlists, wanted one for each of 2 sources"));
  EXPECT_THAT(shortlist_error({{1}, {}}), HasSubstr("the shortlist of source 1 has no tokens"));
  EXPECT_THAT(shortlist_error({{1}, {5}}), HasSubstr("the shortlist of source 1 has the token 5"));
}

}  // namespace
}  // namespace weft
