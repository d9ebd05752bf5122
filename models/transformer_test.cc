#include "weft/models/transformer.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 4, kSource = 5, kTarget = 6, kVocabulary = 9;

TransformerConfig Small() {
  return {.source_vocabulary = kVocabulary,
          .target_vocabulary = kVocabulary,
          .context = 16,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .heads = 2,
          .width = 8,
          .feed_forward = 12};
}

std::vector<int32_t> Tokens(int64_t n, int32_t step) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((i * i + step * i + 1) % kVocabulary);
  return tokens;
}

// Returns the losses of `steps` training steps on one batch, or an error.
absl::StatusOr<std::vector<double>> Train(const TransformerConfig& config, int steps, Parameters* parameters) {
  Tape tape;
  const Var source = tape.Input("source", {kI32, {kBatch, kSource}}, {.below = kVocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {kBatch}}, {.below = kSource + 1});
  const Var target = tape.Input("target", {kI32, {kBatch, kTarget}}, {.below = kVocabulary});
  const Var next = tape.Input("next", {kI32, {kBatch, kTarget}}, {.below = kVocabulary, .ignored = -100});
  const Var rate = tape.Input("rate", {kF32, {}});
  const Transformer model(config);
  const Var loss = model.Loss(model.Logits(source, target, lengths), next);
  WEFT_RETURN_IF_ERROR(tape.status());
  const VarList weights = tape.Weights(), gradients = Gradient(loss, weights);
  const Var factor = rate * ClipScale(GlobalNorm(gradients), 1);
  VarList updates;
  for (size_t i = 0; i < weights.size(); ++i) updates.push_back(Assign(weights[i], weights[i] - factor * gradients[i]));
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = {loss}, .update = updates}));
  Runner runner(graph, parameters);
  std::vector<int32_t> answers = Tokens(kBatch * kTarget, 5);
  answers.back() = -100;
  const std::vector<int32_t> words = Tokens(kBatch * kSource, 3), seen = Tokens(kBatch * kTarget, 4),
                             counts = {5, 1, 3, 4};
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    WEFT_ASSIGN_OR_RETURN(
        const Outputs out,
        runner.Run({{source, words}, {lengths, counts}, {target, seen}, {next, answers}, {rate, 0.3f}}));
    losses.push_back(out.Scalar(loss));
  }
  return losses;
}

TEST(TransformerTest, EveryFormLearns) {
  std::vector<std::pair<std::string, TransformerConfig>> forms;
  const auto add = [&](const std::string& name, auto change) {
    TransformerConfig config = Small();
    config.dropout = 0;
    change(&config);
    forms.emplace_back(name, config);
  };
  add("as published", [](TransformerConfig*) {});
  add("pre-norm", [](TransformerConfig* c) { c->pre_norm = true; });
  add("learned positions", [](TransformerConfig* c) { c->positions = TransformerConfig::Positions::kLearned; });
  add("shared embeddings", [](TransformerConfig* c) { c->shared_embeddings = true; });
  add("a head of its own", [](TransformerConfig* c) { c->tied_head = false; });
  add("each layer its own memory", [](TransformerConfig* c) { c->memory = TransformerConfig::Memory::kSameLayer; });
  add("additive", [](TransformerConfig* c) {
    c->attention.score = ScoreFunction::kAdditive;
    c->attention.query_width = 3;
    c->attention.key_width = 5;
    c->attention.value_width = 4;
  });
  add("averaged heads", [](TransformerConfig* c) { c->attention.merge = HeadMerge::kAverage; });
  add("local and strided", [](TransformerConfig* c) { c->attention.patterns = {{.window = 2}, {.stride = 2}, {}}; });
  add("dropout", [](TransformerConfig* c) { c->dropout = c->attention_dropout = c->activation_dropout = 0.05; });
  for (const auto& [name, config] : forms) {
    SCOPED_TRACE(name);
    Parameters parameters({.seed = 3});
    const absl::StatusOr<std::vector<double>> losses = Train(config, 60, &parameters);
    ASSERT_TRUE(losses.ok()) << losses.status();
    EXPECT_LT(losses->back(), 0.75 * losses->front()) << losses->front() << " -> " << losses->back();
  }
}

