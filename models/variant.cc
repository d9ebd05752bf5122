// Validate checks what MultiHeadAttention would refuse, so that an error names the model's option.
#include "weft/models/variant.h"

#include <cmath>

#include "weft/core/status.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr int64_t kMaxAngles = int64_t{1} << 28;  // context times head width: both rotary tables take 1 GiB in f32

absl::Status CheckRotary(const AttentionVariant& variant, int64_t head_width, int64_t context) {
  WEFT_RETURN_IF_ERROR(CheckPositive("rotary_base", variant.rotary_base));
  if (!variant.rotary) return absl::OkStatus();
  if (head_width % 2 != 0) {
    return InvalidArgument("a head's width is ", head_width, ", but rotary positions turn pairs of features");
  }
  if (variant.query_width != 0 && variant.query_width != head_width) {
    return InvalidArgument("query_width ", variant.query_width, " differs from key_width ", head_width,
                           ", but rotary positions turn both by the same angles");
  }
  if (context * head_width > kMaxAngles) {
    return InvalidArgument("context ", context, " times a head's width ", head_width, " is over ", kMaxAngles,
                           ", the maximum number of rotary angles");
  }
  return absl::OkStatus();
}

absl::Status CheckAblation(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width) {
  const HeadSizes sizes = HeadSizesOf(variant, ablation, heads, width);
  if (ablation.value && sizes.key_value_heads * sizes.value != width) {
    return InvalidArgument("without a layer of values, width ", width, " must be key_value_heads ",
                           sizes.key_value_heads, " times value_width ", sizes.value);
  }
  if (ablation.value && variant.merge == HeadMerge::kAverage && sizes.value != width) {
    return InvalidArgument("without a layer of values, the mean of heads needs key_value_heads 1, not ",
                           sizes.key_value_heads);
  }
  if (ablation.query_is_key &&
      (sizes.key_value_heads != heads || (variant.query_width != 0 && variant.query_width != sizes.key))) {
    return InvalidArgument("a layer for both queries and keys needs key_value_heads ", heads, " and query_width ",
                           sizes.key, ", not ", sizes.key_value_heads, " and ", variant.query_width);
  }
  return absl::OkStatus();
}

absl::Status CheckPattern(const AttentionPattern& pattern) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"a pattern's window", pattern.window, 0, kMaxPositions},
                                   {"its stride", pattern.stride, 0, kMaxPositions},
                                   {"its dilation", pattern.dilation, 1, kMaxPositions}}));
  if (pattern.dilation == 1 || (pattern.window > 0 && pattern.stride == 0)) return absl::OkStatus();
  return InvalidArgument("a pattern has the dilation ", pattern.dilation, ", the window ", pattern.window,
                         " and the stride ", pattern.stride, ", but a dilation needs a window and excludes a stride");
}

}  // namespace

HeadSizes HeadSizesOf(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width) {
  HeadSizes sizes = {
      .key_value_heads = variant.key_value_heads, .key = variant.key_width, .value = variant.value_width};
  if (sizes.key_value_heads == 0) sizes.key_value_heads = heads;
  if (sizes.key == 0) sizes.key = variant.query_width != 0 ? variant.query_width : width / heads;
  if (sizes.value == 0 && ablation.value) sizes.value = width / sizes.key_value_heads;
  if (sizes.value == 0) sizes.value = variant.merge == HeadMerge::kAverage ? width : sizes.key;
  return sizes;
}

