// Each model is a row of sizes; one function records a step of any of them.
#include "weft/lab/models.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/random.h"
#include "weft/models/bert.h"
#include "weft/models/block.h"
#include "weft/models/gpt.h"

namespace weft {
namespace {

constexpr BenchModel kModels[] = {
    {"gpt2", 50257, 1024, 12, 12, 768, 4, 64},
    {"bert", 30522, 512, 12, 12, 768, 8, 128, /*causal=*/false},
    {"babygpt", 65, 256, 6, 6, 384, 8, 256},
    {"charcpu", 65, 64, 4, 4, 128, 12, 64},
    {"minilm-forward", 30522, 512, 6, 12, 384, 32, 128, /*causal=*/false, /*trains=*/false},
};

// Records the logits of a Gpt without the causal mask, so each position attends to all positions.
Var EncoderLogits(const BenchModel& model, Var tokens) {
  const Var table = EmbeddingTable("wte", tokens.tape, model.vocabulary, model.width);
  const Var positions = EmbeddingTable("wpe", tokens.tape, model.context, model.width);
  Var x = Embedding(table, tokens) + Slice(positions, 0, 0, tokens.dim(1));  // [B, T, C]
  const BlockOptions block = {.attention = {.heads = model.heads, .variant = {.patterns = {{.window = model.window}}}}};
  for (int64_t i = 0; i < model.layers; ++i) x = Block(absl::StrCat("h.", i), x, block);
  return MatMul(LayerNorm("ln_f", x), table, {.transpose_b = true});  // [B, T, V]
}

template <class Config>  // of a Gpt or a Bert
Config ConfigOf(const BenchModel& model) {
  return {.vocabulary = model.vocabulary,
          .context = model.context,
          .layers = model.layers,
          .heads = model.heads,
          .width = model.width,
          .attention = {.patterns = {{.window = model.window}}}};
}

Var Logits(const BenchModel& model, Var tokens) {
  if (!model.causal) return EncoderLogits(model, tokens);
  return Gpt(ConfigOf<GptConfig>(model)).Logits(tokens);
}

// Returns the sizes of a model whose context has at least `length` positions.
BenchModel WithContext(BenchModel model, int64_t length) {
  model.context = std::max(model.context, length);
  return model;
}

double Weights(const Tape& tape, absl::string_view prefix) {
  double count = 0;
  for (const Var& weight : tape.Weights()) {
    if (absl::StartsWith(tape.ParameterName(weight), prefix)) {
      count += static_cast<double>(weight.shape().elements());
    }
  }
  return count;
}

}  // namespace

absl::Span<const BenchModel> BenchModels() { return kModels; }

std::vector<std::string> BenchModelNames() {
  std::vector<std::string> names;
  for (const BenchModel& model : kModels) names.push_back(model.name);
  return names;
}

const BenchModel* FindBenchModel(absl::string_view name) {
  for (const BenchModel& model : kModels) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

std::vector<int32_t> RandomTokens(int64_t count, int64_t below, uint32_t stream) {
  const RandomStream random = {.seed = 1, .stream = stream};
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(random.Below(static_cast<uint64_t>(below), i));
  }
  return tokens;
}

Optimizer BenchOptimizer() { return AdamW({.clip = 1}); }

BenchStep RecordLoss(Tape* tape, const BenchModel& model, int64_t batch, int64_t length) {
  const TensorType ids = {kI32, {batch, length}};
  BenchStep step;
  step.tokens = tape->Input("tokens", ids, {.below = model.vocabulary});
  step.targets = tape->Input("targets", ids, {.below = model.vocabulary});
  step.result = CrossEntropy(Logits(WithContext(model, length), step.tokens), step.targets);
  return step;
}

BenchStep RecordStep(Tape* tape, const BenchModel& model, int64_t batch, int64_t length) {
  const double tokens = static_cast<double>(batch * length);
  if (!model.trains) {
    BenchStep step;
    step.tokens = tape->Input("tokens", {kI32, {batch, length}}, {.below = model.vocabulary});
    step.result = Bert(ConfigOf<BertConfig>(WithContext(model, length))).Encode(step.tokens);
    step.flops = 2 * Weights(*tape, "encoder.") * tokens;
    return step;
  }
  BenchStep step = RecordLoss(tape, model, batch, length);
  step.rate = tape->Input("learning_rate", {kF32, {}});
  step.update = BenchOptimizer().Minimize(step.result, step.rate);
  step.flops = 6 * Weights(*tape, "") * tokens;
  return step;
}

CompileOptions OptionsFor(const BenchStep& step) {
  CompileOptions options = {.fetch = {step.result}};
  if (step.update) {
    options.update = {step.update};
  } else {
    options.mode = kEval;
  }
  return options;
}

}  // namespace weft
