// A Transformer records the encoder-decoder Transformer (Vaswani et al., "Attention is all you need", 2017).
//
//   Transformer model({.source_vocabulary = 8000, .target_vocabulary = 8000});
//   Var logits = model.Logits(source, target);   // i32 [B, S], i32 [B, T] → [B, T, V]
//   Var loss = model.Loss(logits, next);         // with label smoothing
#ifndef WEFT_MODELS_TRANSFORMER_H_
#define WEFT_MODELS_TRANSFORMER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

struct TransformerConfig {
  int64_t source_vocabulary = 37000, target_vocabulary = 37000;
  int64_t context = 1024;  // maximum number of positions on either side
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t heads = 8;
  int64_t width = 512;          // C
  int64_t feed_forward = 2048;  // F; 0: 4·C
  double dropout = 0.1;
  double attention_dropout = 0;   // probability for attention weights
  double activation_dropout = 0;  // probability between the two feed-forward layers
  double label_smoothing = 0.1;
  Activation activation = Activation::kRelu;
  bool pre_norm = false;  // true: norms come first, and both stacks also end with a norm
  NormOptions norm;
  bool bias = true;

  bool gated = false;  // true: feed-forward layers have a gate

  using Positions = PositionKind;
  Positions positions = Positions::kSinusoidal;  // kAuto: sinusoids, unless attention tells positions
  int64_t first_position = 0;                    // number of the first position
  bool scale_embeddings = true;                  // by √C
  bool shared_embeddings = false;                // true: both sides have one token table, and equal vocabularies
  bool tied_head = true;                         // true: the output layer's weight is the target's token table
  bool head_bias = false;
  bool embedding_norm = false;  // true: a norm follows the sum of embeddings of tokens and positions
  double logits_scale = 1;      // factor of the logits, before a bias is added

  // The encoder layer whose output a decoder block attends to: the last one, or the one with the block's index.
  enum class Memory : uint8_t { kLast, kSameLayer };
  Memory memory = Memory::kLast;

  // Of the self-attention on either side. Attention to the memory has no patterns, distance biases or rotary positions.
  AttentionVariant attention;
  bool shared_distance_bias = false;       // all blocks of a side have the first block's table of distance biases
  std::optional<Initializer> initializer;  // of linear layers in blocks; unset: Gaussian(1 / √C)
  bool zero_output = false;                // true: layers whose results are added to x begin with zeros
  Ablation ablation;                       // for study only: parts that are left out

  DType dtype = kF32;  // kF32 or kF64, for weights and so for all computed values
};

// Returns InvalidArgument if `config` does not describe a model that Transformer can record.
absl::Status Validate(const TransformerConfig& config);

// Records a Transformer. Parameters have the names of Hugging Face's encoder-decoder models:
// encoder.embed_tokens.weight (or shared.weight), encoder.layers.0.self_attn.q_proj.weight,
// decoder.layers.0.encoder_attn.k_proj.weight, ..., lm_head.weight.
class Transformer {
 public:
  explicit Transformer(const TransformerConfig& config) : config_(config) {}

  // Returns logits [B, T, V] of the token after each of `target`, for all targets at once, as in training. `source`:
  // i32 [B, S]. `target`: i32 [B, T], beginning with the begin token. `source_lengths`: i32 [B]; source tokens at or
  // beyond this length are padding; or i32 [B, S], 0 for each token that is padding; null: no padding.
  Var Logits(Var source, Var target, Var source_lengths = {}) const;
  // Returns the mean cross-entropy, with label smoothing, of the targets `next`, i32 [B, T]; targets -100 are ignored.
  Var Loss(Var logits, Var next) const;

  // The two halves of Logits. Encode returns a memory [B, S, C] for each decoder block; Decode takes these memories.
  VarList Encode(Var source, Var source_lengths = {}) const;
  Var Decode(Var target, VarSpan memory, Var source_lengths = {}) const;

  // The decoder over many calls of Runner::Run. StoreMemory writes the keys and values of each block's memory to a
  // cache, and returns the next versions of its states. DecodeNext returns logits [B, T, V] of `target`, i32 [B, T],
  // which it adds to `cache`. `stored`: the cache of the memory, whose positions are those of the memory's last rows.
  // `candidates`: tokens, i32 [U], if only their logits [B, T, U] are wanted.
  VarList StoreMemory(VarSpan memory, const AttentionCache& cache) const;
  Var DecodeNext(Var target, const AttentionCache& cache, const AttentionCache& stored, Var candidates = {}) const;

  const TransformerConfig& config() const { return config_; }

 private:
  Var Embed(const char* side, Var tokens, int64_t vocabulary, const AttentionCache* cache) const;
  bool CheckMemory(Tape* tape, VarSpan memory) const;
  template <class Inputs>
  Var RunDecoder(Var target, const AttentionCache* cache, Var candidates, Inputs inputs) const;
  Var Head(Var x, Var candidates) const;

  TransformerConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_TRANSFORMER_H_
