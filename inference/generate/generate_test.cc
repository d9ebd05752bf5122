#include "weft/inference/generate/generate.h"

#include <algorithm>
#include <set>
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;

constexpr SamplingOptions kGreedy = {.temperature = 0};
const std::vector<Tokens> kPrompts = {{1}, {2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3}, {7, 7, 7}, {5, 1}, {4, 3, 2, 1, 0}};

GptConfig Gpt2() { return {.vocabulary = 11, .context = 12, .layers = 2, .heads = 2, .width = 16}; }

GptConfig Llama() {
  GptConfig config = Gpt2();
  config.heads = 4;
  config.attention.key_value_heads = 2;
  config.attention.patterns = {{.window = 5}};
  config.norm.kind = NormKind::kRmsNorm;
  config.gated = true;
  config.activation = Activation::kSilu;
  config.bias = config.tied_head = false;
  config.attention.rotary = RotaryLayout::kHalves;
  config.names = GptConfig::Names::kLlama;
  return config;
}

// Options of attention that published models do not have together.
std::vector<std::pair<std::string, GptConfig>> Variants() {
  const std::vector<std::pair<std::string, AttentionVariant>> kVariants = {
      {"window", {.patterns = {{.window = 3}}}},
      {"windows by layer", {.patterns = {{.window = 3}, {}}}},
      {"stride", {.patterns = {{.stride = 2}}}},
      {"window and stride", {.patterns = {{.window = 2, .stride = 3}}}},
      {"dilation", {.patterns = {{.window = 3, .dilation = 2}}}},
      {"ALiBi", {.distance_bias = DistanceBias::kAlibi}},
      {"buckets", {.distance_bias = DistanceBias::kBuckets, .buckets = 6, .max_distance = 8}},
      {"soft cap", {.soft_cap = 1}},
      {"additive", {.score = ScoreFunction::kAdditive}},
      {"additive with widths", {.query_width = 6, .key_width = 4, .score = ScoreFunction::kAdditive, .score_width = 5}},
      {"average", {.merge = HeadMerge::kAverage}},
      {"value width", {.key_width = 6, .value_width = 4}},
      {"rotary", {.rotary = RotaryLayout::kPairs, .rotary_base = 100}},
      {"several",
       {.key_value_heads = 1,
        .value_width = 4,
        .score = ScoreFunction::kAdditive,
        .patterns = {{.window = 4, .stride = 3}, {.window = 2, .dilation = 3}},
        .distance_bias = DistanceBias::kBuckets,
        .soft_cap = 2}},
  };
  std::vector<std::pair<std::string, GptConfig>> all;
  for (const auto& [name, attention] : kVariants) all.emplace_back(name, Gpt2()).second.attention = attention;
  for (GptConfig config : {Gpt2(), Llama()}) {
    config.value_embeddings = config.skip_connections = true;
    all.emplace_back("value embeddings and skip connections", config);
  }
  for (const char* const parts : {"residual", "norm", "feed-forward", "value", "query-is-key", "value,query-is-key"}) {
    all.emplace_back(absl::StrCat("without ", parts), Gpt2()).second.ablation = AblationFromText(parts).value();
  }
  for (const PositionKind positions :
       {PositionKind::kSinusoidal, PositionKind::kSinusoidalHalves, PositionKind::kNone}) {
    all.emplace_back(absl::StrCat("positions ", static_cast<int>(positions)), Gpt2()).second.positions = positions;
  }
  return all;
}

GptConfig InF64(GptConfig config) {
  config.dtype = kF64;
  return config;
}

// Makes weights so large that texts do not repeat one token. Weights in a block format stay as they are.
void Spread(Parameters* parameters) {
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    const Tensor tensor = *parameters->Find(name);
    if (IsBlockFormat(tensor.type.dtype) || tensor.type.dtype == kBF16) continue;
    const auto spread = [](auto weights) {
      for (auto& w : weights) w = w == 1 ? w : w * 25;
    };
    tensor.type.dtype == kF64 ? spread(tensor.span<double>()) : spread(tensor.span<float>());
  }
}

