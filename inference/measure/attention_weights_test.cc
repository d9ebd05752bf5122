// Compares attention weights with those of PyTorch and of Hugging Face's transformers. tests/peers/attention_weights.py
// computed theirs.
#include "weft/inference/measure/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/safetensors.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/attention.h"
#include "weft/tests/peers/sorting_gpt.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The tolerance for results in f32, after up to 12 layers: theirs in f32 differ from theirs in f64 by up to 1.2e-6.
constexpr double kTolerance = 1.2e-6;

const Weights& Theirs() {
  static const absl::StatusOr<Weights>& file =
      *new absl::StatusOr<Weights>(Weights::Read("tests/peers/attention_weights.safetensors"));
  EXPECT_TRUE(file.ok()) << file.status();
  return *file;
}

absl::Span<const float> Array(const std::string& name) { return Theirs().Find(name)->span<const float>(); }

// Returns an array of ids as text: "3 1 4".
std::string Ids(const std::string& name) { return absl::StrJoin(Theirs().Find(name)->span<const int32_t>(), " "); }

std::string Folder(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder == nullptr ? "" : folder;
}

// Returns the largest difference, or infinity if the numbers of weights differ.
double Difference(absl::Span<const float> got, absl::Span<const float> wanted) {
  if (got.size() != wanted.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(got[i] - wanted[i])));
  }
  return worst;
}

// Compares the weights of `query` with `wanted`, in graphs with the op `attention` and without it. The weights of the
// two graphs must agree within the same tolerance.
void Compare(const std::string& model, AttentionQuery query, const std::vector<std::string>& wanted) {
  query.ids = true;
  std::vector<std::vector<float>> raised;
  for (const bool raise : {true, false}) {
    query.raise = raise;
    const absl::StatusOr<AttentionWeights> got = ReadAttention(model, query);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->maps.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double difference = Difference(got->maps[i].weights, Array(wanted[i]));
      EXPECT_LE(difference, kTolerance) << wanted[i];
      if (raise) raised.push_back(got->maps[i].weights);
      EXPECT_LE(Difference(got->maps[i].weights, raised[i]), kTolerance) << wanted[i];
      std::printf("%s, %s: largest difference %.1e\n", wanted[i].c_str(), raise ? "raised" : "elementary", difference);
    }
  }
}

TEST(AttentionWeightsTest, AreThoseOfHuggingFaceForMiniLm) {
  const std::string minilm = Folder("WEFT_MINILM");
  if (minilm.empty()) GTEST_SKIP() << "WEFT_MINILM is not set";
  Compare(minilm, {.text = Ids("minilm.ids")}, {"minilm.attention"});
}

