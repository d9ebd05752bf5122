// These functions record multi-head attention in elementary ops (Vaswani et al., "Attention is all you need", 2017).
// Targets are the T positions of the queries; sources are the S positions of the keys and values.
//
//   Var y = MultiHeadAttention("attn", x, {.heads = 8, .causal = true});                // self-attention, [B, T, C]
//   Var z = MultiHeadAttention("cross", x, {.heads = 8}, {.memory = m, .mask = pad});   // to m [B, S, C]
#ifndef WEFT_MODELS_ATTENTION_H_
#define WEFT_MODELS_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/models/layers.h"
#include "weft/ops/ops.h"

namespace weft {

// Attention records its weights [B, H, T, S], before dropout, as a probe of this name (Tape::Probe). The weights of a
// target are at least 0. Their sum is 1, or 0 if the target sees no source.
//
//   for (const Tape::NamedValue& probe : tape.probes()) {
//     if (absl::EndsWith(probe.name, kAttentionWeights)) options.fetch.push_back(probe.value);
//   }
//
// A graph that fetches the weights computes them beside the op `attention`, so no other result changes by a bit.
inline constexpr char kAttentionWeights[] = "attention_weights";

// The function that gives the score of a query q and a key k. kDot: q·k / √d_k (Vaswani et al., 2017). kAdditive:
// u·tanh(W q + U k) with learnt u, W and U, so that q and k may differ in width (Bahdanau et al., 2015).
enum class ScoreFunction : uint8_t { kDot, kAdditive };
// How the heads' results are merged. kProject concatenates them and applies an output layer. kAverage takes their mean,
// so the value width must be C, the width of x.
enum class HeadMerge : uint8_t { kProject, kAverage };
// A bias that is added to each score, by the distance between source and target. kAlibi: -slope · |distance|, where
// head h of 1 .. H has the slope 2^(-8 h / H). Press et al. (2022) define these slopes for H that are powers of two.
// kBuckets: a learnt number for each head and bucket of distances, "relative_attention_bias.weight" [buckets, H] (T5:
// Raffel et al., 2020).
enum class DistanceBias : uint8_t { kNone, kAlibi, kBuckets };
// The norms of queries and keys, "q_norm" and "k_norm", before rotary positions. kHead: over the features of each head,
// with one gain for all heads (Qwen Team, 2025). kFull: over the features of all heads (OLMo Team, 2024).
enum class QueryKeyNorm : uint8_t { kNone, kHead, kFull };

// How rotary positions are stretched to contexts longer than those of the original training. A pair of features turns
// n = context · frequency / 2π times within the original context. kLinear divides all frequencies by `factor`. kLlama3
// and kYarn divide those with n <= slow, keep those with n >= fast, and interpolate between: kLlama3 linearly in n
// (Llama Team, 2024), kYarn linearly in the number of the pair (Peng et al., 2023).
enum class RotaryScalingKind : uint8_t { kNone, kLinear, kLlama3, kYarn };
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::kNone;
  double factor = 2;
  int64_t context = 8192;     // number of positions of the original training
  double slow = 1, fast = 0;  // numbers of turns; fast = 0: 4 for kLlama3, 32 for kYarn
  double gain = 0;            // kYarn multiplies cosines and sines by it; 0: 0.1 · ln(factor) + 1

  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

// The sources that a target sees (Child et al., 2019). With `window`, a target sees the sources less than `window`
// positions away. With `stride`, it sees those whose distance is a multiple of `stride`. With both, it sees either
// kind; with neither, it sees all. A dilation d > 1 makes the window d times as long, but leaves only sources whose
// distance is a multiple of d (Beltagy et al., 2020). It needs a window and excludes a stride.
// Rotary positions may also differ between layers: a layer with `rotary` = false has none, and `rotary_base` other than
// 0 replaces the model's base and scaling.
struct AttentionPattern {
  int64_t window = 0, stride = 0, dilation = 1;
  bool rotary = true;
  double rotary_base = 0;

