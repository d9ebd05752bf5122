// An AttentionVariant holds the options of attention that all model families share: the score function, the widths and
// the merging of heads, sparse patterns, distance biases and rotary positions. The defaults are those of Vaswani et
// al., 2017.
//
//   GptConfig config = {.heads = 8, .width = 512, .attention = {.key_value_heads = 2, .patterns = {{.window = 64}}}};
//   AttentionOptions options = {.heads = 8, .causal = true};
//   SetVariant(config.attention, /*layer=*/3, &options);
#ifndef WEFT_MODELS_VARIANT_H_
#define WEFT_MODELS_VARIANT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "weft/models/ablation.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

// The sources that a target sees, as AttentionOptions has them. Without a window and a stride, it sees all.
struct AttentionPattern {
  int64_t window = 0, stride = 0, dilation = 1;

  friend bool operator==(const AttentionPattern&, const AttentionPattern&) = default;
};

// AttentionOptions in models/attention.h explains each field.
struct AttentionVariant {
  int64_t key_value_heads = 0;  // each serves heads / key_value_heads query heads; 0: as many as heads
  int64_t query_width = 0, key_width = 0, value_width = 0;  // of each head; 0: the defaults of AttentionOptions
  ScoreFunction score = ScoreFunction::kDot;
  int64_t score_width = 0;
  HeadMerge merge = HeadMerge::kProject;
  std::vector<AttentionPattern> patterns;  // layer i has patterns[i % size]; if empty, each target sees all sources
  DistanceBias distance_bias = DistanceBias::kNone;
  int64_t buckets = 32, max_distance = 128;
  double soft_cap = 0;
  std::optional<RotaryLayout> rotary;
  double rotary_base = 10000;
};

// The heads of keys and values, and the widths of a head's keys and values.
struct HeadSizes {
  int64_t key_value_heads = 0, key = 0, value = 0;
};
HeadSizes HeadSizesOf(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width);

// Returns InvalidArgument if attention with `heads` heads can't be recorded in a model of this width and context.
absl::Status Validate(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width,
                      int64_t context);

// Sets the fields of `options` that `variant` has, for the self-attention of layer `layer`.
void SetVariant(const AttentionVariant& variant, int64_t layer, AttentionOptions* options);
// Sets the fields that do not depend on positions, for attention to a memory.
void SetVariantForMemory(const AttentionVariant& variant, AttentionOptions* options);

// What is added to token embeddings to tell their positions. kAuto: nothing if attention has rotary positions or a
// distance bias, and otherwise what the model's paper has.
enum class PositionKind : uint8_t { kAuto, kLearned, kSinusoidal, kSinusoidalHalves, kNone };
// Returns `positions` or, for kAuto, kNone or `usual`.
PositionKind Resolve(PositionKind positions, const AttentionVariant& variant,
                     PositionKind usual = PositionKind::kLearned);

// Returns InvalidArgument for sinusoids in a model of odd width.
absl::Status CheckSinusoids(PositionKind positions, int64_t width);

struct PositionOptions {
  PositionKind kind = PositionKind::kLearned;  // not kAuto
  const char* name = "wpe";                    // of the table of learned positions
  int64_t context = 0;                         // rows of this table
  int64_t first = 0;                           // the first position of sinusoids
};
// Returns x [B, T, C] plus the vectors of its positions: 0 .. T - 1 or, with a cache, cache->positions.
Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache = nullptr);

}  // namespace weft

#endif  // WEFT_MODELS_VARIANT_H_
