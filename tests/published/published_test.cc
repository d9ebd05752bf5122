// Changes one key at a time in the config.json of tiny published models, and compares what Weft makes of it with what
// transformers makes of it. draw.py wrote the models and the results. A model that is read must have the outputs of
// transformers. Otherwise the error must name the key or the tensors that do not fit.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/inference/encode/classifier.h"
#include "weft/text/data/gzip.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "tests/published/", kAbsent[] = "(absent)";
constexpr double kTolerance = 2e-4;

// The inputs of draw.py.
const std::vector<int32_t> kTokens = {1, 5, 9, 2, 7, 11, 3, 8}, kSegments = {0, 0, 0, 0, 1, 1, 1, 1},
                           kTargets = {2, 6, 4, 10, 12};

// Records a model on inputs of batch 1.
struct Recorded {
  Var Ids(const char* name, const std::vector<int32_t>& ids, int64_t below) {
    const Var input = tape.Input(name, {kI32, {1, static_cast<int64_t>(ids.size())}}, {.below = below});
    feeds.push_back({input, ids});
    return input;
  }

  Tape tape;
  std::vector<FeedPair> feeds;
  std::vector<float> pixels;  // which a feed refers to
  VarList outputs;
  std::vector<std::string> labels = {};  // if the outputs are a classifier's logits
  LabelScores scores = LabelScores::kSoftmax;
};

void Record(const PublishedGpt& gpt, Recorded* to) {
  to->outputs = {Gpt(gpt.config).Logits(to->Ids("tokens", kTokens, gpt.config.vocabulary))};
}

void Record(const PublishedBert& model, Recorded* to) {
  const Bert bert(model.config);
  const Var tokens = to->Ids("tokens", kTokens, model.config.vocabulary);
  const Var hidden = bert.Encode(tokens, {.segments = to->Ids("segments", kSegments, model.config.segments)});
  const auto classes = static_cast<int64_t>(model.labels.size());
  const bool masked = model.weights.Has("cls.predictions."), next = model.weights.Has("cls.seq_relationship.");
  if (model.task == TextTask::kTokens) {
    to->outputs = {bert.Classify(hidden, classes)};
  } else if (classes > 0) {
    to->outputs = {bert.ClassifyText(hidden, {}, classes)};
    to->labels = model.labels;
    to->scores = model.scores;
  } else {
    to->outputs = masked || next ? VarList() : VarList{hidden, bert.Pool(hidden)};
    if (masked) to->outputs.push_back(bert.MaskedTokens(hidden));
    if (next) to->outputs.push_back(bert.NextSentence(bert.Pool(hidden)));
  }
}

void Record(const PublishedVit& vit, Recorded* to) {
  for (int i = 0; i < 64; ++i) to->pixels.push_back(std::sin(static_cast<float>(i)));
  const VitConfig& config = vit.config;
  const Shape shape = {1, config.image_height, config.image_width, config.channels};
  const Var images = to->tape.Input("images", {kF32, shape});
  to->feeds.push_back({images, to->pixels});
  to->outputs = {Vit(config).Logits(images)};
  to->labels = vit.labels;
  to->scores = vit.scores;
}

void Record(const PublishedTransformer& transformer, Recorded* to) {
  const TransformerConfig& config = transformer.config;
  to->outputs = {Transformer(config).Logits(to->Ids("source", kTokens, config.source_vocabulary),
                                            to->Ids("target", kTargets, config.target_vocabulary))};
}

// Reads the model and computes its outputs, one after the other.
absl::StatusOr<std::vector<double>> OutputsOf(const std::string& folder) {
  const absl::StatusOr<PublishedModel> model = ReadModel(folder);
  if (!model.ok()) return model.status();
  Recorded recorded;
  std::visit([&](const auto& published) { Record(published, &recorded); }, *model);
  const absl::StatusOr<Graph> graph = Compile(recorded.tape, {.fetch = recorded.outputs, .mode = kEval});
  if (!graph.ok()) return graph.status();
  Parameters parameters({.draw = false});
  if (absl::Status set = ProvideFiniteWeights(folder, WeightsOf(*model), &parameters); !set.ok()) return set;
  Runner runner(*graph, &parameters, {.threads = 1});
  const absl::StatusOr<Outputs> out = runner.Run(recorded.feeds);
  if (!out.ok()) return out.status();
  std::vector<double> values;
  for (const Var output : recorded.outputs) {
    const absl::Span<const float> part = (*out)[output].span<const float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  if (recorded.labels.empty()) return values;
  const std::vector<float> logits(values.begin(), values.end());
  for (const auto& [label, score, id] : RankLabels(recorded.labels, logits, recorded.scores)) {
    values[static_cast<size_t>(id)] = score;
  }
  return values;
}

// Returns the largest difference from the outputs that draw.py kept, or infinity.
double Difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() < wanted.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(got[i * got.size() / wanted.size()] - wanted[i]);
    largest = difference >= 0 ? std::max(largest, difference) : INFINITY;
  }
  return largest;
}

TEST(PublishedTest, EachKeyIsFollowedOrRefused) {
  const absl::StatusOr<std::string> text = ReadMaybeGzip(absl::StrCat(kFolder, "cases.json.gz"));
  ASSERT_TRUE(text.ok()) << text.status();
  const Json cases = Json::parse(*text);
  for (const auto& [name, model] : cases.items()) {
    const absl::StatusOr<std::string> config = ReadFile(absl::StrCat(kFolder, name, "/config.json"));
    ASSERT_TRUE(config.ok()) << config.status();
    const Json original = Json::parse(*config);
    const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(absl::StrCat(kFolder, name, "/model.safetensors"), folder + "/model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    const auto outputs_of = [&](const Json& json) {
      EXPECT_TRUE(WriteFile(folder + "/config.json", {json.dump()}).ok());
      return OutputsOf(folder);
    };
    const absl::StatusOr<std::vector<double>> base = outputs_of(original);
    ASSERT_TRUE(base.ok()) << name << ": " << base.status();
    ASSERT_LT(Difference(*base, model["outputs"]), kTolerance) << name;
    int same = 0, followed = 0, refused = 0;
    for (const Json& row : model["rows"]) {
      const std::string key = row[0];
      const Json& expected = row[2];
      Json changed = original;
      if (row[1] == kAbsent) {
        changed.erase(key);
      } else {
        changed[key] = row[1];
      }
      const std::string what = absl::StrCat(name, ", ", key, ": ", row[1].dump(), ", in transformers ",
                                            expected.is_array() ? "other outputs" : expected.dump());
      const absl::StatusOr<std::vector<double>> got = outputs_of(changed);
      if (!got.ok()) {
        EXPECT_TRUE(expected == "error" || absl::IsFailedPrecondition(got.status()) ||
                    absl::StrContains(got.status().message(), key))
            << what << ": " << got.status();
        ++refused;
      } else {  // where transformers has no outputs, the key must have no effect
        const Json& wanted = expected.is_array() ? expected : model["outputs"];
        EXPECT_LT(Difference(*got, wanted), kTolerance) << what;
        ++(expected.is_array() ? followed : same);
      }
    }
    std::printf("%-12s %d keys change nothing, %d are followed, %d are refused\n", name.c_str(), same, followed,
                refused);
  }
}

}  // namespace
}  // namespace weft
