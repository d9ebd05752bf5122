// Ten thousand texts in continuous batches, and the bits of texts in company.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/core/random.h"
#include "weft/inference/generate/generate.h"

namespace weft {
namespace {

constexpr size_t kTexts = 10000;
constexpr int64_t kPages = 20;

using Text = std::vector<std::pair<int32_t, float>>;  // tokens with their log-probabilities

// Prompts of 1 to 120 tokens. Every third begins like others.
std::vector<std::vector<int32_t>> Prompts() {
  const RandomStream random = {.seed = 7};
  std::vector<std::vector<int32_t>> prompts(kTexts);
  for (size_t i = 0; i < kTexts; ++i) {
    prompts[i].resize(1 + random.Below(120, 2 * i));
    for (size_t k = 0; k < prompts[i].size(); ++k) {
      const bool common = i % 3 == 0 && k < 80;
      prompts[i][k] = static_cast<int32_t>((common ? k * k : k * 7 + i * (1 + k % 5)) % 40);
    }
  }
  return prompts;
}

// Texts end after 1 to 30 tokens.
bool Continues(size_t prompt, const Text& text) {
  const RandomStream random = {.seed = 8};
  return text.size() < 1 + random.Below(30, prompt);
}

class GenerateManyTest : public testing::Test {
 protected:
  void SetUp() override {
    const GptConfig config = {.vocabulary = 40, .context = 128, .layers = 2, .heads = 2, .width = 32};
    const GeneratorOptions how = {.runtime = {.batch = 24, .threads = 2}, .pages = kPages};
    auto made = Generator::Create(config, &parameters_, how);
    ASSERT_TRUE(made.ok()) << made.status();
    many_ = *std::move(made);
    made = Generator::Create(config, &parameters_, {.runtime = {.batch = 1, .threads = 1}});
    ASSERT_TRUE(made.ok()) << made.status();
    one_ = *std::move(made);
  }

