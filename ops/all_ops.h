// Every op, by name. Adding one adds a line here and one in all_ops.cc (docs/add_an_op.md).
#ifndef WEFT_OPS_ALL_OPS_H_
#define WEFT_OPS_ALL_OPS_H_

#include "absl/types/span.h"
#include "weft/core/op.h"

namespace weft {

// clang-format off
extern const OpDef
    kAdamw,
    kAdd,
    kAssign,
    kAttention,
    kAttentionGradient,
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
    kGelu,
    kGeluGradient,
    kIota,
    kLayerNorm,
    kLayerNormGradient,
    kLess,
    kLinearCrossEntropy,
    kLinearCrossEntropyGradient,
    kLog,
    kLogSoftmax,
    kMaskFill,
    kMatmul,
    kMatmulAdd,
    kMax,
    kMinimum,
    kMul,
    kPack,
    kPackedMatmul,
    kPad,
    kPermute,
    kRelu,
    kReshape,
    kResidualAdd,
    kRmsNorm,
    kRmsNormGradient,
    kScale,
    kSgd,
    kSigmoid,
    kSlice,
    kSoftmax,
    kSplit,
    kSqrt,
    kSquareSumBlocks,
    kSub,
    kSumBlocks,
    kTanh,
    kTopK;
// clang-format on

absl::Span<const OpDef* const> AllOps();

}  // namespace weft

#endif  // WEFT_OPS_ALL_OPS_H_
