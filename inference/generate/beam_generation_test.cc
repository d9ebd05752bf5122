#include <algorithm>
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/inference/generate/generate.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;

GptConfig Small(int64_t context = 60) {
  return {.vocabulary = 7, .context = context, .layers = 2, .heads = 2, .width = 16};
}

std::unique_ptr<Generator> Make(const GptConfig& config, Parameters* parameters, const BeamSearchOptions& search) {
  auto generator = Generator::Create(config, parameters, {.search = search});
  EXPECT_TRUE(generator.ok()) << generator.status();
  for (const std::string& name : parameters->Names()) {  // so that some tokens are likelier than others
    const Tensor tensor = *parameters->Find(name);
    for (int64_t i = 0; i < tensor.type.shape.elements(); ++i) tensor.as<float>()[i] *= 8;
  }
  return generator.ok() ? *std::move(generator) : nullptr;
}

// Returns the log-probability that a generator without a beam gives each token of `text` after `prompt`.
double LogProbability(const GptConfig& config, const Tokens& prompt, const Tokens& text) {
  Parameters parameters({.seed = 3});
  Make(config, &parameters, {.beam = 0});
  const auto generator = Generator::Create(config, &parameters);
  EXPECT_TRUE(generator.ok());
  double sum = 0;
  Tokens seen = prompt;
  for (const int32_t token : text) {
    const GenerateOptions options = {.sampling = {.temperature = 0}, .length = 1, .logprobs = config.vocabulary};
    const auto next = (*generator)->Generate({seen}, options, [&](const GeneratedToken& generated) {
      for (size_t i = 1; i < generated.logprobs.size(); ++i) {
        if (generated.logprobs[i].token == token) sum += static_cast<double>(generated.logprobs[i].logprob);
      }
      return true;
    });
    EXPECT_TRUE(next.ok());
    seen.push_back(token);
  }
  return sum;
}

// There are 49 texts of 2 tokens. A search with 48 hypotheses ranks nearly all of them, so it must find the likeliest.
// The prompt of 50 tokens is read in a chunk, and the others are read as single tokens.
TEST(BeamGenerationTest, FindsTheLikeliestText) {
  for (const size_t size : {1, 3, 50}) {
    Tokens prompt;
    for (size_t i = 0; i < size; ++i) prompt.push_back(static_cast<int32_t>(i * i % 7));
    Tokens best;
    double most = -1e9;
    for (int32_t i = 0; i < 7 * 7; ++i) {
      const Tokens text = {i / 7, i % 7};
      const double sum = LogProbability(Small(), prompt, text);
      if (sum > most) most = sum, best = text;
    }
    Parameters parameters({.seed = 3});
    const auto generator = Make(Small(), &parameters, {.beam = 48, .n_best = 5});
    const auto found = generator->Search(prompt, {.length = 2});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((*found)[0].tokens, best);
    for (const Hypothesis& hypothesis : *found) {
      EXPECT_NEAR(hypothesis.log_probability, LogProbability(Small(), prompt, hypothesis.tokens), 1e-4);
    }
  }
}

// Hypotheses share pages of the cache. Their log-probabilities must be those of the same texts without shared pages.
TEST(BeamGenerationTest, HypothesesShareTheirCache) {
  Parameters parameters({.seed = 3});
  const auto generator = Make(Small(), &parameters, {.beam = 5, .n_best = 5});
  for (const Tokens& prompt : {Tokens{1}, Tokens{2, 3, 4}}) {
    const auto found = generator->Search(prompt, {.length = 20});
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->size(), 5);
    for (const Hypothesis& hypothesis : *found) {
      EXPECT_EQ(hypothesis.tokens.size(), 20);
      EXPECT_NEAR(hypothesis.log_probability, LogProbability(Small(), prompt, hypothesis.tokens), 1e-3);
    }
  }
}

// A search that goes on until no better text can come finds a text that is at least as good.
TEST(BeamGenerationTest, StopsAsItIsTold) {
  constexpr double kPenalty = 2;  // rewards long texts, so that later ones may be better
  int better = 0;
  for (int32_t first = 0; first < 7; ++first) {
    std::vector<double> scores;
    for (const BeamStop stop : {BeamStop::kFull, BeamStop::kNoBetter, BeamStop::kNever}) {
      Parameters parameters({.seed = 3});
      const auto generator = Make(Small(40), &parameters, {.beam = 2, .length_penalty = kPenalty, .stop = stop});
      const auto found = generator->Search({{first, 1}}, {.length = 30, .stop = {4}});
      ASSERT_TRUE(found.ok()) << found.status();
      scores.push_back((*found)[0].score);
    }
    EXPECT_GE(scores[1], scores[0]) << first;
    EXPECT_GE(scores[2], scores[1]) << first;
    better += scores[2] > scores[0] ? 1 : 0;
  }
  EXPECT_GT(better, 0);
}

