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
  BlockOptions block = WithStack(names, config, layer, Gaussian(0.02f));
  if (!config.first_norm && layer == 0) block.attention_norm = nullptr;
  if (!config.result_dropout) {
    block.attention.residual_dropout = block.attention.dropout;
    block.feed_forward.dropout = 0;
  }
  if (config.shared_distance_bias && layer > 0) {
    block.attention.shared_bias = "encoder.layer.0.attention.relative_attention_bias.weight";
  }
  return block;
}

int64_t EmbeddingWidth(const BertConfig& config) {
  return config.embedding_width != 0 ? config.embedding_width : config.width;
}

// Returns x plus the vectors of the tokens' positions: `padding` for tokens of this id, and `padding` + 1, 2, ... for
// the others.
Var AddCountedPositions(Var x, Var tokens, int64_t padding, int64_t context) {
  const Var table = EmbeddingTable("embeddings.position_embeddings", x.tape, context + padding + 1, x.dim(-1),
                                   {.dtype = x.dtype(), .least = kF32});
  const Var counts = Cast(Cast(tokens + static_cast<double>(-padding), kBool), kI32);
  return x + Embedding(table, CumulativeSum(counts) * counts + static_cast<double>(padding));
}

}  // namespace

absl::Status Validate(const BertConfig& config) {
  WEFT_RETURN_IF_ERROR(ValidateStack(config,
                                     {{"vocabulary", config.vocabulary, 1, kMaxTokens},
                                      {"context", config.context, 1, kMaxPositions},
                                      {"segments", config.segments, 0, kMaxTokens},
                                      {"layers", config.layers, 1, kMaxLayers},
                                      {"embedding_width", config.embedding_width, 0, kMaxFeatures},
                                      {"padding", config.padding.value_or(0), 0, kMaxPositions}},
                                     config.context, config.positions));
  return CheckDropout(config.classifier_dropout, "classifier_dropout");
}

Var Bert::Encode(Var tokens, const BertInputs& inputs) const {
  Tape* const tape = tokens.tape;
  const Scope scope(tape, "bert", Scope::kNoNames);
  if (!CheckTokens("bert", "tokens", tokens, config_)) return tape->Poison();
  const int64_t length = tokens.dim(1);
  const auto table = [&](const char* name, int64_t rows) {
    return EmbeddingTable(name, tape, rows, EmbeddingWidth(config_), {.dtype = config_.dtype});
  };
  Var x = Embedding(table(kTokenTable, config_.vocabulary), tokens);  // [B, T, E]
  x = config_.padding ? AddCountedPositions(x, tokens, *config_.padding, config_.context)
                      : AddPositions(x, {.kind = Resolve(config_.positions, config_.attention),
                                         .name = "embeddings.position_embeddings",
                                         .context = config_.context});
  if (config_.segments > 0) {
    const Var segments = table("embeddings.token_type_embeddings", config_.segments);
    const bool given = inputs.segments.tape != nullptr && config_.segment_inputs;
    x = x + (given ? Embedding(segments, inputs.segments) : Slice(segments, 0, 0, 1));
  }
  x = Dropout(Norm("embeddings.LayerNorm", x, config_.norm, config_.ablation), config_.dropout);
  if (config_.embedding_width != 0) x = Linear("embeddings_project", x, config_.width);  // [B, T, C]

  BlockInputs block;
  if (inputs.lengths.tape != nullptr) block.attention.mask = PaddingMask(inputs.lengths, length);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const std::string name = absl::StrCat("encoder.layer.", i);
    if (config_.shared_layers && i > 0) tape->ShareParameters(name, "encoder.layer.0");
    x = Block(name, x, BlockOf(config_, i), block);
  }
  return config_.pre_norm ? Norm("encoder.LayerNorm", x, config_.norm, config_.ablation) : x;
}

Var Bert::First(Var hidden) const { return Reshape(Slice(hidden, 1, 0, 1), {hidden.dim(0), config_.width}); }

Var Bert::Pool(Var hidden) const {
  const Var pooled = Linear("pooler.dense", First(hidden), config_.width);  // [B, C]
  return config_.pooler_activation ? Activate(pooled, *config_.pooler_activation) : Tanh(pooled);
}

Var Bert::Transform(Var x) const {
  const bool shared = config_.shared_transform;
  if (shared && x.tape->HasParameter("head.dense.weight")) x.tape->ShareParameters("head", "head");  // of two heads
  const Scope scope(x.tape, shared ? "head" : "cls.predictions");
  x = Linear(shared ? "dense" : "transform.dense", x, EmbeddingWidth(config_), {.bias = config_.transform_bias});
  x = Activate(x, config_.masked_activation.value_or(config_.activation));
  return Norm(shared ? "norm" : "transform.LayerNorm", x, config_.norm, config_.ablation);
}

Var Bert::MaskedTokens(Var hidden) const {
  Tape* const tape = hidden.tape;
  const Var x = Transform(hidden);  // [..., E]
  const Scope scope(tape, "cls.predictions");
  const Var y = MatMul(x, tape->FindParameter(absl::StrCat(kTokenTable, ".weight")), {.transpose_b = true});
  return config_.masked_bias ? y + tape->Parameter("bias", {x.dtype(), {config_.vocabulary}}, Zeros()) : y;
}

Var Bert::NextSentence(Var pooled) const {
  return Linear("cls.seq_relationship", Dropout(pooled, config_.next_sentence_dropout), 2);
}

Var Bert::Classify(Var x, int64_t classes) const {
  if (config_.shared_transform) x = Transform(x);
  return Linear("classifier", Dropout(x, config_.classifier_dropout.value_or(config_.dropout)), classes);
}

Var Bert::AnswerSpan(Var hidden) const { return Linear("qa_outputs", hidden, 2); }

Var Bert::Replaced(Var hidden) const {
  const Scope scope(hidden.tape, "discriminator_predictions");
  return Linear("dense_prediction", Activate(Linear("dense", hidden, config_.width), config_.activation), 1);
}

Var Bert::Mean(Var hidden, Var lengths) const {
  if (lengths.tape == nullptr) return weft::Mean(hidden, 1);
  const int64_t batch = hidden.dim(0), length = hidden.dim(1);
  const Var padding = Reshape(PaddingMask(lengths, length), {batch, length, 1});
  const Var counts = Cast(lengths, hidden.dtype()), total = counts.shape().rank() == 2 ? Sum(counts, 1) : counts;
  const Var count = Reshape(total, {batch, 1}) + 1e-12;  // a row without tokens gives zeros
  return Sum(MaskFill(hidden, padding, 0), 1) / count;
}

Var Bert::ClassifyText(Var hidden, Var lengths, int64_t classes) const {
  return Classify(config_.classifier_pooling == Pooling::kMean ? Mean(hidden, lengths)
                  : config_.shared_transform                   ? First(hidden)
                                                               : Pool(hidden),
                  classes);
}

Var Bert::SentenceEmbedding(Var hidden, Var lengths, Pooling pooling) const {
  const Var x = pooling == Pooling::kFirst ? First(hidden) : Mean(hidden, lengths);  // [B, C]
  return x / Sqrt(Sum(x * x, -1, /*keep=*/true) + 1e-24);
}

}  // namespace weft
