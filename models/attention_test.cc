#include "weft/models/attention.h"

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::vector<float> Waves(int64_t n, float shift = 0) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7f * static_cast<float>(i) + shift);
  return values;
}

// Runs attention over x [B, T, C] = Waves, with parameters of seed 1.
class Attention {
 public:
  Attention(const AttentionOptions& options, Shape shape, AttentionInputs inputs = {}) {
    const Var x = tape_.Input("x", {kF32, shape});
    y_ = MultiHeadAttention("", x, options, inputs);
    const absl::StatusOr<Graph> graph = Compile(tape_, {.fetch = {y_}});
    status_ = graph.status();
    if (!graph.ok()) return;
    Runner runner(*graph, &parameters_);
    const std::vector<float> data = Waves(shape.elements());
    const absl::StatusOr<Outputs> out = runner.Run({{x, data}});
    status_ = out.status();
    if (!out.ok()) return;
    const absl::Span<const float> y = (*out)[y_].span<const float>();
    values_.assign(y.begin(), y.end());
  }
  const absl::Status& status() const { return status_; }
  const std::vector<float>& values() const { return values_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  Tape tape_;
  Parameters parameters_{{.seed = 1}};
  Var y_;
  absl::Status status_;
  std::vector<float> values_;
};

TEST(AttentionTest, HasAsManyParametersAsPublished) {
  constexpr int64_t kWidth = 12, kHeads = 3, kQuery = 5, kKey = 5, kValue = 2;
  AttentionOptions options = {.heads = kHeads, .variant = {.key_width = kKey, .value_width = kValue}, .bias = false};
  for (const char* packed : {"c_attn", static_cast<const char*>(nullptr)}) {
    options.packed = packed;
    const Attention attention(options, {2, 4, kWidth});
    ASSERT_TRUE(attention.status().ok()) << attention.status();
    EXPECT_EQ(attention.parameters().ElementCount(), kHeads * kWidth * (kQuery + kKey + 2 * kValue));
  }
  // The heads' mean, and a single head: each with a value matrix [C, C] and no output layer.
  for (int64_t heads : {1, 3}) {
    const Attention attention(
        {.heads = heads, .variant = {.key_width = kKey, .merge = HeadMerge::kAverage}, .bias = false}, {2, 4, kWidth});
    ASSERT_TRUE(attention.status().ok()) << attention.status();
    EXPECT_EQ(attention.parameters().ElementCount(), heads * kWidth * (kQuery + kKey + kWidth));
  }
  // Additive scores: queries and keys of different widths, and a hidden layer for each head.
  const Attention additive({.heads = kHeads,
                            .variant = {.query_width = 4,
                                        .key_width = 7,
                                        .value_width = kValue,
                                        .score = ScoreFunction::kAdditive,
                                        .score_width = 6},
                            .bias = false},
                           {2, 4, kWidth});
  ASSERT_TRUE(additive.status().ok()) << additive.status();
  EXPECT_EQ(additive.parameters().ElementCount(), kHeads * kWidth * (4 + 7 + 2 * kValue) + kHeads * 6 * (4 + 7 + 1));
}

// Computes one head with additive scores and averaged values in plain loops.
TEST(AttentionTest, AdditiveScoresAreWhatTheFormulaSays) {
  constexpr int64_t kT = 4, kC = 5, kQ = 3, kK = 2, kA = 6;
  const Attention attention({.variant = {.query_width = kQ,
                                         .key_width = kK,
                                         .score = ScoreFunction::kAdditive,
                                         .score_width = kA,
                                         .merge = HeadMerge::kAverage},
                             .bias = false,
                             .initializer = Gaussian(0.7f),
                             .packed = nullptr},
                            {1, kT, kC});
  ASSERT_TRUE(attention.status().ok()) << attention.status();
  const auto weight = [&](const char* name, int64_t i) { return attention.parameters().Find(name)->as<float>()[i]; };
  const std::vector<float> x = Waves(kT * kC);
  const auto project = [&](const char* name, int64_t t, int64_t i) {
    double sum = 0;
    for (int64_t c = 0; c < kC; ++c) sum += x[t * kC + c] * weight(name, i * kC + c);
    return sum;
  };
  for (int64_t t = 0; t < kT; ++t) {
    double total = 0, mixed[kC] = {};
    for (int64_t s = 0; s < kT; ++s) {
      double score = 0;
      for (int64_t a = 0; a < kA; ++a) {
        double hidden = 0;
        for (int64_t i = 0; i < kQ; ++i)
          hidden += project("q_proj.weight", t, i) * weight("score.query.weight", i * kA + a);
        for (int64_t i = 0; i < kK; ++i)
          hidden += project("k_proj.weight", s, i) * weight("score.key.weight", i * kA + a);
        score += std::tanh(hidden) * weight("score.output.weight", a);
      }
      total += std::exp(score);
      for (int64_t c = 0; c < kC; ++c) mixed[c] += std::exp(score) * project("v_proj.weight", s, c);
    }
    for (int64_t c = 0; c < kC; ++c) EXPECT_NEAR(attention.values()[t * kC + c], mixed[c] / total, 1e-5);
  }
}

// Attention that takes one row at a time through a cache gives the same results as attention to all rows at once.
TEST(AttentionTest, ACacheGivesWhatAllRowsAtOnceGive) {
  constexpr int64_t kT = 9, kC = 12;
  AttentionOptions options = {.heads = 6, .causal = true, .initializer = Gaussian(0.5f)};
  for (const auto& [groups, window, stride, dilation] :
       std::vector<std::array<int64_t, 4>>{{6, 0, 0, 1}, {2, 3, 0, 1}, {3, 0, 2, 1}, {1, 2, 4, 1}, {2, 2, 0, 3}}) {
    for (const bool rotary : {false, true}) {
      options.variant = {.key_value_heads = groups,
                         .patterns = {{window, stride, dilation}},
                         .distance_bias = groups == 3   ? DistanceBias::kAlibi
                                          : groups == 2 ? DistanceBias::kBuckets
                                                        : DistanceBias::kNone,
                         .buckets = 6,
                         .max_distance = 8,
                         .soft_cap = dilation > 1 ? 0.5 : 0,
                         .rotary = rotary ? std::optional(RotaryLayout::kHalves) : std::nullopt};
      const Attention whole(options, {1, kT, kC});
      ASSERT_TRUE(whole.status().ok()) << whole.status();

      Tape tape;
      const Var x = tape.Input("x", {kF32, {1, 1, kC}});
      // Pages of one position, pages that the last token fills, and a page that has room left.
      const int64_t page = groups == 6 ? 1 : groups == 2 ? 3 : kCachePage, pages = (kT + page - 1) / page;
      const AttentionCache cache = {"cache", tape.Input("position", {kI32, {1, 1}}, {.below = kT}),
                                    tape.Input("pages", {kI32, {1, pages}}, {.below = pages}), pages, page};
      std::vector<int32_t> order(static_cast<size_t>(pages));
      std::iota(order.rbegin(), order.rend(), 0);
      const Var y = MultiHeadAttention("", x, options, {.cache = &cache});
      const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
      ASSERT_TRUE(graph.ok()) << graph.status();
      Parameters parameters({.seed = 1});
      Runner runner(*graph, &parameters);
      const std::vector<float> all = Waves(kT * kC);
      for (int32_t t = 0; t < kT; ++t) {
        const std::vector<float> row(all.begin() + t * kC, all.begin() + (t + 1) * kC);
        const std::vector<int32_t> position = {t};
        const absl::StatusOr<Outputs> out = runner.Run({{x, row}, {cache.positions, position}, {cache.pages, order}});
        ASSERT_TRUE(out.ok()) << out.status();
        for (int64_t c = 0; c < kC; ++c) {
          ASSERT_NEAR((*out)[y].as<float>()[c], whole.values()[t * kC + c], 2e-6) << groups << " " << t;
        }
      }
    }
  }
}

// A row at position -1 is padding: it gets zeros and is not cached. It changes nothing for the other rows.
TEST(AttentionTest, PaddingInACacheChangesNothing) {
  const AttentionOptions options = {
      .heads = 2, .variant = {.patterns = {{.window = 3, .stride = 2}}, .rotary = RotaryLayout::kPairs}, .bias = false};
  const auto run = [&](const std::vector<int32_t>& positions, const std::vector<float>& data) {
    const int64_t length = static_cast<int64_t>(positions.size());
    Tape tape;
    const Var x = tape.Input("x", {kF32, {1, length, 8}});
    const AttentionCache cache = {"cache", tape.Input("at", {kI32, {1, length}}, {.below = 6, .ignored = -1}),
                                  tape.Input("pages", {kI32, {1, 1}}, {.below = 1}), /*page_count=*/1, /*page_size=*/6};
    const Var y = MultiHeadAttention("", x, options, {.cache = &cache});
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters);
    const std::vector<int32_t> page = {0};
    const absl::StatusOr<Outputs> out = runner.Run({{x, data}, {cache.positions, positions}, {cache.pages, page}});
    EXPECT_TRUE(out.ok()) << out.status();
    const absl::Span<const float> values = (*out)[y].span<const float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> row = Waves(8), padding = Waves(8, 2);
  std::vector<float> both = padding;
  both.insert(both.end(), row.begin(), row.end());
  std::vector<float> wanted(8, 0), alone = run({0}, row);
  wanted.insert(wanted.end(), alone.begin(), alone.end());
  std::vector<float> other = Waves(8, 3);
  other.insert(other.end(), row.begin(), row.end());
  EXPECT_EQ(run({-1, 0}, both), run({-1, 0}, other));
  // Without AVX-512 products of one row and of two round otherwise.
  EXPECT_THAT(run({-1, 0}, both), testing::Pointwise(testing::FloatNear(1e-6f), wanted));
}

// Two texts share the pages of their common beginning, as hypotheses do. Each gets the same results as it gets alone.
TEST(AttentionTest, HypothesesShareTheirBeginning) {
  constexpr int64_t kT = 5, kC = 8, kTexts = 2;
  const AttentionOptions options = {.heads = 2,
                                    .causal = true,
                                    .variant = {.patterns = {{.window = 4, .stride = 2}},
                                                .distance_bias = DistanceBias::kBuckets,
                                                .buckets = 4,
                                                .max_distance = 4,
                                                .rotary = RotaryLayout::kHalves},
                                    .initializer = Gaussian(0.5f),
                                    .packed = nullptr};
  const std::vector<float> shared = Waves(2 * kC), own[] = {Waves(3 * kC, 1), Waves(3 * kC, 2)};
  Tape tape;
  const Var x = tape.Input("x", {kF32, {kTexts, 1, kC}});
  const AttentionCache cache = {.prefix = "cache",
                                .positions = tape.Input("position", {kI32, {kTexts, 1}}, {.below = kT, .ignored = -1}),
                                .pages = tape.Input("pages", {kI32, {kTexts, kT}}, {.below = kT * kTexts}),
                                .page_count = kT * kTexts,
                                .page_size = 1};
  const Var y = MultiHeadAttention("", x, options, {.cache = &cache});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters);
  // The first two positions are in row 0; then the two texts swap rows at each position.
  const auto row_of = [](int32_t text, int32_t position) { return position < 2 ? 0 : (text + position) % 2; };
  std::vector<float> got[kTexts];
  for (int32_t t = 0; t < kT; ++t) {
    std::vector<float> rows;
    std::vector<int32_t> positions, pages;
    for (int32_t k = 0; k < kTexts; ++k) {
      const int32_t text = row_of(k, t);  // that this row continues
      const float* const from = t < 2 ? &shared[t * kC] : &own[text][(t - 2) * kC];
      rows.insert(rows.end(), from, from + kC);
      positions.push_back(t < 2 && k > 0 ? -1 : t);
      for (int32_t position = 0; position < kT; ++position) {
        pages.push_back(position * static_cast<int32_t>(kTexts) + row_of(text, position));
      }
    }
    const absl::StatusOr<Outputs> out = runner.Run({{x, rows}, {cache.positions, positions}, {cache.pages, pages}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int32_t text = 0; text < kTexts; ++text) {
      const float* const row = (*out)[y].as<float>() + row_of(text, t) * kC;
      got[text].insert(got[text].end(), row, row + kC);
    }
  }
  for (int32_t text = 0; text < kTexts; ++text) {
    Tape whole;
    const Var all = whole.Input("x", {kF32, {1, kT, kC}});
    const Var wanted = MultiHeadAttention("", all, options);
    const absl::StatusOr<Graph> at_once = Compile(whole, {.fetch = {wanted}});
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    Runner reference(*at_once, &parameters);
    std::vector<float> data = shared;
    data.insert(data.end(), own[text].begin(), own[text].end());
    const absl::StatusOr<Outputs> out = reference.Run({{all, data}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(got[text], testing::Pointwise(testing::FloatNear(2e-6f), (*out)[wanted].span<const float>()));
  }
}

// Returns a cache for `texts` texts of `length` rows, with one page for each text.
AttentionCache CacheOf(Tape* tape, int64_t texts, int64_t length) {
  return {.prefix = "cache",
          .positions = tape->Input("at", {kI32, {texts, length}}, {.below = 6, .ignored = -1}),
          .pages = tape->Input("pages", {kI32, {texts, 1}}, {.below = texts}),
          .page_count = texts};
}

TEST(AttentionTest, SaysWhatIsWrongWithACache) {
  const AttentionCache none = {"cache"};
  EXPECT_THAT(std::string(Attention({}, {1, 2, 4}, {.cache = &none}).status().message()),
              HasSubstr("the cache's positions and pages are not on the tape of x"));
  const auto error = [](auto change, AttentionOptions options = {}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {1, 2, 4}});
    AttentionCache cache = CacheOf(&tape, 1, 2);
    AttentionInputs inputs = {.cache = &cache};
    change(&cache, &inputs);
    MultiHeadAttention("", x, options, inputs);
    return std::string(tape.status().message());
  };
  EXPECT_EQ(error([](auto*, auto*) {}), "");
  EXPECT_THAT(error([](AttentionCache* cache, auto*) { cache->page_count = 0; }),
              HasSubstr("a cache of 0 pages of 64 positions, wanted at least 1 of each, and pages i32[B,P]"));
  EXPECT_THAT(error([](AttentionCache* cache, auto*) { cache->page_size = 0; }),
              HasSubstr("a cache of 1 pages of 0 positions"));
  EXPECT_THAT(error([](AttentionCache* cache, auto*) { cache->pages = Reshape(cache->pages, {1}); }),
              HasSubstr("and pages i32[B,P]"));
  const auto with_memory = [](AttentionCache* cache, AttentionInputs* inputs) {
    inputs->memory = cache->positions.tape->Input("memory", {kF32, {1, 3, 4}});
  };
  EXPECT_THAT(error(with_memory), HasSubstr("a cache holds the keys and values of x, not of a memory"));
}

TEST(AttentionTest, AMemoryHasNoPositions) {
  const auto error = [](const AttentionOptions& options, bool stored, bool attend) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {1, 2, 4}}), memory = tape.Input("memory", {kF32, {1, 3, 6}});
    if (stored && attend) AttendToStored("", x, options, CacheOf(&tape, 1, 2));
    if (stored && !attend) StoreMemory("", memory, 4, options, CacheOf(&tape, 1, 3));
    if (!stored) MultiHeadAttention("", x, options, {.memory = memory});
    return std::string(tape.status().message());
  };
  EXPECT_THAT(error({.variant = {.rotary = RotaryLayout::kPairs}}, false, false),
              HasSubstr("rotary turns by positions of x"));
  for (const bool attend : {false, true}) {
    EXPECT_EQ(error({.heads = 2}, true, attend), "");
    EXPECT_THAT(error({.causal = true}, true, attend), HasSubstr("no positions, as causal needs them"));
    EXPECT_THAT(error({.variant = {.patterns = {{.window = 2}}}}, true, attend), HasSubstr("as window needs them"));
    EXPECT_THAT(error({.variant = {.patterns = {{.stride = 2}}}}, true, attend), HasSubstr("as stride needs them"));
    EXPECT_THAT(error({.variant = {.rotary = RotaryLayout::kPairs}}, true, attend), HasSubstr("as rotary needs them"));
  }
}