  friend bool operator==(const AttentionPattern&, const AttentionPattern&) = default;
};

// The options of attention that the configurations of all model families have. The defaults are those of Vaswani et
// al., 2017. models/options.cc has a row for each field.
//
//   GptConfig config = {.heads = 8, .width = 512, .attention = {.key_value_heads = 2, .patterns = {{.window = 64}}}};
struct AttentionVariant {
  int64_t key_value_heads = 0;  // G; each serves heads / G query heads (Ainslie et al., 2023); 0: G = heads
  // Widths d_q, d_k and d_v of one head. 0 means the default: d_k = d_q if d_q is given, else C / heads; d_q = d_k; d_v
  // = d_k or, with kAverage, C. Only kAdditive allows d_q and d_k to differ.
  int64_t query_width = 0, key_width = 0, value_width = 0;
  ScoreFunction score = ScoreFunction::kDot;
  int64_t score_width = 0;  // width of kAdditive's hidden layer; 0: d_k
  HeadMerge merge = HeadMerge::kProject;
  std::vector<AttentionPattern> patterns;  // layer i has patterns[i % size]; if empty, each target sees all sources
  DistanceBias distance_bias = DistanceBias::kNone;
  // For kBuckets. Without causal, half of the buckets are for sources after the target. On each side, the first half of
  // the buckets have one distance each. The ranges of the others grow logarithmically up to `max_distance`. The last
  // bucket also has all greater distances.
  int64_t buckets = 32, max_distance = 128;
  double soft_cap = 0;                 // c: scores become c · tanh(score / c) before any bias; 0: no cap
  double score_scale = 0;              // factor of kDot's q·k; 0: 1 / √d_k
  std::optional<RotaryLayout> rotary;  // rotates queries and keys by position
  double rotary_base = 10000;
  int64_t rotary_width = 0;  // the first features of a head, which are rotated; 0: all
  RotaryScaling rotary_scaling;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  // Biases of the layers of queries, keys and values, and of the output layer; unset: as the model's other layers.
  std::optional<bool> projection_bias, output_bias;
};

// Returns `variant` with the defaults in place of widths and key_value_heads that are 0, for x of C = `width`. With
// ablation.value, the default of d_v is C / G.
AttentionVariant WithWidths(AttentionVariant variant, const Ablation& ablation, int64_t heads, int64_t width);

// Returns InvalidArgument if attention with `heads` heads can't be recorded for x of C = `width`. `context`: number of
// positions, which limits rotary tables; 0: unknown.
absl::Status Validate(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width,
                      int64_t context = 0);

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = false;  // true: no target sees a later source
  AttentionVariant variant;
  int64_t layer = 0;  // number of the layer, which selects one of variant.patterns

  double dropout = 0;           // probability for attention weights
  double residual_dropout = 0;  // probability for the result
  bool bias = true;
  NormOptions norm;  // of variant.query_key_norm
  Initializer initializer = Gaussian(0.02f), output_initializer = Gaussian(0.02f);

  // For study only: `value` and `query_is_key` leave out layers. Heads are then averaged only if G is 1. The other
  // parts are those of Block.
  Ablation ablation;

  // Names of the layers. If `packed` is not null and x attends to itself, the one layer `packed` computes queries, keys
  // and values. Otherwise `query`, `key` and `value` are three layers.
  const char *packed = "c_attn", *query = "q_proj", *key = "k_proj", *value = "v_proj", *output = "c_proj";
  const char *query_norm = "q_norm", *key_norm = "k_norm";
  // The full name of another layer's table of distance biases, kBuckets, that this layer uses; null: it has its own.
  const char* shared_bias = nullptr;

  AttentionPattern pattern() const {
    return variant.patterns.empty() ? AttentionPattern()
                                    : variant.patterns[static_cast<size_t>(layer) % variant.patterns.size()];
  }
};

// Keys and values of earlier calls of Run, in the states PREFIX.key and PREFIX.value, [page_count, G, page_size, d].
// Texts share the pages: position p of row b of x is in page pages[b, p / page_size], at p % page_size. Several rows
// of x may be tokens of one text, and texts with the same beginning may have the same pages. With pages of one
// position, the hypotheses of a beam search share each token that they have in common, and nothing is ever copied.
struct AttentionCache {
  std::string prefix;
  // i32 [B, T]: the position of each row of x. A row at -1 is padding: it sees nothing and is not cached. If
  // `positions` is an Input, its InputBounds must have 0 < below <= capacity(), and may have ignored = -1.
  Var positions;
  Var pages;  // i32 [B, P]
  int64_t page_count = 0;
  int64_t page_size = kCachePage;  // number of positions of a page

