// Layers have the names of GPT-2 or Llama (GptConfig::names). Only kGpt2 has one layer for queries, keys and values.
#include "weft/models/gpt.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/models/block.h"
#include "weft/models/validate.h"

namespace weft {

constexpr int64_t kMaxAngles = int64_t{1} << 28;  // context times head width: both rotary tables take 1 GiB in f32

absl::Status Validate(const GptConfig& config) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"vocabulary", config.vocabulary, 1, kMaxTokens},
                                   {"context", config.context, 1, kMaxPositions},
                                   {"layers", config.layers, 1, kMaxLayers},
                                   {"heads", config.heads, 1, kMaxFeatures},
                                   {"width", config.width, 1, kMaxFeatures},
                                   {"feed_forward", config.feed_forward, 0, 16 * kMaxFeatures},
                                   {"key_value_heads", config.key_value_heads, 0, kMaxFeatures},
                                   {"window", config.window, 0, kMaxPositions}}));
  WEFT_RETURN_IF_ERROR(CheckHeads(config.width, config.heads));
  if (config.key_value_heads > 0 && config.heads % config.key_value_heads != 0) {
    return InvalidArgument("heads ", config.heads, " is not a multiple of key_value_heads ", config.key_value_heads,
                           ": each serves an equal part of them");
  }
  if (config.rotary && config.width / config.heads % 2 != 0) {
    return InvalidArgument("a head's width is ", config.width / config.heads,
                           ", but rotary positions turn pairs of features");
  }
  if (config.rotary && config.context * (config.width / config.heads) > kMaxAngles) {
    return InvalidArgument("context ", config.context, " times a head's width ", config.width / config.heads,
                           " is over ", kMaxAngles, ", the maximum number of rotary angles");
  }
  WEFT_RETURN_IF_ERROR(CheckPositive("rotary_base", config.rotary_base));
  WEFT_RETURN_IF_ERROR(CheckPositive("norm's epsilon", config.norm.epsilon));
  WEFT_RETURN_IF_ERROR(CheckDropout(config.attention_dropout.value_or(0), "attention_dropout"));
  WEFT_RETURN_IF_ERROR(CheckDropout(config.embedding_dropout.value_or(0), "embedding_dropout"));
  WEFT_RETURN_IF_ERROR(CheckDType(config.dtype));
  return CheckDropout(config.dropout);
}

namespace {

BlockOptions BlockOf(const GptConfig& config) {
  // The blocks add 2·layers results to the embeddings. Dividing the deviation by √(2·layers) keeps the variance of the
  // sum independent of their number (Radford et al., 2019, section 2.3).
  const Initializer output = Gaussian(0.02f / std::sqrt(2.0f * static_cast<float>(config.layers)));
  BlockOptions block = {.attention = {.heads = config.heads,
                                      .key_value_heads = config.key_value_heads,
                                      .causal = true,
                                      .window = config.window,
                                      .rotary = config.rotary,
                                      .rotary_base = config.rotary_base,
                                      .dropout = config.attention_dropout.value_or(config.dropout),
                                      .residual_dropout = config.dropout,
                                      .bias = config.bias,
                                      .output_initializer = output},
                        .feed_forward = {.width = config.feed_forward,
                                         .activation = config.activation,
                                         .dropout = config.dropout,
                                         .bias = config.bias,
                                         .output_initializer = output,
                                         .gate = config.gated ? "c_gate" : nullptr},
                        .norm = config.norm,
                        .pre_norm = config.pre_norm};
  if (config.names == GptConfig::Names::kGpt2) return block;
  block.attention_name = "self_attn";
  block.attention.packed = nullptr;
  block.attention.output = "o_proj";
  block.attention_norm = "input_layernorm";
  block.feed_forward_norm = "post_attention_layernorm";
  block.feed_forward.up = "up_proj";
  block.feed_forward.gate = config.gated ? "gate_proj" : nullptr;
  block.feed_forward.down = "down_proj";
  return block;
}

}  // namespace

Var Gpt::Logits(Var tokens, const AttentionCache* cache, Var documents) const {
  Tape* tape = tokens.tape;
  const Scope scope(tape, "gpt", Scope::kNoNames);
  if (absl::Status valid = Validate(config_); !valid.ok()) tape->Fail(Annotate(valid, "gpt"));
  RequireTokens("gpt", "tokens", tokens, config_.context);
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

  const BlockOptions block = BlockOf(config_);
  const bool llama = config_.names == GptConfig::Names::kLlama;
  const EmbeddingTableOptions embedding = {.dtype = config_.dtype};
  const Var table =
      EmbeddingTable(llama ? "model.embed_tokens" : "wte", tape, config_.vocabulary, config_.width, embedding);
  Var x = Embedding(table, tokens);  // [B, T, C]
  if (!config_.rotary) {
    const Var positions = EmbeddingTable("wpe", tape, config_.context, config_.width, embedding);  // [context, C]
    x = x + (cache != nullptr ? Embedding(positions, cache->positions) : Slice(positions, 0, 0, tokens.dim(1)));
  }
  x = Dropout(x, config_.embedding_dropout.value_or(config_.dropout));
  for (int64_t i = 0; i < config_.layers; ++i) {
    AttentionCache own;
    if (cache != nullptr) {
      own = *cache;
      absl::StrAppend(&own.prefix, ".", i);
    }
    const BlockInputs inputs = {.attention = {.mask = mask, .cache = cache != nullptr ? &own : nullptr}};
    x = Block(absl::StrCat(llama ? "model.layers." : "h.", i), x, block, inputs);
  }
  if (config_.pre_norm) x = Norm(llama ? "model.norm" : "ln_f", x, config_.norm);
  if (config_.tied_head) return MatMul(x, table, {.transpose_b = true});  // [B, T, V]
  return Linear("lm_head", x, config_.vocabulary, {.bias = false});
}

}  // namespace weft
