// GPT-style decoders (Radford et al., 2019): learned positions, causal attention, one stack of blocks.
//
//   Gpt gpt({.vocabulary = 73, .context = 64, .layers = 4, .heads = 4, .width = 128});
//   Var logits = gpt.Logits(tokens);   // tokens i32 [B, T] → [B, T, V]
#ifndef WEFT_MODELS_GPT_H_
#define WEFT_MODELS_GPT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/models/layers.h"

namespace weft {

struct GptConfig {
  int64_t vocabulary = 50257;
  int64_t context = 1024;  // the most positions
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;       // C, a multiple of heads
  int64_t feed_forward = 0;  // F; 0: 4·C
  double dropout = 0;
  Activation activation = Activation::kGeluTanh;
  bool pre_norm = true;   // false: normalise after the residual, as in Vaswani et al., 2017
  bool tied_head = true;  // the head's weight is the token table
  bool bias = true;       // of the linear layers
};

// What doesn't fit, and why: "width 100 is not a multiple of heads 3".
absl::Status Validate(const GptConfig& config);

class Gpt {
 public:
  explicit Gpt(const GptConfig& config) : config_(config) {}
  // The parameters have GPT-2's published names: wte.weight, wpe.weight, h.0.ln_1.weight, ..., ln_f.bias. tokens i32
  // [B, T] with T at most the context.
  Var Logits(Var tokens) const;  // [B, T, V]

  const GptConfig& config() const { return config_; }

 private:
  GptConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_GPT_H_