class GeneratorTest : public testing::Test {
 protected:
  std::vector<Tokens> Generate(const GptConfig& config, const std::vector<Tokens>& prompts,
                               const GenerateOptions& options, const GeneratorOptions& how = {}) {
    Parameters parameters({.seed = 3});
    const auto generator = Generator::Create(config, &parameters, how);
    EXPECT_TRUE(generator.ok()) << generator.status();
    if (!generator.ok()) return {};
    Spread(&parameters);
    auto texts = (*generator)->Generate(prompts, options);
    EXPECT_TRUE(texts.ok()) << texts.status();
    return texts.ok() ? *texts : std::vector<Tokens>();
  }

  // The likeliest tokens without a cache: all that can be seen is computed again for each.
  Tokens Uncached(const GptConfig& config, Tokens seen, int64_t length, const SamplingOptions& how = {}) {
    Tape tape;
    const Var tokens = tape.Input("tokens", {kI32, {1, config.context}}, {.below = config.vocabulary});
    const Var logits = Cast(Gpt(config).Logits(tokens), kF32);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
    EXPECT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 3});
    Runner runner(*graph, &parameters);
    Spread(&parameters);
    const size_t context = static_cast<size_t>(config.context);
    Tokens text;
    std::set<int32_t> all(seen.begin(), seen.end());
    while (static_cast<int64_t>(text.size()) < length) {
      Tokens window = seen;
      window.resize(context);
      const absl::StatusOr<Outputs> out = runner.Run({{tokens, window}});
      EXPECT_TRUE(out.ok()) << out.status();
      const float* const row = (*out)[logits].as<float>() + (static_cast<int64_t>(seen.size()) - 1) * config.vocabulary;
      std::vector<float> last(row, row + config.vocabulary);
      for (int32_t token : all) {
        float& logit = last[static_cast<size_t>(token)];
        logit *= static_cast<float>(logit > 0 ? 1 / how.repetition_penalty : how.repetition_penalty);
        const auto count = static_cast<double>(std::count(text.begin(), text.end(), token));
        logit -= static_cast<float>((count > 0 ? how.presence_penalty : 0) + count * how.frequency_penalty);
      }
      text.push_back(static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
      all.insert(text.back());
      if (seen.size() == context) seen.erase(seen.begin(), seen.end() - static_cast<int64_t>(context / 2));
      seen.push_back(text.back());
    }
    return text;
  }
};

TEST_F(GeneratorTest, GivesWhatIsGivenWithoutACache) {
  for (GptConfig config : {Gpt2(), Llama(), InF64(Llama())}) {
    for (const int64_t context : {12, 7, 1}) {
      config.context = context;
      for (const int64_t chunk : {32, 3, 1}) {
        const Tokens prompt = context == 1 ? Tokens{4} : Tokens{1, 7, 3, 9, 2, 4};
        const Tokens wanted = Uncached(config, prompt, 30);
        EXPECT_THAT(Generate(config, {prompt}, {kGreedy, 30}, {.chunk = chunk}), ElementsAre(wanted)) << context;
      }
    }
  }
}

TEST_F(GeneratorTest, VariantsOfAttentionGiveWhatTheyGiveWithoutACache) {
  const Tokens prompt = {1, 7, 3, 9, 2, 4};
  const Tokens usual = Uncached(InF64(Gpt2()), prompt, 30);
  for (const auto& [name, config] : Variants()) {
    const Tokens wanted = Uncached(InF64(config), prompt, 30);
    EXPECT_NE(wanted, usual) << name << ": the option has no effect";
    for (const int64_t chunk : {32, 3, 1}) {
      EXPECT_THAT(Generate(InF64(config), {prompt}, {kGreedy, 30}, {.chunk = chunk}), ElementsAre(wanted)) << name;
    }
  }
}

