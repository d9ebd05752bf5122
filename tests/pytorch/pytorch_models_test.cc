// Compares whole models with PyTorch's, in f64: logits, loss, and its gradient by every weight.
// tests/pytorch/model_cases.py computed the numbers and describes them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"
#include "weft/tests/cases/case_file.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-9;
// Differences are relative to at least this, because smaller numbers result from cancellation: the gradients of key
// biases are 0 except for rounding.
constexpr double kMinMagnitude = 1e-4;

constexpr int64_t kVocabulary = 19, kOtherVocabulary = 13, kContext = 9, kHeads = 2, kWidth = 16, kFeedForward = 24;

// Records the inputs of a case, one per call.
class Inputs {
 public:
  Inputs(Tape* tape, const Case& of) : tape_(tape), case_(of) {}

  Var Ids(const char* name, int64_t below) { return Add(name, {.below = below}); }
  Var Targets(int64_t below) { return Add("targets", {.below = below, .ignored = kIgnoredTarget}); }
  const std::vector<FeedPair>& feeds() const { return feeds_; }

 private:
  Var Add(const char* name, InputBounds bounds) {
    const Tensor tensor = *case_.inputs.at(feeds_.size());
    const Var input = tape_->Input(name, tensor.type, bounds);
    feeds_.push_back({input, tensor});
    return input;
  }

  Tape* tape_;
  const Case& case_;
  std::vector<FeedPair> feeds_;
};

struct Results {
  Var logits, loss;
};

BertConfig BertOf(int64_t layers) {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = layers,
          .heads = kHeads,
          .width = kWidth,
          .feed_forward = kFeedForward,
          .dropout = 0,
          .dtype = kF64};
}

Results BertMaskedTokens(Inputs& inputs) {
  const Bert bert(BertOf(/*layers=*/2));
  const Var tokens = inputs.Ids("tokens", kVocabulary), segments = inputs.Ids("segments", 2);
  const Var lengths = inputs.Ids("lengths", kContext);
  const Var logits = bert.MaskedTokens(bert.Encode(tokens, {.segments = segments, .lengths = lengths}));
  return {logits, CrossEntropy(logits, inputs.Targets(kVocabulary))};
}

Results BertClassify(Inputs& inputs) {
  const Bert bert(BertOf(/*layers=*/1));
  const Var logits = bert.ClassifyText(bert.Encode(inputs.Ids("tokens", kVocabulary)), {}, /*classes=*/3);
  return {logits, CrossEntropy(logits, inputs.Targets(3))};
}

TransformerConfig TransformerOf(int64_t target_vocabulary, int64_t layers) {
  return {.source_vocabulary = kVocabulary,
          .target_vocabulary = target_vocabulary,
          .context = kContext,
          .encoder_layers = layers,
          .decoder_layers = layers,
          .heads = kHeads,
          .width = kWidth,
          .feed_forward = kFeedForward,
          .dropout = 0,
          .label_smoothing = 0.1,
          .dtype = kF64};
}

Results TransformerResults(const TransformerConfig& config, Inputs& inputs) {
  const Transformer model(config);
  const Var source = inputs.Ids("source", config.source_vocabulary), lengths = inputs.Ids("lengths", kContext);
  const Var target = inputs.Ids("target", config.target_vocabulary);
  const Var logits = model.Logits(source, target, lengths);
  return {logits, model.Loss(logits, inputs.Targets(config.target_vocabulary))};
}

Results PostNormTransformer(Inputs& inputs) {
  return TransformerResults(TransformerOf(kOtherVocabulary, /*layers=*/2), inputs);
}

Results PreNormTransformer(Inputs& inputs) {
  TransformerConfig config = TransformerOf(kVocabulary, /*layers=*/1);
  config.activation = Activation::kGelu;
  config.pre_norm = true;
  config.positions = TransformerConfig::Positions::kLearned;
  config.scale_embeddings = false;
  config.shared_embeddings = true;
  config.head_bias = true;
  return TransformerResults(config, inputs);
}

GptConfig Gpt2() {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = 2,
          .heads = kHeads,
          .width = kWidth,
          .feed_forward = kFeedForward,
          .dtype = kF64};
}

