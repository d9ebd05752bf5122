// Multi-head attention, spelt out in elementary ops (Vaswani et al., "Attention is all you need", 2017, 3.2).
#ifndef WEFT_MODELS_ATTENTION_H_
#define WEFT_MODELS_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "weft/ops/ops.h"

namespace weft {

// How well a query fits a key: q·k / √d_k (Vaswani), or u·tanh(W q + U k) with one hidden layer a head, which lets
// their widths differ (Bahdanau et al., 2015).
enum class ScoreFunction : uint8_t { kDot, kAdditive };
// What becomes of the heads' results: side by side through one more layer W_O, or their mean, of values as wide as x.
enum class HeadMerge : uint8_t { kProject, kAverage };
// What is added to a score by how far its source is from its target: -slope · distance, with the slopes 2^(-8 h / H) of
// head h of H from 1 on (ALiBi: Press et al., 2022, for powers of two), or a learnt number of each head and range of
// distances (T5: Raffel et al., 2020), "relative_attention_bias.weight" [buckets, H].
enum class DistanceBias : uint8_t { kNone, kAlibi, kBuckets };

struct AttentionOptions {
  int64_t heads = 1;
  int64_t key_value_heads = 0;  // G: each serves heads / G heads of queries (Ainslie et al., 2023); 0: heads
  // d_q, d_k and d_v of one head; 0: C / heads (d_q: d_k; d_v of kAverage: C). d_q and d_k differ for kAdditive only.
  int64_t query_width = 0, key_width = 0, value_width = 0;
  ScoreFunction score = ScoreFunction::kDot;
  int64_t score_width = 0;  // of the hidden layer of kAdditive; 0: d_k
  HeadMerge merge = HeadMerge::kProject;

  bool causal = false;  // no target sees a later source
  // Where one is set, a target sees sources less than `window` away, and those a multiple of `stride` away (Child et
  // al., 2019). 0: not set.
  int64_t window = 0, stride = 0;
  // d: of the window's reach d times as far, only sources a multiple of d away (Beltagy et al., 2020); without a
  // stride.
  int64_t dilation = 1;
  DistanceBias distance_bias = DistanceBias::kNone;
  // Half of them for sources behind the target, unless it is causal; of each side half one distance each, the others
  // ever longer ranges up to most_distance, from where on there is one.
  int64_t buckets = 32, most_distance = 128;
  double soft_cap = 0;                 // c: scores become c · tanh(score / c) before anything is added; 0: as they are
  std::optional<RotaryLayout> rotary;  // of queries and keys
  double rotary_base = 10000;

  double dropout = 0;           // of the attention weights
  double residual_dropout = 0;  // of the result
  bool bias = true;
  Initializer initializer = Gaussian(0.02f), output_initializer = Gaussian(0.02f);

  // Names of the layers. Where `packed` is one, it gives queries, keys and values in one product.
  const char *packed = "c_attn", *query = "q_proj", *key = "k_proj", *value = "v_proj", *output = "c_proj";
};

// Keys and values of earlier calls, kept as state: [B, G, capacity · beams, d] each, named PREFIX.key and PREFIX.value.
struct AttentionCache {
  std::string prefix;
  int64_t capacity = 0;  // positions
  // i32 [B, T]: where in the sequence x's rows stand; a row at -1 is padding, and sees nothing. If it is an Input, its
  // bounds are 0 < below <= capacity, and ignored may be -1.
  Var positions;
  // Beam search: so many continuations of one text share its cache, which has a row for each of them at each position.
  // Continuations are rows of x at one position, so that choosing among them moves nothing: a mask says which rows of
  // the cache each descends from. With more than one beam both of these are wanted.
  int64_t beams = 1;
  Var rows;                    // i32 [B, T], of the cache, for x's rows: position · beams + beam; -1: padding
  Var hidden;                  // bool [B, 1, T, capacity · beams]: true where a row of the cache can't be seen
  VarList* written = nullptr;  // gets the next versions of the state, for graphs that do nothing but write it
};

struct AttentionInputs {
  Var memory;  // [B, S, C']: what is attended to; null: x itself
  Var mask;    // bool, broadcasts to [B, H, T, S]: true where a source can't be seen; null: none
  const AttentionCache* cache = nullptr;  // not with a memory
};

// x [B, T, C] → queries; x or memory → keys and values → softmax(scores)·values for each head → [B, T, C]. A target
// that sees no source gets zeros from each head. With a cache, x's keys and values are added to it, and all that it
// holds up to a row's own position is attended to.
Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options,
                       const AttentionInputs& inputs = {});

// Attention to a memory over many calls: the first writes its keys and values [B, G, S, d] to the state of `prefix`,
// whose next versions are returned; the second reads them. `width` is that of the x that will attend. A memory has no
// positions: causal, window, stride and rotary are errors.
VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const AttentionOptions& options,
                    const std::string& prefix);
Var AttendToStored(absl::string_view name, Var x, const AttentionOptions& options, const std::string& prefix,
                   int64_t memory_length, Var mask = {});

// The range that a source's distance (its position less the target's) is in, of DistanceBias::kBuckets: 0 .. buckets -
// 1, of at least 4 buckets and a most_distance of at least their number.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t most_distance, bool both_sides);

// A mask for AttentionInputs, bool [B, 1, 1, S]: true where a position of S is at or beyond lengths, i32 [B].
Var PaddingMask(Var lengths, int64_t sources);

// cosine and sine of position · base^(-2i / width), [length, width / 2] each.
VarList RotaryTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base);

}  // namespace weft

#endif  // WEFT_MODELS_ATTENTION_H_
