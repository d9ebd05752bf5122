// The parameters of models, by recording them.
#include "weft/formats/weights.h"

namespace weft {
namespace {

std::vector<ParameterSpec> WeightsOf(const Tape& tape) {
  std::vector<ParameterSpec> weights;
  for (const ParameterSpec& spec : tape.program().parameters) {
    if (spec.kind == ParameterKind::kWeight) weights.push_back(spec);
  }
  return weights;
}

Var Tokens(Tape* tape, const char* name, int64_t vocabulary) {
  return tape->Input(name, {kI32, {1, 1}}, {.below = vocabulary});
}

}  // namespace

std::vector<ParameterSpec> ParametersOf(const GptConfig& config) {
  Tape tape;
  Gpt(config).Logits(Tokens(&tape, "tokens", config.vocabulary));
  return WeightsOf(tape);
}

std::vector<ParameterSpec> ParametersOf(const BertConfig& config, const Weights& weights) {
  Tape tape;
  const Bert bert(config);
  const Var hidden = bert.Encode(Tokens(&tape, "tokens", config.vocabulary));
  const bool next_sentence = weights.Has("cls.seq_relationship.");
  if (!tape.status().ok()) return {};
  if (next_sentence || weights.Has("pooler.dense.")) {
    const Var pooled = bert.Pool(hidden);
    if (next_sentence) bert.NextSentence(pooled);
  }
  if (weights.Has("cls.predictions.")) bert.MaskedTokens(hidden);
  if (weights.Has("classifier.")) {
    const Tensor* const classifier = weights.Find("classifier.weight");
    const Shape shape = classifier != nullptr ? classifier->type.shape : Shape();
    bert.Classify(hidden, shape.rank() > 0 ? std::max<int64_t>(shape.dim(0), 1) : 2);
  }
  return WeightsOf(tape);
}

std::vector<ParameterSpec> ParametersOf(const TransformerConfig& config) {
  Tape tape;
  const Var source = Tokens(&tape, "source", config.source_vocabulary);
  Transformer(config).Logits(source, Tokens(&tape, "target", config.target_vocabulary));
  return WeightsOf(tape);
}

std::vector<ParameterSpec> ParametersOf(const VitConfig& config) {
  Tape tape;
  Vit(config).Logits(tape.Input("images", {kF32, {1, config.image_height, config.image_width, config.channels}}));
  return WeightsOf(tape);
}

}  // namespace weft
