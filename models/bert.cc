// Each layer has the scope of its name in Hugging Face's BertModel, so checkpoints load by name.
#include "weft/models/bert.h"

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/models/block.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr char kTokenTable[] = "embeddings.word_embeddings";

BlockOptions BlockOf(const BertConfig& config, int64_t layer) {
  const BlockOptions names = {
      .attention = {.packed = nullptr,
                    .query = "self.query",
                    .key = "self.key",
                    .value = "self.value",
                    .output = "output.dense"},
      .feed_forward = {.up = "intermediate.dense", .gate = "intermediate.gate", .down = "output.dense"},
      .attention_name = "attention",
      .attention_norm = "attention.output.LayerNorm",
      .feed_forward_name = "",
      .feed_forward_norm = "output.LayerNorm"};
  return WithStack(names, config, layer, Gaussian(0.02f));
}

}  // namespace

absl::Status Validate(const BertConfig& config) {
  WEFT_RETURN_IF_ERROR(ValidateStack(config,
                                     {{"vocabulary", config.vocabulary, 1, kMaxTokens},
                                      {"context", config.context, 1, kMaxPositions},
                                      {"segments", config.segments, 1, kMaxTokens},
                                      {"layers", config.layers, 1, kMaxLayers}},
                                     config.context, config.positions));
  return CheckDropout(config.classifier_dropout, "classifier_dropout");
}

Var Bert::Encode(Var tokens, const BertInputs& inputs) const {
  Tape* const tape = tokens.tape;
  const Scope scope(tape, "bert", Scope::kNoNames);
  if (!CheckTokens("bert", "tokens", tokens, config_)) return tape->Poison();
  const int64_t length = tokens.dim(1);
  const auto table = [&](const char* name, int64_t rows) {
    return EmbeddingTable(name, tape, rows, config_.width, {.dtype = config_.dtype});
  };
  Var x = Embedding(table(kTokenTable, config_.vocabulary), tokens);  // [B, T, C]
  x = AddPositions(x, {.kind = Resolve(config_.positions, config_.attention),
                       .name = "embeddings.position_embeddings",
                       .context = config_.context});
  const Var segments = table("embeddings.token_type_embeddings", config_.segments);
  x = x + (inputs.segments.tape != nullptr ? Embedding(segments, inputs.segments) : Slice(segments, 0, 0, 1));
  x = Dropout(Norm("embeddings.LayerNorm", x, config_.norm, config_.ablation), config_.dropout);

  BlockInputs block;
  if (inputs.lengths.tape != nullptr) block.attention.mask = PaddingMask(inputs.lengths, length);
  for (int64_t i = 0; i < config_.layers; ++i) {
    x = Block(absl::StrCat("encoder.layer.", i), x, BlockOf(config_, i), block);
  }
  return config_.pre_norm ? Norm("encoder.LayerNorm", x, config_.norm, config_.ablation) : x;
}

Var Bert::Pool(Var hidden) const {
  const Var first = Reshape(Slice(hidden, 1, 0, 1), {hidden.dim(0), config_.width});
  return Tanh(Linear("pooler.dense", first, config_.width));  // [B, C]
}

Var Bert::MaskedTokens(Var hidden) const {
  Tape* const tape = hidden.tape;
  const Scope scope(tape, "cls.predictions");
  Var x = Activate(Linear("transform.dense", hidden, config_.width), config_.activation);  // [..., C]
  x = Norm("transform.LayerNorm", x, config_.norm, config_.ablation);
  const Var table = tape->FindParameter(absl::StrCat(kTokenTable, ".weight"));
  return MatMul(x, table, {.transpose_b = true}) + tape->Parameter("bias", {x.dtype(), {config_.vocabulary}}, Zeros());
}

Var Bert::NextSentence(Var pooled) const { return Linear("cls.seq_relationship", pooled, 2); }

Var Bert::Classify(Var x, int64_t classes) const {
  return Linear("classifier", Dropout(x, config_.classifier_dropout.value_or(config_.dropout)), classes);
}

Var Bert::Mean(Var hidden, Var lengths) const {
  if (lengths.tape == nullptr) return weft::Mean(hidden, 1);
  const int64_t batch = hidden.dim(0), length = hidden.dim(1);
  const Var padding = Reshape(PaddingMask(lengths, length), {batch, length, 1});
  const Var count = Reshape(Cast(lengths, hidden.dtype()), {batch, 1}) + 1e-12;  // a row without tokens gives zeros
  return Sum(MaskFill(hidden, padding, 0), 1) / count;
}

Var Bert::ClassifyText(Var hidden, Var lengths, int64_t classes) const {
  return Classify(config_.classifier_pooling == Pooling::kMean ? Mean(hidden, lengths) : Pool(hidden), classes);
}

Var Bert::SentenceEmbedding(Var hidden, Var lengths, Pooling pooling) const {
  const Var x = pooling == Pooling::kFirst ? Reshape(Slice(hidden, 1, 0, 1), {hidden.dim(0), config_.width})
                                           : Mean(hidden, lengths);  // [B, C]
  return x / Sqrt(Sum(x * x, -1, /*keep=*/true) + 1e-24);
}

}  // namespace weft