// All of the likeliest tokens are stop tokens. The search must rank further tokens, with which its `beam` hypotheses go
// on. The length penalty makes a long text the best one.
TEST(BeamGenerationTest, ManyStopTokensLeaveRoomForOtherTokens) {
  const Tokens prompt = {1, 2};
  Tokens ranked;
  Parameters parameters({.seed = 3}), same({.seed = 3});
  Make(Small(), &same, {.beam = 0});
  const auto samples = Generator::Create(Small(), &same);
  ASSERT_TRUE(samples.ok());
  const auto take = [&](const GeneratedToken& next) {
    for (size_t i = 1; i < next.logprobs.size(); ++i) ranked.push_back(next.logprobs[i].token);
    return true;
  };
  ASSERT_TRUE((*samples)->Generate({prompt}, {.length = 1, .logprobs = 7}, take).ok());
  ranked.resize(4);  // the likeliest ones
  const auto generator = Make(Small(), &parameters, {.beam = 2, .length_penalty = 9, .stop = BeamStop::kNever});
  const auto found = generator->Search(prompt, {.length = 10, .stop = ranked});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE((*found)[0].tokens.empty());
}

TEST(BeamGenerationTest, OneHypothesisIsGreedyAndEndsAtStopsAndTheContext) {
  Parameters parameters({.seed = 3}), same({.seed = 3}), stopped({.seed = 3});
  const auto one = Make(Small(12), &parameters, {.beam = 1});
  const auto texts = one->Search({{1, 2}}, {.length = 100});
  ASSERT_TRUE(texts.ok()) << texts.status();
  Make(Small(12), &same, {.beam = 0});
  const auto greedy = Generator::Create(Small(12), &same);
  ASSERT_TRUE(greedy.ok());
  EXPECT_EQ((*texts)[0].tokens, (*greedy)->Generate({{1, 2}}, {.sampling = {.temperature = 0}, .length = 11})->at(0));
  const int32_t stop = (*texts)[0].tokens[3];
  const auto stops = Make(Small(12), &stopped, {.beam = 1});
  const Tokens& whole = (*texts)[0].tokens;
  EXPECT_EQ(stops->Search({{1, 2}}, {.length = 100, .stop = {100, stop}})->at(0).tokens,
            Tokens(whole.begin(), std::find(whole.begin(), whole.end(), stop)));
}

TEST(BeamGenerationTest, SaysWhatDoesNotFit) {
  Parameters parameters;
  const auto error = [&](const BeamSearchOptions& search, int64_t pages = 0) {
    return std::string(Generator::Create(Small(), &parameters, {.pages = pages, .search = search}).status().message());
  };
  EXPECT_THAT(error({.beam = -1}), HasSubstr("beam -1"));
  EXPECT_THAT(error({.beam = 49}), HasSubstr("beam <= 48"));
  EXPECT_THAT(error({.beam = 2, .n_best = 3}), HasSubstr("n_best 3"));
  EXPECT_THAT(error({.beam = 2}, /*pages=*/59), HasSubstr("pages is 59, wanted 60 to"));
  const auto generator = Make(Small(), &parameters, {.beam = 4});
  EXPECT_TRUE(generator->Search({{1}}, {.length = 0})->at(0).tokens.empty());
  EXPECT_THAT(std::string(generator->Search({{1}}, {.length = -1}).status().message()), HasSubstr("length is -1"));
  EXPECT_THAT(std::string(generator->Search({}, {}).status().message()), HasSubstr("no tokens"));
  EXPECT_THAT(std::string(generator->Search({{7}}, {}).status().message()), HasSubstr("7"));
  const auto samples = Make(Small(), &parameters, {.beam = 0});
  EXPECT_THAT(std::string(samples->Search({{1}}, {}).status().message()), HasSubstr("search.beam"));
}

// Generate gives the best text of each prompt, and each of its tokens to the sink until it returns false.
TEST(BeamGenerationTest, GeneratesTheBestTextOfEachPrompt) {
  Parameters parameters({.seed = 3});
  const auto generator = Make(Small(), &parameters, {.beam = 5});
  const std::vector<Tokens> prompts = {{1}, {2, 3, 4}};
  const auto texts = generator->Generate(prompts, {.length = 9},
                                         [](const GeneratedToken& next) { return next.prompt == 0 || next.token < 0; });
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->at(0), generator->Search(prompts[0], {.length = 9})->at(0).tokens);
  EXPECT_EQ(texts->at(1), Tokens{generator->Search(prompts[1], {.length = 9})->at(0).tokens[0]});
}

}  // namespace
}  // namespace weft