TEST(AttentionWeightsTest, AreThoseOfHuggingFaceForTheSortingGpt) {
  const std::string data = Folder("WEFT_DATA");
  if (data.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  Compare(SortingGpt(data + "/gpt-nano-sort"), {.text = Ids("sort.ids")}, {"sort.attention"});
}

TEST(AttentionWeightsTest, AreThoseOfPyTorchForTheTransliterator) {
  const std::string data = Folder("WEFT_DATA");
  if (data.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string target = Ids("aren.target");  // begins with the begin token, which ReadAttention adds
  Compare(data + "/aren-transliteration", {.text = Ids("aren.source"), .second = target.substr(target.find(' ') + 1)},
          {"aren.encoder", "aren.decoder", "aren.cross"});
}

TEST(AttentionWeightsTest, AGreedyTranslationIsReadWithItsTokens) {
  const std::string data = Folder("WEFT_DATA");
  if (data.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const absl::StatusOr<AttentionWeights> got = ReadAttention(data + "/aren-transliteration", {.text = "آتزمون"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->family, "transformer");
  const AttentionMaps& cross = got->maps[2];
  EXPECT_THAT(cross.sources, ElementsAre("آ", "ت", "ز", "م", "و", "ن"));
  EXPECT_THAT(cross.targets, ElementsAre("<s>", "a", "t", "z", "m", "o", "n"));
  EXPECT_THAT(got->produced, ElementsAre("a", "t", "z", "m", "o", "n", "</s>"));
  EXPECT_LE(Difference(cross.weights, Array("aren.cross")), kTolerance);
}

// A layer with random weights, as PyTorch's MultiheadAttention with need_weights=True.
TEST(AttentionWeightsTest, AreThoseOfPyTorchsLayerWithMasks) {
  for (const bool cross : {false, true}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {2, 5, 12}}), memory = tape.Input("memory", {kF32, {2, 7, 12}});
    const Var lengths = tape.Input("lengths", {kI32, {2}}, {.below = 8});
    AttentionInputs inputs;
    if (cross) inputs = {.memory = memory, .mask = PaddingMask(lengths, 7)};
    MultiHeadAttention("attn", x, {.heads = 3, .causal = !cross, .packed = nullptr, .output = "out_proj"}, inputs);
    ASSERT_TRUE(tape.status().ok()) << tape.status();
    ASSERT_EQ(tape.probes().size(), 1);
    EXPECT_EQ(tape.probes()[0].name, "attn.attention_weights");
    const Var weights = tape.probes()[0].value;
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {weights}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    for (const char* part : {"q", "k"}) {
      const size_t row = part[0] == 'q' ? 0 : 12;
      for (const char* kind : {"weight", "bias"}) {
        const absl::StatusOr<Tensor> own = parameters.Find(absl::StrCat("attn.", part, "_proj.", kind));
        ASSERT_TRUE(own.ok()) << own.status();
        const absl::Span<const float> packed = Array(absl::StrCat("pytorch.in_proj_", kind));
        const size_t width = packed.size() / 36;
        std::copy_n(packed.begin() + static_cast<int64_t>(row * width), 12 * width, own->as<float>());
      }
    }
    std::vector<FeedPair> feeds = {{x, Array("pytorch.x")}};
    const std::vector<int32_t> counts = {7, 4};
    if (cross) feeds.insert(feeds.end(), {{memory, Array("pytorch.memory")}, {lengths, counts}});
    const absl::StatusOr<Outputs> out = runner.Run(feeds);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_LE(Difference((*out)[weights].span<const float>(), Array(cross ? "pytorch.cross" : "pytorch.causal")),
              kTolerance);
  }
}

TEST(AttentionWeightsTest, MeasuresKnownMaps) {
  // Head 1 takes from one source only, at distance 1. Head 2 takes from two sources, or sees none.
  AttentionMaps maps = {.targets = {"a", "b"}, .sources = {"a", "b"}, .layers = 1, .heads = 2};
  maps.weights = {0, 1, 1, 0, 0.5f, 0.5f, 0, 0};
  const HeadMeasures one = Measure(maps, 0, 0), two = Measure(maps, 0, 1);
  EXPECT_EQ(one.entropy, 0);
  EXPECT_EQ(one.distance, 1);
  EXPECT_EQ(one.min_sum, 1);
  EXPECT_EQ(two.entropy, 0.5);  // 1 bit, and 0 for the target that sees nothing
  EXPECT_EQ(two.distance, 0.5);
  EXPECT_EQ(two.min_sum, 0);
  EXPECT_EQ(two.max_sum, 1);
  EXPECT_THAT(StrongestSources(maps, 0), ElementsAre(1, 0));
}

TEST(AttentionWeightsTest, RefusesQueriesThatDoNotFitTheModel) {
  const std::string data = Folder("WEFT_DATA");
  if (data.empty()) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string sort = SortingGpt(data + "/gpt-nano-sort");
  const auto error = [](const std::string& model, AttentionQuery query) {
    query.ids = true;
    return std::string(ReadAttention(model, query).status().message());
  };
  EXPECT_THAT(error(sort, {.text = "0 1", .second = "1"}), HasSubstr("a GPT reads one text, but a second was given"));
  EXPECT_THAT(error(sort, {.text = "0 x"}), HasSubstr("'x' is not a token id"));
  EXPECT_THAT(error(sort, {.text = "0 3"}), HasSubstr("3"));
  EXPECT_THAT(error(sort, {.text = "0 0 0 0 0 0 0 0 0 0 0 0"}), HasSubstr("12 tokens, but the model's context is 11"));
  EXPECT_THAT(error(data + "/aren-transliteration", {.text = ""}), HasSubstr("the source has no tokens"));
}

TEST(AttentionWeightsTest, WithoutSpecialTokensEachRowSumsToOneAgain) {
  AttentionMaps maps = {.targets = {"[CLS]", "a", "b"},
                        .sources = {"[CLS]", "a", "b"},
                        .special = {0},
                        .layers = 1,
                        .heads = 1,
                        .weights = {0.5f, 0.375f, 0.125f, 0, 0.25f, 0.75f, 1, 0, 0}};
  LeaveOutSpecialTokens(&maps);
  EXPECT_THAT(maps.weights, ElementsAre(0, 0.75f, 0.25f,  // what [CLS] had is divided in proportion
                                        0, 0.25f, 0.75f,  // had none to lose
                                        0, 0, 0));        // took from [CLS] only
}

}  // namespace
}  // namespace weft
