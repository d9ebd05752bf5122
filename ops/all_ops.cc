#include "weft/ops/all_ops.h"

namespace weft {

absl::Span<const OpDef* const> AllOps() {
  // clang-format off
  static constexpr const OpDef* kOps[] = {
      &kAdamw,
      &kAdd,
      &kAssign,
      &kAttention,
      &kAttentionGradient,
      &kBroadcastTo,
      &kCacheAppend,
      &kCast,
      &kCausalMask,
      &kClipScale,
      &kConcat,
      &kCrossEntropy,
      &kCrossEntropyGradient,
      &kCumulativeSum,
      &kDiv,
      &kDropout,
      &kEmbedding,
      &kEmbeddingGradient,
      &kEmbeddingGradientAdd,
      &kEqual,
      &kErf,
      &kExp,
      &kFill,
      &kGelu,
      &kGeluGradient,
      &kIota,
      &kLayerNorm,
      &kLayerNormGradient,
      &kLess,
      &kLog,
      &kLogSoftmax,
      &kMaskFill,
      &kMatmul,
      &kMax,
      &kMinimum,
      &kMul,
      &kPad,
      &kPermute,
      &kRelu,
      &kReshape,
      &kResidualAdd,
      &kScale,
      &kSgd,
      &kSigmoid,
      &kSlice,
      &kSoftmax,
      &kSplit,
      &kSqrt,
      &kSquareSumBlocks,
      &kSub,
      &kSumBlocks,
      &kTanh,
      &kTopK,
  };
  // clang-format on
  return kOps;
}

}  // namespace weft