TEST(TransformerTest, TwoHundredNarrowLayersLearn) {
  TransformerConfig config = Small();
  config.encoder_layers = config.decoder_layers = 100;
  config.pre_norm = true;
  config.dropout = 0;
  Parameters parameters({.seed = 3});
  const absl::StatusOr<std::vector<double>> losses = Train(config, 30, &parameters);
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_LT(losses->back(), 0.9 * losses->front()) << losses->front() << " -> " << losses->back();
}

TEST(TransformerTest, HasTheNamesOfTheField) {
  Parameters parameters;
  ASSERT_TRUE(Train(Small(), 1, &parameters).ok());
  const std::vector<std::string> names = parameters.Names(Parameters::kWeights);
  for (const char* name :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "encoder.layers.1.self_attn.q_proj.weight",
        "encoder.layers.0.fc1.bias", "decoder.layers.0.encoder_attn.v_proj.weight",
        "decoder.layers.1.encoder_attn_layer_norm.weight", "decoder.layers.1.final_layer_norm.bias"}) {
    EXPECT_THAT(names, Contains(name));
  }
  // There are two token tables. Each encoder layer has one attention, two norms and the feed-forward layers. Each
  // decoder layer has two attentions, three norms and the feed-forward layers.
  constexpr int64_t kC = 8, kF = 12, kAttention = 4 * (kC * kC + kC), kNorm = 2 * kC, kFeed = 2 * kC * kF + kC + kF;
  EXPECT_EQ(parameters.ElementCount(),
            2 * kVocabulary * kC + 2 * (kAttention + 2 * kNorm + kFeed) + 2 * (2 * kAttention + 3 * kNorm + kFeed));
}

TEST(TransformerTest, SaysWhatDoesNotFit) {
  const auto error = [](auto change) {
    TransformerConfig config = Small();
    change(&config);
    Parameters parameters;
    return std::string(Train(config, 1, &parameters).status().message());
  };
  EXPECT_THAT(error([](TransformerConfig* c) { c->heads = 3; }), HasSubstr("width 8 is not a multiple of heads 3"));
  EXPECT_THAT(error([](TransformerConfig* c) { c->context = 4; }), HasSubstr("encoder's tokens must be i32[B,T]"));
  EXPECT_THAT(error([](TransformerConfig* c) { c->decoder_layers = 0; }), HasSubstr("decoder_layers is 0"));
  EXPECT_THAT(error([](TransformerConfig* c) { c->dropout = 1; }), HasSubstr("dropout is 1"));
  EXPECT_THAT(error([](TransformerConfig* c) { c->attention.query_width = 3, c->attention.key_width = 4; }),
              HasSubstr("query_width 3 and key_width 4 differ, which only additive attention allows"));
  EXPECT_THAT(
      error([](TransformerConfig* c) { c->attention.merge = HeadMerge::kAverage, c->attention.value_width = 3; }),
      HasSubstr("value_width is 3, but the mean of heads needs values as wide as the model, 8"));
  EXPECT_THAT(error([](TransformerConfig* c) {
                c->shared_embeddings = true;
                c->target_vocabulary = 10;
              }),
              HasSubstr("source_vocabulary 9 and target_vocabulary 10 differ"));
  EXPECT_THAT(error([](TransformerConfig* c) {
                c->memory = TransformerConfig::Memory::kSameLayer;
                c->encoder_layers = 3;
              }),
              HasSubstr("encoder_layers 3 and decoder_layers 2 differ"));
}

TEST(TransformerTest, EachDecoderLayerNeedsItsMemory) {
  for (const bool store : {false, true}) {
    Tape tape;
    const Var tokens = tape.Input("tokens", {kI32, {kBatch, kSource}}, {.below = kVocabulary});
    const Transformer model(Small());
    const VarList memory = {model.Encode(tokens)[0]};
    if (store) {
      model.StoreMemory(memory, {});
    } else {
      model.Decode(tokens, memory);
    }
    EXPECT_THAT(std::string(tape.status().message()),
                HasSubstr("the memory has 1 values, wanted one for each of 2 decoder layers"));
  }
}

}  // namespace
}  // namespace weft