absl::Status Validate(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width,
                      int64_t context) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"key_value_heads", variant.key_value_heads, 0, kMaxFeatures},
                                   {"query_width", variant.query_width, 0, kMaxFeatures},
                                   {"key_width", variant.key_width, 0, kMaxFeatures},
                                   {"value_width", variant.value_width, 0, kMaxFeatures},
                                   {"score_width", variant.score_width, 0, kMaxFeatures},
                                   {"buckets", variant.buckets, 4, kMaxPositions},
                                   {"max_distance", variant.max_distance, variant.buckets, kMaxPositions}}));
  if (variant.query_width == 0 && variant.key_width == 0) WEFT_RETURN_IF_ERROR(CheckHeads(width, heads));
  if (variant.key_value_heads > 0 && heads % variant.key_value_heads != 0) {
    return InvalidArgument("heads ", heads, " is not a multiple of key_value_heads ", variant.key_value_heads,
                           ": each serves an equal part of them");
  }
  if (variant.score == ScoreFunction::kDot && variant.query_width != 0 && variant.key_width != 0 &&
      variant.query_width != variant.key_width) {
    return InvalidArgument("query_width ", variant.query_width, " and key_width ", variant.key_width,
                           " differ, which only additive attention allows");
  }
  if (variant.merge == HeadMerge::kAverage && variant.value_width != 0 && variant.value_width != width) {
    return InvalidArgument("value_width is ", variant.value_width,
                           ", but the mean of heads needs values as wide as the model, ", width);
  }
  if (!(variant.soft_cap >= 0 && std::isfinite(variant.soft_cap))) {
    return InvalidArgument("soft_cap is ", variant.soft_cap, ", but must be at least 0");
  }
  for (const AttentionPattern& pattern : variant.patterns) WEFT_RETURN_IF_ERROR(CheckPattern(pattern));
  WEFT_RETURN_IF_ERROR(CheckAblation(variant, ablation, heads, width));
  return CheckRotary(variant, HeadSizesOf(variant, ablation, heads, width).key, context);
}

void SetVariantForMemory(const AttentionVariant& variant, AttentionOptions* options) {
  options->key_value_heads = variant.key_value_heads;
  options->query_width = variant.query_width;
  options->key_width = variant.key_width;
  options->value_width = variant.value_width;
  options->score = variant.score;
  options->score_width = variant.score_width;
  options->merge = variant.merge;
  options->soft_cap = variant.soft_cap;
}

void SetVariant(const AttentionVariant& variant, int64_t layer, AttentionOptions* options) {
  SetVariantForMemory(variant, options);
  if (!variant.patterns.empty()) {
    const AttentionPattern& pattern = variant.patterns[static_cast<size_t>(layer) % variant.patterns.size()];
    options->window = pattern.window;
    options->stride = pattern.stride;
    options->dilation = pattern.dilation;
  }
  options->distance_bias = variant.distance_bias;
  options->buckets = variant.buckets;
  options->max_distance = variant.max_distance;
  options->rotary = variant.rotary;
  options->rotary_base = variant.rotary_base;
}

PositionKind Resolve(PositionKind positions, const AttentionVariant& variant, PositionKind usual) {
  if (positions != PositionKind::kAuto) return positions;
  return variant.rotary || variant.distance_bias != DistanceBias::kNone ? PositionKind::kNone : usual;
}

absl::Status CheckSinusoids(PositionKind positions, int64_t width) {
  const bool sinusoids = positions == PositionKind::kSinusoidal || positions == PositionKind::kSinusoidalHalves;
  if (!sinusoids || width % 2 == 0) return absl::OkStatus();
  return InvalidArgument("width ", width, " is odd, but sinusoids come in pairs");
}

Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache) {
  if (options.kind == PositionKind::kNone) return x;
  Tape* const tape = x.tape;
  const int64_t width = x.dim(-1), length = x.dim(1);
  const Var table =
      options.kind == PositionKind::kLearned
          ? EmbeddingTable(options.name, tape, options.context, width, {.dtype = x.dtype(), .least = kF32})
          : SinusoidalPositions(
                tape, x.dtype(), cache != nullptr ? cache->capacity() : length, width,
                options.kind == PositionKind::kSinusoidal ? SinusoidLayout::kInterleaved : SinusoidLayout::kHalves,
                options.first);
  return x + (cache != nullptr ? Embedding(table, cache->positions) : Slice(table, 0, 0, length));
}

}  // namespace weft
