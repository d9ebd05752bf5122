// Multi-head attention, recorded in elementary ops (Vaswani et al., "Attention is all you need", 2017, 3.2).
//
//   Var y = MultiHeadAttention("attn", x, {.heads = 8, .causal = true});                // self-attention, [B, T, C]
//   Var z = MultiHeadAttention("cross", x, {.heads = 8}, {.memory = m, .mask = pad});   // to m [B, S, C]
#ifndef WEFT_MODELS_ATTENTION_H_
#define WEFT_MODELS_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "weft/ops/ops.h"

namespace weft {

// The score of a query q and a key k. kDot: q·k / √d_k (Vaswani et al., 2017). kAdditive: u·tanh(W q + U k), with one
// hidden layer for each head, so that q and k may have different widths (Bahdanau et al., 2015).
enum class ScoreFunction : uint8_t { kDot, kAdditive };
// The merging of the heads' results. kProject: concatenated, then a layer W_O. kAverage: their mean; values are as wide
// as x.
enum class HeadMerge : uint8_t { kProject, kAverage };
// A bias added to each score, by the distance between source and target. kAlibi: -slope · distance, where head h in
// 1 .. H has the slope 2^(-8 h / H) (Press et al., 2022, for powers of two). kBuckets: a learnt number for each head
// and range of distances, "relative_attention_bias.weight" [buckets, H] (T5: Raffel et al., 2020).
enum class DistanceBias : uint8_t { kNone, kAlibi, kBuckets };

struct AttentionOptions {
  int64_t heads = 1;
  int64_t key_value_heads = 0;  // G: each serves heads / G query heads (Ainslie et al., 2023); 0: heads
  // d_q, d_k and d_v of one head. 0: C / heads; for d_q, d_k; for d_v with kAverage, C. d_q and d_k may differ only
  // with kAdditive.
  int64_t query_width = 0, key_width = 0, value_width = 0;
  ScoreFunction score = ScoreFunction::kDot;
  int64_t score_width = 0;  // width of kAdditive's hidden layer; 0: d_k
  HeadMerge merge = HeadMerge::kProject;

  bool causal = false;  // no target sees a later source
  // Sparse patterns (Child et al., 2019). If either is above 0, a target sees only sources less than `window` away and
  // sources whose distance is a multiple of `stride`.
  int64_t window = 0, stride = 0;
  // d: the window reaches d times as far, but has only sources whose distance is a multiple of d (Beltagy et al.,
  // 2020). Excludes a stride.
  int64_t dilation = 1;
  DistanceBias distance_bias = DistanceBias::kNone;
  // For kBuckets. Without `causal`, half of the buckets are for sources behind the target. On each side, half of the
  // buckets have one distance each; the others have ever longer ranges up to max_distance, beyond which the last bucket
  // holds.
  int64_t buckets = 32, max_distance = 128;
  double soft_cap = 0;                 // c: scores become c · tanh(score / c) before any bias; 0: no cap
  std::optional<RotaryLayout> rotary;  // of queries and keys
  double rotary_base = 10000;

  double dropout = 0;           // of the attention weights
  double residual_dropout = 0;  // of the result
  bool bias = true;
  Initializer initializer = Gaussian(0.02f), output_initializer = Gaussian(0.02f);

  // Names of the layers. If `packed` is not null and x attends to itself, that layer computes queries, keys and values
  // in one product.
  const char *packed = "c_attn", *query = "q_proj", *key = "k_proj", *value = "v_proj", *output = "c_proj";
};

// Keys and values of earlier calls of Run, kept as states PREFIX.key and PREFIX.value: [B, G, capacity · beams, d].
struct AttentionCache {
  std::string prefix;
  int64_t capacity = 0;  // number of positions
  // i32 [B, T]: the positions of x's rows in the sequence. A row at -1 is padding and sees nothing. If `positions` is
  // an Input, its InputBounds (core/program.h) must have 0 < below <= capacity. They may have ignored = -1.
  Var positions;
  // Beam search: `beams` hypotheses of one text share its cache, which has `beams` rows for each position. In each
  // call, x has one row for each hypothesis, all at one position. Reordering the hypotheses copies no cache rows:
  // `hidden` masks those that a hypothesis does not descend from. If beams > 1, `rows` and `hidden` must be set.
  int64_t beams = 1;
  Var rows;    // i32 [B, T]: the cache's row of each row of x, position · beams + beam; -1: padding
  Var hidden;  // bool [B, 1, T, capacity · beams]: true where a row of the cache is hidden from a target
  VarList* written = nullptr;  // receives the states' next versions, for graphs that only write the cache
};

struct AttentionInputs {
  Var memory;  // [B, S, C']: the sources; null: x itself
  Var mask;    // bool, broadcasts to [B, H, T, S]: true where a source is hidden from a target; null: no mask
  const AttentionCache* cache = nullptr;  // excludes a memory
};

// Computes queries from x [B, T, C], keys and values from x or the memory, and softmax(scores)·values for each head;
// returns [B, T, C]. A target that sees no source gets zeros from each head. With a cache, x's keys and values are
// appended to it, and each row attends to what the cache holds up to the row's own position.
Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options,
                       const AttentionInputs& inputs = {});

// Attention to one memory in many calls of Run. StoreMemory writes the memory's keys and values [B, G, S, d] to the
// states of `prefix` and returns the states' next versions; `width` is the C of the x that will attend. AttendToStored
// reads the states. A memory has no positions, so causal, window, stride, distance_bias and rotary are errors.
VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const AttentionOptions& options,
                    const std::string& prefix);
Var AttendToStored(absl::string_view name, Var x, const AttentionOptions& options, const std::string& prefix,
                   int64_t memory_length, Var mask = {});

// Returns the bucket 0 .. buckets - 1 of DistanceBias::kBuckets for a distance: the source's position minus the
// target's. `buckets` is at least 4, and `max_distance` at least `buckets`.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance, bool both_sides);

// Returns a mask for AttentionInputs, bool [B, 1, 1, S]: true at positions of S at or beyond `lengths`, i32 [B].
Var PaddingMask(Var lengths, int64_t sources);

// Returns cosine and sine of position · base^(-2i / width), [length, width / 2] each.
VarList RotaryTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base);

}  // namespace weft

#endif  // WEFT_MODELS_ATTENTION_H_
