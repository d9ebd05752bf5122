// Every op, by name. Adding one adds a line here and one in all_ops.cc (docs/add_an_op.md).
#ifndef WEFT_OPS_ALL_OPS_H_
#define WEFT_OPS_ALL_OPS_H_

#include "absl/types/span.h"
#include "weft/core/op.h"

namespace weft {

// clang-format off
extern const OpDef
    kAbs,
    kAdamw,
    kAdd,
    kAnd,
    kAssign,
    kAttention,
    kAttentionGradient,
    kBatchNorm,
    kBroadcastTo,
    kCacheAppend,
    kCast,
    kCausalMask,
    kClipScale,
    kConcat,
    kCrossEntropy,
    kCrossEntropyGradient,
    kCumulativeSum,
    kDiv,
    kDropout,
    kEmbedding,
    kEmbeddingGradient,
    kEmbeddingGradientAdd,
    kEqual,
    kErf,
    kExp,
    kFill,
    kFlip,
    kGelu,
    kGeluGradient,
    kIota,
    kLayerNorm,
    kLayerNormGradient,
    kLess,
    kLessEqual,
    kLinearCrossEntropy,
    kLinearCrossEntropyGradient,
    kLog,
    kLogSoftmax,
    kMaskFill,
    kMatmul,
    kMatmulAdd,
    kMax,
    kMaximum,
    kMinimum,
    kMul,
    kOr,
    kPack,
    kPackedMatmul,
    kPad,
    kPermute,
    kPow,
    kRelu,
    kReshape,
    kRmsNorm,
    kRmsNormGradient,
    kScale,
    kSgd,
    kSigmoid,
    kSlice,
    kSoftmax,
    kSoftplus,
    kSplit,
    kSqrt,
    kSquareSumBlocks,
    kSub,
    kSumBlocks,
    kTanh,
    kTopK,
    kWhere;
// clang-format on

absl::Span<const OpDef* const> AllOps();

}  // namespace weft

#endif  // WEFT_OPS_ALL_OPS_H_