TEST_F(GeneratorTest, APromptIsContinuedAsInAnyOtherCompany) {
  for (const SamplingOptions& sampling : {kGreedy, SamplingOptions{.repetition_penalty = 1.5, .top_p = 0.9},
                                          SamplingOptions{.presence_penalty = 0.5, .frequency_penalty = 1}}) {
    std::vector<Tokens> alone;
    for (const Tokens& prompt : kPrompts) alone.push_back(Generate(Gpt2(), {prompt}, {sampling, 40}).at(0));
    for (const int64_t batch : {2, 3, 8}) {
      EXPECT_EQ(Generate(Gpt2(), kPrompts, {sampling, 40}, {.runtime = {.batch = batch}, .chunk = 4}), alone) << batch;
    }
  }
}

// Weights of at least 64 x 64 are stored in other formats.
TEST_F(GeneratorTest, StoredWeightsGiveTheSameTextInAnyCompanyAndOnAnyNumberOfThreads) {
  GptConfig config = Gpt2();
  config.vocabulary = 70;
  config.width = 64;
  for (const DType weights : {kF32, kBF16, kQ8_0, kQ4_0}) {
    GeneratorOptions how = {.runtime = {.batch = 8, .threads = 1, .weights = weights}};
    std::vector<Tokens> alone;
    for (const Tokens& prompt : kPrompts) alone.push_back(Generate(config, {prompt}, {kGreedy, 40}, how).at(0));
    for (const int threads : {1, 2, 4}) {
      how.runtime.threads = threads;
      EXPECT_EQ(Generate(config, kPrompts, {kGreedy, 40}, how), alone) << Name(weights);
    }
  }
}

// A text that repeats itself, so that guesses are often right.
TEST_F(GeneratorTest, DraftsChangeNoToken) {
  GptConfig config = Gpt2();
  config.context = 40;
  std::vector<Tokens> prompts = {{1}, {3, 4, 5, 3, 4, 5, 3, 4}};
  for (int32_t i = 0; i < 30; ++i) prompts.push_back({i % 11, 2, 3, i % 5, 2, 3});
  for (const SamplingOptions& sampling : {kGreedy, SamplingOptions{.temperature = 0.3, .seed = 4},
                                          SamplingOptions{.frequency_penalty = 0.01, .temperature = 0.3, .seed = 4}}) {
    const std::vector<Tokens> wanted = Generate(config, prompts, {sampling, 120}, {.runtime = {.batch = 8}});
    for (const int64_t batch : {1, 5, 32}) {
      for (const int64_t draft : {1, 4, 50}) {
        Parameters parameters({.seed = 3});
        const auto generator = Generator::Create(config, &parameters, {.runtime = {.batch = batch}});
        ASSERT_TRUE(generator.ok()) << generator.status();
        Spread(&parameters);
        const auto texts = (*generator)->Generate(prompts, {.sampling = sampling, .length = 120, .draft = draft});
        ASSERT_TRUE(texts.ok()) << texts.status();
        EXPECT_EQ(*texts, wanted) << "batch " << batch << ", draft " << draft;
        const Generator::Counts& counts = (*generator)->counts();
        EXPECT_GT(counts.accepted, counts.drafted / 20);
        EXPECT_LT(counts.accepted, counts.drafted);
      }
    }
  }
}