  int64_t capacity() const { return pages.dim(-1) * page_size; }  // number of positions of a text
};
// Returns the cache of layer `i`, with the prefix PREFIX.i, of a model with the cache `cache`.
AttentionCache LayerOf(AttentionCache cache, int64_t i);

// The kind of position embeddings that a model adds to its token embeddings. If attention has rotary positions or a
// distance bias, kAuto adds none. Otherwise kAuto adds those of the model's paper.
enum class PositionKind : uint8_t { kAuto, kLearned, kSinusoidal, kSinusoidalHalves, kNone };
// Returns `positions` or, for kAuto, kNone or `usual`.
PositionKind Resolve(PositionKind positions, const AttentionVariant& variant,
                     PositionKind usual = PositionKind::kLearned);

struct PositionOptions {
  PositionKind kind = PositionKind::kLearned;  // not kAuto
  const char* name = "wpe";                    // of the table of learned positions
  int64_t context = 0;                         // number of positions
  int64_t first = 0;                           // the first position: a row of the table, or a position of sinusoids
};
// Returns x [B, T, C] plus the vectors of its positions: 0 .. T - 1 or, with a cache, cache->positions.
Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache = nullptr);

struct AttentionInputs {
  Var memory;  // sources [B, S, C']; null: x itself
  Var mask;    // bool, broadcasts to [B, H, T, S]: true hides a source from a target; null: no mask
  Var value;   // [B, S, G · d_v], is added to the values; null: nothing is added
  const AttentionCache* cache = nullptr;  // excludes a memory
};

// Returns attention's result [B, T, C] for x [B, T, C]. Queries come from x; keys and values come from `memory` or,
// without one, from x. A target that sees no source gets zeros from each head. With a cache, x's keys and values are
// written to it, and a row attends to the rows of its pages up to its position.
Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options,
                       const AttentionInputs& inputs = {});

// Attention to memories in many calls of Runner::Run. StoreMemory writes the keys and values of a memory [B, S, C'] to
// `cache`, whose positions are those of the memory's rows, i32 [B, S], and returns the next versions of its states.
// `width`: C of the x that will attend. AttendToStored attends from x [B, T, C] to `cache`; there, the position of a
// row of x is that of the last row of the memory, i32 [B, T]. A memory has no positions beside x, so causal, patterns,
// distance_bias and rotary are errors.
VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const AttentionOptions& options,
                    const AttentionCache& cache);
Var AttendToStored(absl::string_view name, Var x, const AttentionOptions& options, const AttentionCache& cache);

// Returns the bucket in 0 .. buckets - 1 of a distance, for DistanceBias::kBuckets. `distance`: the source's position
// minus the target's. `buckets` is at least 4, and `max_distance` is at least `buckets`. `both_sides`: false if causal.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance, bool both_sides);

// Returns a mask for AttentionInputs, bool [B, 1, 1, S]: true at positions at or beyond each text's `lengths`, i32 [B].
// `lengths` may also be i32 [B, S], 0 for each position that the mask hides, as transformers' attention_mask.
Var PaddingMask(Var lengths, int64_t sources);

// Returns a mask for AttentionInputs, bool [B, 1, T, T]: true where target and source have different `documents`, i32
// [B, T]. So texts in one row do not see each other.
Var DocumentMask(Var documents);

// Returns the angle by which pair `i` of `width` / 2 turns from one position to the next: base^(-2i / width), changed
// by `scaling`.
double RotaryFrequency(int64_t i, int64_t width, double base, const RotaryScaling& scaling);
// Returns the cosines and the sines, [length, width / 2] each, of p · RotaryFrequency(i) at row p and column i.
VarList RotaryTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base,
                     const RotaryScaling& scaling = {});

}  // namespace weft

#endif  // WEFT_MODELS_ATTENTION_H_