  Parameters parameters_{{.seed = 3}};
  std::unique_ptr<Generator> many_, one_;
};

TEST_F(GenerateManyTest, GivesTheSameTextsAsOneByOneInTheSameMemory) {
  const std::vector<std::vector<int32_t>> prompts = Prompts();
  const GenerateOptions options = {.sampling = {.seed = 4}, .length = 30, .logprobs = 0};
  std::vector<Text> together(kTexts);
  size_t ended = 0, early_bytes = 0;
  const auto status = many_->Generate(prompts, options, [&](const GeneratedToken& next) {
    Text& text = together[next.prompt];
    text.emplace_back(next.token, next.logprobs.at(0).logprob);
    const bool more = Continues(next.prompt, text);
    if (!more && ++ended == kTexts / 10) early_bytes = ResidentBytes();
    return more;
  });
  ASSERT_TRUE(status.ok()) << status.status();
  const size_t late_bytes = ResidentBytes();
  EXPECT_EQ(ended, kTexts);
  EXPECT_LE(many_->counts().peak_pages, kPages);
  EXPECT_GT(many_->counts().peak_pages, kPages / 2);
  constexpr size_t kTextBytes = kTexts * 30 * (sizeof(int32_t) + 2 * sizeof(std::pair<int32_t, float>));
  EXPECT_LT(late_bytes, early_bytes + kTextBytes + (size_t{4} << 20)) << "of which the texts take " << kTextBytes;
  for (size_t i = 0; i < kTexts; ++i) {
    Text alone;
    const auto one = one_->Generate({&prompts[i], 1}, options, [&](const GeneratedToken& next) {
      alone.emplace_back(next.token, next.logprobs.at(0).logprob);
      return Continues(i, alone);
    });
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_EQ(together[i], alone) << "text " << i;
  }
}

// Adds a text every second step, and removes each seventh of them after a few steps.
TEST_F(GenerateManyTest, TextsThatComeAndGoOneByOneDoNotChangeOthers) {
  const std::vector<std::vector<int32_t>> all = Prompts();
  const GenerateOptions options = {.sampling = {.seed = 4}, .length = 30};
  constexpr size_t kAdded = 300;
  std::vector<std::vector<int32_t>> texts(kAdded);
  std::vector<std::optional<TextEnd>> ends(kAdded);
  std::vector<size_t> numbers;
  bool more = true;
  for (size_t step = 0; more || numbers.size() < kAdded; ++step) {
    if (const size_t i = numbers.size(); step % 2 == 0 && i < kAdded) {
      const auto added = many_->Add({.prompt = all[i],
                                     .options = options,
                                     .sink =
                                         [&texts, i](const GeneratedToken& next) {
                                           texts[i].push_back(next.token);
                                           return texts[i].size() < 5 + i % 40;
                                         },
                                     .ended = [&ends, i](TextEnd end) { ends[i] = end; }});
      ASSERT_TRUE(added.ok()) << added.status();
      numbers.push_back(*added);
      if (i % 7 == 3) many_->Remove(numbers[i - 3]);
    }
    const absl::StatusOr<bool> left = many_->Step();
    ASSERT_TRUE(left.ok()) << left.status();
    more = *left;
  }
  EXPECT_EQ(many_->used_pages(), 0);
  for (size_t i = 0; i < kAdded; ++i) {
    if (i % 7 == 0) continue;  // those are removed, unless they ended before
    const auto alone = one_->Generate({&all[i], 1}, options);
    ASSERT_TRUE(alone.ok()) << alone.status();
    std::vector<int32_t> wanted = (*alone)[0];
    wanted.resize(std::min(wanted.size(), 5 + i % 40));
    EXPECT_EQ(texts[i], wanted) << i;
    ASSERT_TRUE(ends[i].has_value()) << i;
    EXPECT_EQ(*ends[i], 5 + i % 40 <= 30 ? TextEnd::kSink : TextEnd::kLength) << i;
  }
}

// Prompts of up to 48 tokens may be read with other products than longer ones. Texts share pages and chunks, wait for
// pages, and fill the context.
TEST(GenerateInCompanyTest, LogprobsAreTheSameBits) {
  using Tokens = std::vector<int32_t>;
  std::vector<Tokens> prompts;
  for (const size_t size : {1, 20, 48, 49, 64, 65, 100, 129, 200, 200, 250}) {
    Tokens& prompt = prompts.emplace_back(size);
    for (size_t i = 0; i < size; ++i)
      prompt[i] = static_cast<int32_t>(i < 140 ? i * i % 69 : (i + prompts.size()) % 69);
  }
  const auto check = [&](const GptConfig& config, DType weights, absl::Span<const int64_t> chunks) {
    const auto generate = [&](absl::Span<const Tokens> some, GeneratorOptions how, size_t most_pages) {
      how.runtime.weights = weights;
      Parameters parameters({.seed = 3});
      const auto generator = Generator::Create(config, &parameters, how);
      EXPECT_TRUE(generator.ok()) << generator.status();
      std::vector<Text> texts(some.size());
      const GenerateOptions options = {.sampling = {.seed = 2}, .length = 60, .logprobs = 0};
      const auto status = (*generator)->Generate(some, options, [&](const GeneratedToken& next) {
        texts[next.prompt].emplace_back(next.token, next.logprobs.at(0).logprob);
        return next.prompt % 4 != 2 || texts[next.prompt].size() < 7;
      });
      EXPECT_TRUE(status.ok()) << status.status();
      EXPECT_LE((*generator)->counts().peak_pages, most_pages);
      return texts;
    };
    std::vector<Text> alone;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<Tokens> some(i % 4 == 2 ? 3 : 1, prompts[i]);  // so that prompt 2, 6, ... ends early here, too
      alone.push_back(generate(some, {.runtime = {.batch = 1, .threads = 1}}, 4).back());
    }
    for (const int64_t batch : {3, 11}) {
      for (const int64_t chunk : chunks) {
        for (const int64_t pages : {0, 4, 9}) {
          EXPECT_EQ(generate(prompts, {.runtime = {.batch = batch, .threads = 2}, .chunk = chunk, .pages = pages},
                             static_cast<size_t>(pages == 0 ? 4 * batch : pages)),
                    alone)
              << Name(weights) << ", batch " << batch << ", chunk " << chunk << ", pages " << pages;
        }
      }
    }
  };
  GptConfig config = {.vocabulary = 70, .context = 250, .layers = 2, .heads = 2, .width = 64};
  check(config, kF32, {64, 200, 512});
  for (const DType weights : {kBF16, kQ8_0, kQ4_0}) check(config, weights, {200});
  config.attention.patterns = {{.window = 70}, {.window = 3}};
  check(config, kF32, {200});
  config.layers = 1;
  config.width = 384;
  for (const DType weights : {kF32, kQ8_0}) check(config, weights, {512});
}

}  // namespace
}  // namespace weft
