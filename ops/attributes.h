// Declares attributes, checks, and functions that record ops for other ops only. The attributes are shared by several
// ops, or the compiler's passes or formats read or record them. The checks are shared by several ops.
#ifndef WEFT_OPS_ATTRIBUTES_H_
#define WEFT_OPS_ATTRIBUTES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/op.h"
#include "weft/core/tape.h"

namespace weft {

struct FillAttrs {
  TensorType type;
  double value = 0;
  auto Fields() const {
    return std::tuple{AttrField{"dtype", type.dtype}, AttrField{"shape", type.shape}, AttrField{"value", value}};
  }
};

struct ShapeAttrs {  // of reshape and broadcast_to
  Shape shape = {};
  auto Fields() const { return std::tuple{AttrField{"shape", shape}}; }
};

struct ScaleAttrs {
  double factor = 1;
  auto Fields() const { return std::tuple{AttrField{"factor", factor}}; }
};

struct PermuteAttrs {
  int32_t rank = 0;
  std::array<int32_t, Shape::kMaxRank> axes = {};
  auto Fields() const { return std::tuple{AttrField{"rank", rank}, AttrField{"axes", axes}}; }
};

struct SplitAttrs {
  int32_t axis = 0;
  int32_t parts = 1;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"parts", parts}}; }
};

struct SliceAttrs {
  int32_t axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"begin", begin}, AttrField{"end", end}}; }
};

struct CumulativeSumAttrs {
  bool reverse = false;
  auto Fields() const { return std::tuple{AttrField{"reverse", reverse}}; }
};

struct MaskAttrs {  // `value` replaces masked elements
  double value = 0;
  auto Fields() const { return std::tuple{AttrField{"value", value}}; }
};

struct BandMaskAttrs {
  double value = 0;               // replaces masked elements
  int64_t left = -1, right = -1;  // as in ops/kernels/attention/attention.h
  auto Fields() const {
    return std::tuple{AttrField{"value", value}, AttrField{"left", left}, AttrField{"right", right}};
  }
};

struct DropoutAttrs {
  double rate = 0;
  uint32_t stream = 0;
  auto Fields() const { return std::tuple{AttrField{"rate", rate}, AttrField{"stream", stream}}; }
};

struct NormAttrs {  // of layer_norm, rms_norm and batch_norm
  double epsilon = 1e-5;
  auto Fields() const { return std::tuple{AttrField{"epsilon", epsilon}}; }
};

struct EmbeddingAttrs {
  bool widened = false;  // gives rows of a table in bf16 or a block format in f32
  auto Fields() const { return std::tuple{AttrField{"widened", widened, /*printed=*/widened}}; }
};

// Returns [`rows`, C], whose row v is the sum of dy[i, :] over all i with ids[i] = v. dy is [..., C], and ids are i32
// [...]. An id outside 0 .. rows-1 adds nothing.
Var EmbeddingGradient(Var dy, Var ids, int64_t rows);

// SumBlocks adds the elements of each fixed block along an axis. Sum applies SumBlocks to these sums again, until one
// is left. The order of additions depends on shapes and the CPU only, never on tiles or threads.
inline constexpr int64_t kSumBlock = 64;

struct BlockAttrs {
  int axis = 0;  // from the front
  int64_t block = kSumBlock;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"block", block}}; }
};

constexpr int64_t BlockCount(int64_t n, int64_t block) { return (n + block - 1) / block; }

// Returns the sum of each block of an axis of n elements, [outer, n, inner] → [outer, blocks, inner], where `blocks` is
// ceil(n / block). An empty axis gives one block, whose sum is 0.
Var SumBlocks(Var x, int axis, int64_t block = kSumBlock);

// Checks, while recording, that an integer Input declares bounds within the rows that its values index. Each call of
// Run then checks the fed values against these bounds.
//
// If `indices` is an Input, its InputBounds must have 0 < below <= `count`, and declare either no ignored value or
// `ignored`. Otherwise records an error on the tape. Indices that the graph computes, and inputs without elements, are
// not checked. `counted` names the indexed things in the error: "rows of the table".
void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view counted,
                   std::optional<int64_t> ignored = std::nullopt);

// Checks the types of w, `states` states of w, grad, rate and grad_scale, which `in` begins with, and of a step.
absl::Status CheckUpdateTypes(const char* op, TypeSpan in, size_t states);

// Records `op` with the attributes `attrs`, for OpExample::record.
template <const OpDef& op, const auto& attrs>
VarList RecordWith(VarSpan in) {
  return RecordAll(op, in, Attrs::Of(attrs));
}

// Calls f(inputs..., args...), for OpExample::record. Before `args`, f takes one to three inputs.
template <auto f, auto... args>
VarList RecordCall(VarSpan in) {
  if constexpr (std::is_invocable_v<decltype(f), Var, decltype(args)...>) {
    return VarList{f(in[0], args...)};
  } else if constexpr (std::is_invocable_v<decltype(f), Var, Var, decltype(args)...>) {
    return VarList{f(in[0], in[1], args...)};
  } else {
    return VarList{f(in[0], in[1], in[2], args...)};
  }
}

// Calls f(in[0], {numbers...}), for OpExample::record, where f takes a shape or axes.
template <auto f, int... numbers>
VarList RecordList(VarSpan in) {
  return {f(in[0], {numbers...})};
}

}  // namespace weft

#endif  // WEFT_OPS_ATTRIBUTES_H_