// A memory may be wider than the x that attends to it: the heads' widths follow from x.
TEST(AttentionTest, AStoredMemoryGivesWhatAMemoryGives) {
  const AttentionOptions options = {.heads = 2, .packed = nullptr};
  Tape at_once, store, attend;
  const auto x_of = [](Tape* tape) { return tape->Input("x", {kF32, {2, 3, 4}}); };
  const auto memory_of = [](Tape* tape) { return tape->Input("memory", {kF32, {2, 5, 6}}); };
  const Var x = x_of(&at_once), memory = memory_of(&at_once),
            wanted = MultiHeadAttention("", x, options, {.memory = memory});
  const Var memory_to_store = memory_of(&store);
  const AttentionCache to_store = CacheOf(&store, 2, 5), to_read = CacheOf(&attend, 2, 3);
  const VarList stored = StoreMemory("", memory_to_store, 4, options, to_store);
  const Var x_again = x_of(&attend), got = AttendToStored("", x_again, options, to_read);
  const absl::StatusOr<Graph> graphs[] = {Compile(at_once, {.fetch = {wanted}}), Compile(store, {.update = stored}),
                                          Compile(attend, {.fetch = {got}})};
  for (const auto& graph : graphs) ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner reference(*graphs[0], &parameters), storing(*graphs[1], &parameters), attending(*graphs[2], &parameters);
  const std::vector<float> rows = Waves(24), sources = Waves(60, 1);
  const auto one = reference.Run({{x, rows}, {memory, sources}});
  ASSERT_TRUE(one.ok()) << one.status();
  const std::vector<int32_t> pages = {1, 0}, all = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, last(6, 4);
  ASSERT_TRUE(storing.Run({{memory_to_store, sources}, {to_store.positions, all}, {to_store.pages, pages}}).ok());
  const auto two = attending.Run({{x_again, rows}, {to_read.positions, last}, {to_read.pages, pages}});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT((*two)[got].span<const float>(),
              testing::Pointwise(testing::FloatNear(2e-6f), (*one)[wanted].span<const float>()));
}

