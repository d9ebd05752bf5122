// Opens tiny encoders with their tokenizers, and compares embeddings, guesses of masked tokens and labels of pairs with
// those of transformers. draw.py wrote the folders and the results. The texts of an encoder run as one padded batch.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/encode/token_states.h"

namespace weft {
namespace {

using Json = nlohmann::json;
constexpr char kFolder[] = "tests/encoders/";
constexpr double kTolerance = 1e-5;

// Returns the contents of expected.json of each model that has `key`, with the model's path.
std::vector<std::pair<std::string, Json>> ModelsWith(const std::string& key) {
  std::vector<std::pair<std::string, Json>> models;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const absl::StatusOr<std::string> text = ReadFile(entry.path().string() + "/expected.json");
    if (!text.ok()) continue;
    Json expected = Json::parse(*text);
    if (expected.contains(key)) models.emplace_back(entry.path().string(), std::move(expected));
  }
  EXPECT_GE(models.size(), 2u);
  return models;
}

TEST(EncodersTest, SentenceEmbeddingsAreThoseOfTransformers) {
  for (const auto& [path, expected] : ModelsWith("embeddings")) {
    const auto encoder = OpenSentenceEncoder(path, {});
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    std::vector<ModelInput> inputs;
    for (const std::string text : expected["texts"]) {
      const auto ids = (*encoder)->Tokens(text);
      ASSERT_TRUE(ids.ok()) << ids.status();
      inputs.push_back((*encoder)->tokenizer().Wrap(*ids));
    }
    const absl::Status run = (*encoder)->Run(inputs, [&, &all = expected](size_t i, absl::Span<const float> embedding) {
      const std::vector<double> wanted = all["embeddings"][i];
      ASSERT_EQ(embedding.size(), wanted.size());
      for (size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(embedding[k], wanted[k], kTolerance) << path << ", " << i;
    });
    EXPECT_TRUE(run.ok()) << run;
  }
}

TEST(EncodersTest, MaskedTokensAreThoseOfTransformers) {
  for (const auto& [path, expected] : ModelsWith("masked")) {
    const auto filler = MaskFiller::Open(path, /*top_k=*/5, {});
    ASSERT_TRUE(filler.ok()) << filler.status();
    const auto ids = (*filler)->Encode(expected["masked"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    const auto take = [&, &all = expected](absl::Span<const MaskCandidate> candidates) {
      ASSERT_EQ(candidates.size(), 5u);
      for (size_t i = 0; i < candidates.size(); ++i) {
        EXPECT_EQ(candidates[i].token, all["tokens"][i]) << path << ", " << i;
        EXPECT_NEAR(candidates[i].score, all["probabilities"][i], kTolerance) << path << ", " << i;
      }
    };
    const absl::Status fill = (*filler)->Fill({*ids}, take);
    EXPECT_TRUE(fill.ok()) << fill;
  }
}

TEST(EncodersTest, LabelsOfPairsAreThoseOfTransformers) {
  for (const auto& [path, expected] : ModelsWith("pair")) {
    absl::StatusOr<OpenedBert> bert = OpenBert(path);
    ASSERT_TRUE(bert.ok()) << bert.status();
    const auto head = TextHead::Create(*std::move(bert), {.pairs = true});
    ASSERT_TRUE(head.ok()) << head.status();
    const std::string file = absl::StrCat(testing::TempDir(), "/pair.txt");
    const std::string first = expected["pair"][0], second = expected["pair"][1];
    ASSERT_TRUE(WriteFile(file, {first, "\t", second, "\n"}).ok());
    const auto take = [&, &all = expected](absl::Span<const ClassifierResult> results) {
      ASSERT_EQ(results.size(), 1u);
      for (const auto& [label, probability, id] :
           RankLabels((*head)->labels(), results[0].values[0], (*head)->scores())) {
        EXPECT_NEAR(probability, all["probabilities"][static_cast<size_t>(id)], kTolerance) << path << ", " << label;
      }
    };
    const absl::Status classified = (*head)->Classify({file}, take);
    EXPECT_TRUE(classified.ok()) << classified;
  }
}

}  // namespace
}  // namespace weft
