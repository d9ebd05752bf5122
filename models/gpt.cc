#include "weft/models/gpt.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/models/decoder_block.h"

namespace weft {

absl::Status Validate(const GptConfig& config) {
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"vocabulary", config.vocabulary},
               {"context", config.context},
               {"layers", config.layers},
               {"heads", config.heads},
               {"width", config.width}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", but must be at least 1"));
  }
  if (config.width % config.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("width ", config.width, " is not a multiple of heads ", config.heads,
                                                   ": each head takes an equal part of the width"));
  }
  if (config.feed_forward < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("feed_forward is ", config.feed_forward, ", but must be at least 0"));
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("dropout is ", config.dropout, ", but must be in [0, 1)"));
  }
  return absl::OkStatus();
}

Var Gpt::Logits(Var tokens) const {
  Tape* tape = tokens.tape;
  const Scope scope(tape, "gpt", Scope::kNoNames);
  if (absl::Status valid = Validate(config_); !valid.ok()) tape->Fail(Annotate(valid, "gpt"));
  const int64_t length = tokens.dim(1);
  if (tokens.shape().rank() != 2 || tokens.dtype() != kI32 || length > config_.context) {
    tape->Fail(ShapeError("gpt", absl::StrCat("tokens must be i32[B,T] with T at most the context ", config_.context),
                          {tokens.type()}));
  }
  if (!tape->status().ok()) return tokens;

  // The sum of 2·layers residual branches keeps its variance (Radford et al., 2019, 2.3).
  const Initializer output = Gaussian(0.02f / std::sqrt(2.0f * static_cast<float>(config_.layers)));
  const DecoderBlockOptions block = {.attention = {.heads = config_.heads,
                                                   .causal = true,
                                                   .dropout = config_.dropout,
                                                   .residual_dropout = config_.dropout,
                                                   .bias = config_.bias,
                                                   .output_initializer = output},
                                     .feed_forward = {.width = config_.feed_forward,
                                                      .activation = config_.activation,
                                                      .dropout = config_.dropout,
                                                      .bias = config_.bias,
                                                      .output_initializer = output},
                                     .pre_norm = config_.pre_norm};

  const Var table = EmbeddingTable("wte", tape, config_.vocabulary, config_.width);   // [V, C]
  const Var positions = EmbeddingTable("wpe", tape, config_.context, config_.width);  // [context, C]
  Var x = Embedding(table, tokens) + Slice(positions, 0, 0, length);                  // [B, T, C]
  x = Dropout(x, config_.dropout);
  for (int64_t i = 0; i < config_.layers; ++i) x = DecoderBlock(absl::StrCat("h.", i), x, block);
  if (config_.pre_norm) x = LayerNorm("ln_f", x);
  if (config_.tied_head) return MatMul(x, table, {.transpose_b = true});  // [B, T, V]
  return Linear("lm_head", x, config_.vocabulary, {.bias = false});
}

}  // namespace weft