TEST(AttentionTest, ARowThatSeesNothingGetsZeros) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 3, 4}});
  const Var y = MultiHeadAttention("", x, {.heads = 2, .bias = false}, {.mask = Fill(&tape, {kBool, {}}, 1)});
  const VarList gradients = Gradient(Sum(y * y), {x});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y, gradients[0]}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const std::vector<float> data = Waves(12);
  const absl::StatusOr<Outputs> out = runner.Run({{x, data}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (Var v : {y, gradients[0]}) EXPECT_THAT((*out)[v].span<const float>(), testing::Each(0.0f));
}

TEST(AttentionTest, SaysWhatDoesNotFit) {
  const auto error = [](const AttentionOptions& options) {
    return std::string(Attention(options, {2, 3, 10}).status().message());
  };
  EXPECT_THAT(
      error({.heads = 3}),
      HasSubstr("attention: width 10 is not a multiple of heads 3: each head takes an equal part of the width; inputs "
                "f32[2,3,10]"));
  EXPECT_THAT(error({.heads = 0}), HasSubstr("heads is 0"));
  EXPECT_THAT(error({.variant = {.patterns = {{.window = -1}}}}), HasSubstr("window is -1, but must be at least 0"));
  EXPECT_THAT(error({.variant = {.key_width = -4}}), HasSubstr("key_width is -4, but must be at least 0"));
  EXPECT_THAT(error({.heads = 5, .variant = {.key_value_heads = 2}}),
              HasSubstr("heads 5 is not a multiple of key_value_heads 2"));
  EXPECT_THAT(error({.variant = {.query_width = 3, .key_width = 4}}),
              HasSubstr("query_width 3 and key_width 4 differ, which only additive attention allows"));
  EXPECT_THAT(error({.variant = {.value_width = 4, .merge = HeadMerge::kAverage}}),
              HasSubstr("value_width is 4, but the mean of heads needs values as wide as the model, 10"));
  EXPECT_THAT(error({.heads = 2, .variant = {.rotary = RotaryLayout::kPairs}}),
              HasSubstr("a head's width is 5, but rotary positions turn pairs of features"));
}

}  // namespace
}  // namespace weft
