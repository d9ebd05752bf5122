// Layers have the names of GPT-2 or Llama (GptConfig::names). Only kGpt2 has one layer for queries, keys and values.
#include "weft/models/gpt.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/models/validate.h"

namespace weft {

absl::Status Validate(const GptConfig& config) {
  WEFT_RETURN_IF_ERROR(ValidateStack(config,
                                     {{"vocabulary", config.vocabulary, 1, kMaxTokens},
                                      {"context", config.context, 1, kMaxPositions},
                                      {"first_position", config.first_position, 0, kMaxPositions},
                                      {"layers", config.layers, 1, kMaxLayers}},
                                     config.context, config.positions));
  WEFT_RETURN_IF_ERROR(CheckSizes({{"experts", config.mixture.experts, 0, kMaxLayers},
                                   {"experts_per_token", config.mixture.per_token, 1,
                                    config.mixture.experts > 0 ? config.mixture.experts : kMaxLayers}}));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("balance_loss", config.balance_loss));
  WEFT_RETURN_IF_ERROR(CheckPositive("embedding_scale", config.embedding_scale));
  WEFT_RETURN_IF_ERROR(CheckPositive("residual_scale", config.residual_scale));
  WEFT_RETURN_IF_ERROR(CheckPositive("logits_scale", config.logits_scale));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("logits_cap", config.logits_cap));
  if (config.skip_connections && config.layers < 2) {
    return InvalidArgument("skip_connections need at least 2 layers, got ", config.layers);
  }
  if (config.residual != ResidualForm::kSequential && !config.pre_norm) {
    return InvalidArgument("a residual form other than sequential needs pre_norm");
  }
  return CheckDropout(config.embedding_dropout, "embedding_dropout");
}

namespace {

BlockOptions BlockOf(const GptConfig& config, int64_t layer) {
  BlockOptions names = {.attention = {.causal = true}, .feed_forward = {.gate = "c_gate"}};
  if (config.names == GptConfig::Names::kLlama) {
    names = {.attention = {.causal = true, .packed = nullptr, .output = "o_proj"},
             .feed_forward = {.up = "up_proj", .gate = "gate_proj", .down = "down_proj"},
             .attention_name = "self_attn",
             .attention_norm = "input_layernorm",
             .feed_forward_norm = config.result_norm ? "pre_feedforward_layernorm" : "post_attention_layernorm",
             .attention_result_norm = "post_attention_layernorm",
             .feed_forward_result_norm = "post_feedforward_layernorm"};
  }
  if (config.mixture.experts > 0) names.feed_forward_name = "block_sparse_moe";
  // The blocks add 2·layers results to the embeddings. Dividing the deviation by √(2·layers) keeps the variance of the
  // sum independent of their number (Radford et al., 2019, section 2.3).
  const Initializer output = Gaussian(0.02f / std::sqrt(2.0f * static_cast<float>(config.layers)));
  return WithStack(names, config, layer, Gaussian(0.02f), output);
}

}  // namespace

Var Gpt::Logits(Var tokens, const AttentionCache* cache, Var documents, Var rows) const {
  Tape* const tape = tokens.tape;
  const Scope scope(tape, "gpt", Scope::kNoNames);
  CheckTokens("gpt", "tokens", tokens, config_);
  Var mask;
  if (documents.tape != nullptr) {
    if (cache != nullptr || documents.type() != tokens.type()) {
      const char* const problem =
          cache != nullptr ? "documents exclude a cache" : "documents must be i32[B,T] as tokens";
      tape->Fail(ShapeError("gpt", problem, {tokens.type(), documents.type()}));
    } else {
      mask = DocumentMask(documents);
    }
  }
  if (!tape->status().ok()) return tape->Poison();

  const bool llama = config_.names == GptConfig::Names::kLlama;
  const Var table = EmbeddingTable(llama ? "model.embed_tokens" : "wte", tape, config_.vocabulary, config_.width,
                                   {.dtype = config_.dtype});         // [V, C]
  Var x = Scaled(Embedding(table, tokens), config_.embedding_scale);  // [B, T, C]
  if (config_.embedding_norm) x = Norm(llama ? "model.embed_norm" : "ln_e", x, config_.norm, config_.ablation);
  const PositionKind positions = Resolve(config_.positions, config_.attention);
  x = AddPositions(x, {positions, "wpe", config_.context, config_.first_position}, cache);
  x = Dropout(x, config_.embedding_dropout.value_or(config_.dropout));
  VarList skipped;  // outputs of blocks, which no later block has added yet
  for (int64_t i = 0; i < config_.layers; ++i) {
    const AttentionCache own = cache != nullptr ? LayerOf(*cache, i) : AttentionCache();
    BlockInputs inputs = {.attention = {.mask = mask, .cache = cache != nullptr ? &own : nullptr}};
    const std::string name = absl::StrCat(llama ? "model.layers." : "h.", i);
    const bool is_second_half = i >= config_.layers / 2;
    if (is_second_half && !skipped.empty()) {
      x = x + skipped.back() * tape->Parameter(name + ".skip.weight", {x.dtype(), {1}}, Ones());
      skipped.pop_back();
    }
    if (config_.value_embeddings) {
      const AttentionVariant attention = WithWidths(config_.attention, config_.ablation, config_.heads, config_.width);
      const Var values = EmbeddingTable(name + ".value_embedding", tape, config_.vocabulary,
                                        attention.key_value_heads * attention.value_width, {.dtype = config_.dtype});
      inputs.attention.value = Embedding(values, tokens);  // [B, T, G · d_v]
    }
    x = Block(name, x, BlockOf(config_, i), inputs);
    if (config_.skip_connections && !is_second_half) skipped.push_back(x);
  }
  if (config_.pre_norm || config_.result_norm) {
    x = Norm(llama ? "model.norm" : "ln_f", x, config_.norm, config_.ablation);
  }
  if (!tape->status().ok()) return tape->Poison();
  if (rows) x = Embedding(Reshape(x, {x.dim(0) * x.dim(1), x.dim(2)}), rows);
  Var y;
  if (config_.tied_head) {
    const Scope head(tape, "lm_head");
    y = MatMul(x, table, {.transpose_b = true});
    if (config_.head_bias) y = y + tape->Parameter("bias", {x.dtype(), {config_.vocabulary}}, Zeros());
  } else {
    y = Linear("lm_head", x, config_.vocabulary, {.bias = config_.head_bias});
  }
  y = Scaled(y, config_.logits_scale);
  return config_.logits_cap > 0 ? Scale(Tanh(Scale(y, 1 / config_.logits_cap)), config_.logits_cap) : y;
}

}  // namespace weft
