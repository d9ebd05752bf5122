// A Gpt records GPT-style decoders: one stack of blocks with causal attention. The defaults are GPT-2's (Radford et
// al., 2019). Options give the modern form: RMSNorm, rotary positions, fewer key and value heads, gated feed-forward
// layers, no biases, and a sliding window (Touvron et al., 2023; Jiang et al., 2023).
//
//   Gpt gpt({.vocabulary = 73, .context = 64, .layers = 4, .heads = 4, .width = 128});
//   Var logits = gpt.Logits(tokens);   // tokens i32 [B, T] → [B, T, V]
#ifndef WEFT_MODELS_GPT_H_
#define WEFT_MODELS_GPT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "weft/models/attention.h"
#include "weft/models/block.h"
#include "weft/models/layers.h"

namespace weft {

struct GptConfig {
  int64_t vocabulary = 50257;
  int64_t context = 1024;  // maximum number of positions
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;       // C, a multiple of heads
  int64_t feed_forward = 0;  // F; 0: 4·C
  double dropout = 0;
  std::optional<double> attention_dropout, embedding_dropout;  // unset: as dropout
  double activation_dropout = 0;                               // probability between the feed-forward layers
  Activation activation = Activation::kGeluTanh;
  bool pre_norm = true;           // false: normalise after the residual connection, as in Vaswani et al., 2017
  bool tied_head = true;          // true: the head's weight is the token table
  bool bias = true;               // true: linear layers have biases
  bool head_bias = false;         // true: the head has a bias
  bool embedding_norm = false;    // true: token embeddings are normalised
  bool result_norm = false;       // true: a layer's result is normalised before it is added (BlockOptions)
  bool value_embeddings = false;  // true: each block adds an embedding of the token to attention's value
  // true: outputs of the first half of the blocks are added to inputs of the second half, the last one first. Each has
  // a factor that is learnt, and begins as 1.
  bool skip_connections = false;
  ResidualForm residual = ResidualForm::kSequential;
  double embedding_scale = 1, residual_scale = 1, logits_scale = 1;  // factors of embeddings, layers' results, logits
  double logits_cap = 0;                                             // c: logits become c · tanh(logit / c); 0: no cap

  NormOptions norm;
  MixtureOptions mixture;   // of feed-forward layers
  double balance_loss = 0;  // factor with which training adds BalanceLoss to the loss
  bool gated = false;       // true: feed-forward layers have a gate; with kSilu they are SwiGLU
  AttentionVariant attention;
  PositionKind positions = PositionKind::kAuto;
  int64_t first_position = 0;              // number of the first position of learned positions and sinusoids
  std::optional<Initializer> initializer;  // of linear layers in blocks; unset: GPT-2's
  bool zero_output = false;                // true: layers whose results are added to x begin with zeros
  Ablation ablation;                       // for study only: parts that are left out
  enum class Names : uint8_t { kGpt2, kLlama };
  Names names = Names::kGpt2;  // of the parameters in Hugging Face; kLlama: separate queries, keys and values
  DType dtype = kF32;          // kF32 or kF64, for weights and so for all computed values
};

// Returns InvalidArgument if Gpt can't record this model: "width 100 is not a multiple of heads 3: ...".
absl::Status Validate(const GptConfig& config);

class Gpt {
 public:
  explicit Gpt(const GptConfig& config) : config_(config) {}

  // Returns logits of the next token after each of `tokens`, i32 [B, T] with T at most the context. With a cache, the
  // tokens are at cache->positions, and also attend to tokens of earlier calls of Runner::Run. Parameters have the
  // published names: wte.weight, wpe.weight, h.0.ln_1.weight, ..., ln_f.bias (GPT-2); model.embed_tokens.weight,
  // model.layers.0.self_attn.q_proj.weight, ... (Llama). With `documents`, i32 [B, T], a token attends only to tokens
  // with the same number. `documents` excludes a cache. `rows`, i32 [N]: the tokens whose logits [N, V] are
  // returned, where token t of text b has the number b·T + t; null: all. A number outside gives undefined logits.
  Var Logits(Var tokens, const AttentionCache* cache = nullptr, Var documents = {}, Var rows = {}) const;  // [B, T, V]

  const GptConfig& config() const { return config_; }

 private:
  GptConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_GPT_H_
