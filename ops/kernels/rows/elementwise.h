// Declares what elementwise ops share: the broadcasting rule, the rectangles that a tile reads, and kernels.
//
// The kernel of a broadcast op walks a tile in inner loops. An inner loop covers consecutive output elements. In it,
// each operand either advances with the output (stride 1) or stays (stride 0). If a tile has whole rows, and each
// operand has the output's shape or is a scalar, the tile is a single inner loop.
#ifndef WEFT_OPS_KERNELS_ROWS_ELEMENTWISE_H_
#define WEFT_OPS_KERNELS_ROWS_ELEMENTWISE_H_

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "weft/base/status.h"
#include "weft/core/op.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {

struct InnerLoop {
  int64_t out = 0, a = 0, b = 0;  // offsets of the first elements
  int a_stride = 1, b_stride = 1;
  int64_t n = 0;
};

// Calls f for each inner loop of `tile`, a rectangle of `out`. The operands a and b broadcast to `out`.
void ForInnerLoops(const Shape& out, const Shape& a, const Shape& b, Rect tile,
                   absl::FunctionRef<void(const InnerLoop&)> f);
// Calls f(offset of the first element, n) for each inner loop of `tile`, if all operands have the shape `out`.
void ForInnerLoops(const Shape& out, Rect tile, absl::FunctionRef<void(int64_t, int64_t)> f);

// Distances in elements between neighbours along each axis of a shape; 0 along an axis that is broadcast.
using Strides = std::array<int64_t, Shape::kMaxRank>;
// Returns the strides of `operand`, which broadcasts to `out`, along the axes of `out`.
Strides BroadcastStrides(const Shape& out, const Shape& operand);
// Returns the offset in `operand`, which broadcasts to `out`, of the element that belongs to element `i` of `out`.
int64_t BroadcastOffset(const Shape& out, const Shape& operand, int64_t i);

// Walks the rows of `shape` from `row` on. offset() is the index of the current row's first element in an array with
// the given strides.
class RowCursor {
 public:
  RowCursor(const Shape& shape, const Strides& strides, int64_t row);  // `shape` is not empty
  int64_t offset() const { return offset_; }
  void Next();

 private:
  int leading_;
  Shape shape_;
  Strides strides_, index_ = {};
  int64_t offset_ = 0;
};

// Returns the rectangle of `operand` that `tile`, a rectangle of the output, reads or writes. If an input has fewer
// rows than the output, all its rows are read; the same holds for columns.
Rect BroadcastAccess(const OpArgs& args, int operand, Rect tile);

// Returns the output type of a binary op: the inputs' dtype and broadcast shape. If dtypes differ or shapes do not
// broadcast, returns an error.
absl::StatusOr<Types> BroadcastTypes(const char* op, TypeSpan in);

template <const OpDef& op>
absl::StatusOr<Types> InferBinary(const Attrs&, TypeSpan in) {
  return BroadcastTypes(op.name, in);
}
inline absl::StatusOr<Types> InferSame(const Attrs&, TypeSpan in) { return Types{in[0]}; }
// Returns the type of x for an op that computes along the last axis of x. If x has rank 0, returns an error.
template <const OpDef& op>
absl::StatusOr<Types> InferRows(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError(op.name, "x needs rank >= 1", in);
  return Types{in[0]};
}

// Kernels for f32, f64 and bf16 of a function of ops/kernels/rows/rows.h.
template <class T, UnaryFunction function>
void UnaryKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
    Maps<T>().unary(function, a.input<T>(0) + begin, a.output<T>(0) + begin, n);
  });
}
template <UnaryFunction function>
inline constexpr std::array<KernelFunction, kDTypeCount> kUnaryKernels = {
    UnaryKernel<float, function>, UnaryKernel<double, function>, UnaryKernel<BF16, function>};

template <class T, BinaryFunction function>
void BinaryKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& loop) {
    Maps<T>().binary(function, a.input<T>(0) + loop.a, loop.a_stride, a.input<T>(1) + loop.b, loop.b_stride,
                     a.output<T>(0) + loop.out, loop.n);
  });
}
// Kernels for f32, f64, bf16 and i32 of a BinaryFunction from kAdd to kMaximum. Later functions are undefined for i32.
template <BinaryFunction function>
inline constexpr std::array<KernelFunction, kDTypeCount> kNumberKernels = {
    BinaryKernel<float, function>, BinaryKernel<double, function>, BinaryKernel<BF16, function>,
    BinaryKernel<int32_t, function>};

// OpDef::reference in plain double arithmetic.
template <double (*function)(double)>
void UnaryReference(const ReferenceArgs& a) {
  std::transform(a.inputs[0].begin(), a.inputs[0].end(), a.outputs[0].begin(), function);
}
void BinaryReference(const ReferenceArgs& a, double (*function)(double, double));
template <double (*function)(double, double)>
void BinaryReference(const ReferenceArgs& a) {
  BinaryReference(a, function);
}

// Rounds x to f32. If x lies between two floats, returns the float whose last bit is 1. Rounding this float to bf16
// gives the same as rounding x to bf16 directly (Boldo and Melquiond, 2008).
inline float RoundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (nearest == x || std::isnan(x) || bits % 2 == 1) return nearest;
  return std::bit_cast<float>(std::abs(nearest) > std::abs(x) ? bits - 1 : bits + 1);
}

// Returns an error if `dtype` is i32 and `value` is not an i32.
absl::Status CheckNumber(const char* op, double value, DType dtype, TypeSpan in);
// Converts x. A float result is rounded once, to nearest even. An i32 result is truncated and saturated, and 0 for NaN.
// A bool result is x != 0.
template <class To, class From>
To ConvertTo(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_same_v<To, BF16>) {
    return BF16(RoundToOdd(static_cast<double>(x)));
  } else if constexpr (std::is_same_v<To, int32_t> && !std::is_same_v<From, bool>) {
    const double value = static_cast<double>(x);
    if (std::isnan(value)) return 0;
    return static_cast<int32_t>(std::clamp(value, -0x1p31, 0x1p31 - 1));
  } else {
    return static_cast<To>(x);
  }
}

// Returns one kernel for all dtypes except those that only store weights, for ops that only move bytes.
constexpr std::array<KernelFunction, kDTypeCount> ForAllDTypes(KernelFunction kernel) {
  return {kernel, kernel, kernel, kernel, kernel};
}
// Returns `kernels`, with `stored` for all dtypes that only store weights.
constexpr std::array<KernelFunction, kDTypeCount> WithStoredWeights(std::array<KernelFunction, kDTypeCount> kernels,
                                                                    KernelFunction stored) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (OnlyStoresWeights(static_cast<DType>(i))) kernels[static_cast<size_t>(i)] = stored;
  }
  return kernels;
}

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_ELEMENTWISE_H_