// A model makes the guesses. One model has the generator's own weights, so all its guesses of greedy texts are right.
// The other has a shorter context and a larger vocabulary.
TEST_F(GeneratorTest, GuessesOfAModelChangeNoToken) {
  GptConfig config = Gpt2();
  config.context = 40;
  GptConfig small = Gpt2();
  small.layers = 1;
  small.vocabulary = 13;
  std::vector<Tokens> prompts = {{1}, Tokens(40, 2)};
  for (int32_t i = 0; i < 10; ++i) prompts.push_back({i % 11, 2, 3, i % 5, 2, 3});
  for (const SamplingOptions& sampling : {kGreedy, SamplingOptions{.temperature = 0.3, .seed = 4}}) {
    const std::vector<Tokens> wanted = Generate(config, prompts, {sampling, 120}, {.runtime = {.batch = 8}});
    for (const GptConfig& guessing : {config, small}) {
      for (const int64_t batch : {1, 5}) {
        Parameters parameters({.seed = 3}), others({.seed = 3});
        const auto generator = Generator::Create(config, &parameters, {.runtime = {.batch = batch}});
        const auto draft = ModelDraft::Create(guessing, &others, {.batch = batch});
        ASSERT_TRUE(generator.ok() && draft.ok()) << generator.status() << draft.status();
        Spread(&parameters);
        Spread(&others);
        const auto texts =
            (*generator)->Generate(prompts, {.sampling = sampling, .length = 120, .draft = 5, .drafter = draft->get()});
        ASSERT_TRUE(texts.ok()) << texts.status();
        EXPECT_EQ(*texts, wanted) << "batch " << batch;
        const Generator::Counts& counts = (*generator)->counts();
        EXPECT_GT(counts.drafted, 100);
        if (sampling.temperature == 0 && guessing.layers == config.layers) {
          EXPECT_EQ(counts.accepted, counts.drafted);
        }
      }
    }
  }
}

TEST_F(GeneratorTest, DependsOnTheSeedAlone) {
  const GenerateOptions options = {{.seed = 5}, 60};
  const std::vector<Tokens> texts = Generate(Gpt2(), {{1, 2}, {3}}, options);
  EXPECT_EQ(texts.at(0).size(), 60);
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(Generate(Gpt2(), {{1, 2}, {3}}, options, {.runtime = {.batch = 8, .threads = threads}}), texts);
  }
  EXPECT_NE(Generate(Gpt2(), {{1, 2}, {3}}, {{.seed = 6}, 60}), texts);
}

TEST_F(GeneratorTest, StopsAtAStopToken) {
  const Tokens whole = Generate(Gpt2(), {{1, 2}}, {kGreedy, 20}).at(0);
  const int32_t stop = whole[6];
  const auto first = std::find(whole.begin(), whole.end(), stop);
  const std::vector<Tokens> wanted = {Tokens(whole.begin(), first)};
  EXPECT_EQ(Generate(Gpt2(), {{1, 2}}, {kGreedy, 20, /*stop=*/{stop}}), wanted);
}

TEST_F(GeneratorTest, StreamsUntilItIsToldToStop) {
  Parameters parameters({.seed = 3});
  const auto generator = Generator::Create(Gpt2(), &parameters);
  ASSERT_TRUE(generator.ok()) << generator.status();
  std::vector<Tokens> streamed(3);
  size_t longest_lead = 0;
  const auto texts = (*generator)->Generate({{1}, {2, 3}, {4}}, {{.seed = 2}, 9}, [&](const GeneratedToken& generated) {
    const size_t i = generated.prompt;
    streamed[i].push_back(generated.token);
    longest_lead = std::max(longest_lead, streamed[0].size() - std::min(streamed[0].size(), streamed[2].size()));
    return i != 1 || streamed[1].size() < 4;
  });
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(*texts, streamed);
  EXPECT_EQ(streamed[0].size(), 9);
  EXPECT_EQ(streamed[1].size(), 4);
  EXPECT_EQ(longest_lead, 1) << "the texts grow together";
  EXPECT_THAT(*(*generator)->Generate({{1}}, {{}, /*length=*/0}), ElementsAre(Tokens()));
}

TEST_F(GeneratorTest, ARepetitionPenaltyCountsThePromptAndOthersDoNot) {
  const Tokens prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, usual = Uncached(Gpt2(), prompt, 30);
  for (SamplingOptions how : {SamplingOptions{.repetition_penalty = 3}, SamplingOptions{.presence_penalty = 2},
                              SamplingOptions{.frequency_penalty = 1.5}, SamplingOptions{.frequency_penalty = -2}}) {
    how.temperature = 0;
    const Tokens wanted = Uncached(Gpt2(), prompt, 30, how);
    EXPECT_THAT(Generate(Gpt2(), {prompt}, {how, 30}), ElementsAre(wanted));
    EXPECT_TRUE(wanted != usual || how.frequency_penalty < 0);
  }
}