GptConfig Llama() {
  GptConfig config = Gpt2();
  config.heads = 4;
  config.activation = Activation::kSilu;
  config.tied_head = false;
  config.bias = false;
  config.attention.key_value_heads = 2;
  config.attention.patterns = {{.window = 4}};
  config.norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6};
  config.gated = true;
  config.attention.rotary = RotaryLayout::kHalves;
  config.names = GptConfig::Names::kLlama;
  return config;
}

template <GptConfig (*config)()>
Results GptResults(Inputs& inputs) {
  const Var logits = Gpt(config()).Logits(inputs.Ids("tokens", kVocabulary));
  return {logits, CrossEntropy(logits, inputs.Targets(kVocabulary))};
}

const std::map<std::string, Results (*)(Inputs&)> kModels = {
    {"bert_masked_tokens", BertMaskedTokens},     {"bert_classify", BertClassify}, {"transformer", PostNormTransformer},
    {"transformer_pre_norm", PreNormTransformer}, {"gpt2", GptResults<Gpt2>},      {"llama", GptResults<Llama>},
};

std::vector<std::string> Keys(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// Returns the largest relative difference, or infinity if types differ or a number is not finite.
double Compare(const std::string& what, const Tensor& got, const Tensor& wanted) {
  if (const std::string difference = Difference(got, wanted, kRelative, kRelative * kMinMagnitude);
      !difference.empty()) {
    ADD_FAILURE() << what << ": " << difference;
  }
  if (got.type != wanted.type) return INFINITY;
  double largest = 0;
  const std::vector<double> x = Doubles(got), y = Doubles(wanted);
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(x[i] - y[i]) / std::max(std::abs(y[i]), kMinMagnitude);
    largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
  }
  std::printf("  %-60s %-14s %.1e\n", what.c_str(), ToString(wanted.type).c_str(), largest);
  return largest;
}

void Check(const CaseFile& file, const Case& of) {
  const auto model = kModels.find(of.name);
  ASSERT_TRUE(model != kModels.end());
  Tape tape;
  Inputs inputs(&tape, of);
  const Results results = model->second(inputs);
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  ASSERT_EQ(inputs.feeds().size(), of.inputs.size());
  const VarList weights = tape.Weights(), gradients = Gradient(results.loss, weights);
  VarList fetch = gradients;
  fetch.insert(fetch.end(), {results.logits, results.loss});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 2});
  ASSERT_TRUE(runner.status().ok()) << runner.status();

  const nlohmann::json &their_weights = of.attributes.at("weights"), &theirs = of.attributes.at("gradients");
  ASSERT_THAT(Keys(their_weights), testing::UnorderedElementsAreArray(parameters.Names(Parameters::kWeights)));
  ASSERT_EQ(Keys(theirs), Keys(their_weights));
  std::vector<NamedTensor> values;
  for (const std::string& name : Keys(their_weights)) values.push_back({name, file.TensorAt(their_weights.at(name))});
  ASSERT_TRUE(parameters.Set(of.name, values).ok()) << parameters.Set(of.name, values);
  const absl::StatusOr<Outputs> out = runner.Run(inputs.feeds());
  ASSERT_TRUE(out.ok()) << out.status();

  std::printf("%s: largest relative differences\n", of.name.c_str());
  const double logits = Compare("logits", (*out)[results.logits], *of.outputs.at(0));
  const double loss = Compare("loss", (*out)[results.loss], *of.outputs.at(1));
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = tape.ParameterName(weights[i]);
    largest = std::max(largest, Compare(name, (*out)[gradients[i]], file.TensorAt(theirs.at(name))));
  }
  std::printf("%s: logits %.1e, loss %.1e, gradients by %zu weights %.1e\n", of.name.c_str(), logits, loss,
              weights.size(), largest);
}

TEST(PytorchModelsTest, LogitsLossAndGradientsAreTheirs) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/pytorch/cases.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  size_t models = 0;
  for (const Case& of : file->cases()) {
    if (of.op != kModelCase) continue;
    SCOPED_TRACE(of.name);
    Check(*file, of);
    ++models;
  }
  EXPECT_EQ(models, kModels.size());
}

}  // namespace
}  // namespace weft
