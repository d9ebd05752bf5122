// The defaults of attention's options and the only check of them: MultiHeadAttention and the configurations of models
// call it. Errors name the option.
#include "weft/base/status.h"
#include "weft/models/attention.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr int64_t kMaxAngles = int64_t{1} << 28;  // context times head width: both rotary tables take 1 GiB in f32

// In the next two functions, `full` is WithWidths of the options.
absl::Status CheckRotary(const AttentionVariant& full, int64_t context) {
  WEFT_RETURN_IF_ERROR(CheckPositive("rotary_base", full.rotary_base));
  if (!full.rotary) return absl::OkStatus();
  if (full.key_width % 2 != 0) {
    return InvalidArgument("a head's width is ", full.key_width, ", but rotary positions turn pairs of features");
  }
  if (full.query_width != full.key_width) {
    return InvalidArgument("query_width ", full.query_width, " differs from key_width ", full.key_width,
                           ", but rotary positions turn both by the same angles");
  }
  if (full.rotary_width % 2 != 0 || full.rotary_width < 0 || full.rotary_width > full.key_width) {
    return InvalidArgument("rotary_width is ", full.rotary_width, ", but must be even and at most a head's width, ",
                           full.key_width);
  }
  const RotaryScaling& scaling = full.rotary_scaling;
  WEFT_RETURN_IF_ERROR(CheckPositive("rotary_factor", scaling.factor));
  WEFT_RETURN_IF_ERROR(CheckSizes({{"rotary_context", scaling.context, 1, kMaxPositions}}));
  WEFT_RETURN_IF_ERROR(CheckPositive("rotary_slow", scaling.slow));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("rotary_fast", scaling.fast));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("rotary_gain", scaling.gain));
  if (context * full.key_width > kMaxAngles) {
    return InvalidArgument("context ", context, " times a head's width ", full.key_width, " is over ", kMaxAngles,
                           ", the maximum number of rotary angles");
  }
  return absl::OkStatus();
}

absl::Status CheckAblation(const AttentionVariant& full, int64_t query_width, const Ablation& ablation, int64_t heads,
                           int64_t width) {
  if (ablation.value && full.key_value_heads * full.value_width != width) {
    return InvalidArgument("without a layer of values, width ", width, " must be key_value_heads ",
                           full.key_value_heads, " times value_width ", full.value_width);
  }
  if (ablation.value && full.merge == HeadMerge::kAverage && full.value_width != width) {
    return InvalidArgument("without a layer of values, the mean of heads needs key_value_heads 1, not ",
                           full.key_value_heads);
  }
  if (ablation.query_is_key && (full.key_value_heads != heads || full.query_width != full.key_width)) {
    return InvalidArgument("a layer for both queries and keys needs key_value_heads ", heads, " and query_width ",
                           full.key_width, ", not ", full.key_value_heads, " and ", query_width);
  }
  return absl::OkStatus();
}

absl::Status CheckPattern(const AttentionPattern& pattern) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"a pattern's window", pattern.window, 0, kMaxPositions},
                                   {"its stride", pattern.stride, 0, kMaxPositions},
                                   {"its dilation", pattern.dilation, 1, kMaxPositions}}));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("its rotary_base", pattern.rotary_base));
  if (pattern.dilation == 1 || (pattern.window > 0 && pattern.stride == 0)) return absl::OkStatus();
  return InvalidArgument("a pattern has the dilation ", pattern.dilation, ", the window ", pattern.window,
                         " and the stride ", pattern.stride, ", but a dilation needs a window and excludes a stride");
}

}  // namespace

AttentionVariant WithWidths(AttentionVariant variant, const Ablation& ablation, int64_t heads, int64_t width) {
  const auto set = [](int64_t* option, int64_t value) { *option = *option != 0 ? *option : value; };
  set(&variant.key_value_heads, heads);
  set(&variant.key_width, variant.query_width != 0 ? variant.query_width : width / heads);
  set(&variant.query_width, variant.key_width);
  set(&variant.value_width, ablation.value                         ? width / variant.key_value_heads
                            : variant.merge == HeadMerge::kAverage ? width
                                                                   : variant.key_width);
  set(&variant.score_width, variant.key_width);
  return variant;
}

absl::Status Validate(const AttentionVariant& variant, const Ablation& ablation, int64_t heads, int64_t width,
                      int64_t context) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"heads", heads, 1, kMaxFeatures},
                                   {"width", width, 1, kMaxFeatures},
                                   {"key_value_heads", variant.key_value_heads, 0, kMaxFeatures},
                                   {"query_width", variant.query_width, 0, kMaxFeatures},
                                   {"key_width", variant.key_width, 0, kMaxFeatures},
                                   {"value_width", variant.value_width, 0, kMaxFeatures},
                                   {"score_width", variant.score_width, 0, kMaxFeatures},
                                   {"buckets", variant.buckets, 4, kMaxPositions},
                                   {"max_distance", variant.max_distance, variant.buckets, kMaxPositions}}));
  if (variant.query_width == 0 && variant.key_width == 0 && width % heads != 0) {
    return InvalidArgument("width ", width, " is not a multiple of heads ", heads,
                           ": each head takes an equal part of the width");
  }
  const AttentionVariant full = WithWidths(variant, ablation, heads, width);
  if (heads % full.key_value_heads != 0) {
    return InvalidArgument("heads ", heads, " is not a multiple of key_value_heads ", full.key_value_heads,
                           ": each serves an equal part of them");
  }
  if (variant.score == ScoreFunction::kDot && full.query_width != full.key_width) {
    return InvalidArgument("query_width ", full.query_width, " and key_width ", full.key_width,
                           " differ, which only additive attention allows");
  }
  if (variant.merge == HeadMerge::kAverage && variant.value_width != 0 && variant.value_width != width) {
    return InvalidArgument("value_width is ", variant.value_width,
                           ", but the mean of heads needs values as wide as the model, ", width);
  }
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("soft_cap", variant.soft_cap));
  WEFT_RETURN_IF_ERROR(CheckAtLeast0("score_scale", variant.score_scale));
  for (const AttentionPattern& pattern : variant.patterns) WEFT_RETURN_IF_ERROR(CheckPattern(pattern));
  WEFT_RETURN_IF_ERROR(CheckAblation(full, variant.query_width, ablation, heads, width));
  return CheckRotary(full, context);
}

}  // namespace weft