TEST_F(GeneratorTest, TruncatesOnlyWhenToldTo) {
  const Tokens end = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1};
  Tokens prompt = {9, 9};
  prompt.insert(prompt.end(), end.begin(), end.end());
  const GenerateOptions options = {.sampling = kGreedy, .length = 12, .truncate = true};
  EXPECT_EQ(Generate(Gpt2(), {prompt}, options), Generate(Gpt2(), {end}, options));
}

TEST_F(GeneratorTest, EndsAtTheContextAndAtTheWholeLength) {
  const Tokens prompt = {1, 2, 3}, all = Generate(Gpt2(), {prompt}, {.sampling = kGreedy, .length = 20})[0];
  // The context has 12 tokens, and the last token that is drawn need not be read.
  const Tokens until_full(all.begin(), all.begin() + 10), seven(all.begin(), all.begin() + 7);
  EXPECT_EQ(Generate(Gpt2(), {prompt}, {.sampling = kGreedy, .length = 20, .slide = false})[0], until_full);
  EXPECT_EQ(Generate(Gpt2(), {prompt}, {.sampling = kGreedy, .length = 20, .slide = false, .draft = 4})[0], until_full);
  const std::vector<Tokens> both = {seven, {}};
  EXPECT_EQ(Generate(Gpt2(), {prompt, Tokens(11, 1)}, {.sampling = kGreedy, .length = 20, .max_length = 10}), both);
}

TEST_F(GeneratorTest, DrawsNoRowOfPadding) {
  for (const SamplingOptions& sampling : {SamplingOptions{.temperature = 9}, kGreedy}) {
    const Tokens text = Generate(Gpt2(), {{1, 2, 3}}, {.sampling = sampling, .length = 60, .vocabulary = 4})[0];
    ASSERT_EQ(text.size(), 60);
    EXPECT_LT(*std::max_element(text.begin(), text.end()), 4);
  }
}

TEST_F(GeneratorTest, SaysWhatDoesNotFit) {
  Parameters parameters;
  const auto generator = Generator::Create(Gpt2(), &parameters);
  ASSERT_TRUE(generator.ok()) << generator.status();
  const auto error = [&](const std::vector<Tokens>& prompts, const GenerateOptions& options = {}) {
    return std::string((*generator)->Generate(prompts, options).status().message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({{1}, {}}), HasSubstr("prompt 1 has no tokens"));
  EXPECT_THAT(error({Tokens(13)}), HasSubstr("prompt 0 has 13 tokens, but the model's context is 12"));
  EXPECT_THAT(error({{3, 11}}), HasSubstr("prompt 0 has the token 11, but the vocabulary ends at 10"));
  EXPECT_THAT(error({{1}}, {.length = -1}), HasSubstr("length is -1"));
  EXPECT_THAT(error({{1}}, {{.top_p = 2}}), HasSubstr("top-p: 2 is not"));
  EXPECT_THAT(error({{1}}, {.draft = -1}), HasSubstr("draft is -1"));
  EXPECT_THAT(error({{1}}, {.sampling = {.logit_bias = {{11, 1}}}}), HasSubstr("the token 11 gets the number 1"));
  EXPECT_THAT(error({{1}}, {.logprobs = 12}), HasSubstr("logprobs is 12, wanted -1 to the vocabulary's 11"));
  EXPECT_FALSE(Generator::Create(Gpt2(), &parameters, {.chunk = 0}).ok());
  EXPECT_THAT(Generator::Create(Gpt2(), &parameters, {.pages = -1}).status().message(),
              HasSubstr("pages is -1, wanted 1 to"));
}

}  // namespace
}  // namespace weft
