// These ops have no inputs:
//   fill: y = value, for any shape and dtype
//   iota: y[i] = i, for any dtype except bool
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> InferFill(const Attrs& attrs, TypeSpan in) {
  const TensorType type = attrs.as<FillAttrs>().type;
  if (!type.shape.valid()) return ShapeError("fill", absl::StrCat(ToString(type.shape), " is not a shape"), in);
  WEFT_RETURN_IF_ERROR(CheckNumber("fill", attrs.as<FillAttrs>().value, type.dtype, {type}));
  return Types{type};
}

template <class T>
void FillKernel(const KernelArgs& a, Rect tile) {
  const T value = ConvertTo<T>(a.attrs.as<FillAttrs>().value);
  ForInnerLoops(a.output_shape(0), tile,
                [&](int64_t begin, int64_t n) { std::fill_n(a.output<T>(0) + begin, n, value); });
}

void FillReference(const ReferenceArgs& a) {
  const FillAttrs attrs = a.attrs.as<FillAttrs>();
  const double value = Dispatch(attrs.type.dtype,
                                [&](auto zero) { return static_cast<double>(ConvertTo<decltype(zero)>(attrs.value)); });
  std::fill(a.outputs[0].begin(), a.outputs[0].end(), value);
}

template <DType dtype, int value, int64_t... dims>
VarList FillExample(VarSpan in) {
  return {Fill(in[0].tape, {dtype, {dims...}}, value)};
}

constexpr OpExample kFillExamples[] = {
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Fill(in[0].tape, {kF32}, -1.5)}; }, .out = "f32[]"},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{FillLike(in[0], 0.1)}; }, .out = "[3,37]"},
    {.in = "i32[1]", .record = FillExample<kI32, -2, 5>, .out = "i32[5]"},
    {.in = "i32[1]", .record = FillExample<kBool, 1, 2, 2>, .out = "bool[2,2]"},
    {.in = "i32[1]", .record = FillExample<kBF16, 1000000000, 3>, .out = "bf16[3]"},
    {.in = "i32[1]", .record = FillExample<kF64, 1, 0, 3>, .out = "f64[0,3]"},
    {.in = "i32[1]", .record = FillExample<kF32, 1, 2, -1>, .error = "[2,-1] is not a shape"},
};

struct IotaAttrs {
  DType dtype = kI32;
  int64_t n = 0;
  auto Fields() const { return std::tuple{AttrField{"dtype", dtype}, AttrField{"n", n}}; }
};

absl::StatusOr<Types> InferIota(const Attrs& attrs, TypeSpan in) {
  const auto [dtype, n] = attrs.as<IotaAttrs>();
  if (n < 0) return ShapeError("iota", absl::StrCat(n, " is not a size"), in);
  if (dtype == kI32 && n > int64_t{1} << 31) return ShapeError("iota", absl::StrCat(n, " is too large for i32"), in);
  return Types{{dtype, {n}}};
}

template <class T>
void IotaKernel(const KernelArgs& a, Rect tile) {
  for (int64_t i = tile.col_begin; i < tile.col_end; ++i) a.output<T>(0)[i] = ConvertTo<T>(i);
}

void IotaReference(const ReferenceArgs& a) { std::iota(a.outputs[0].begin(), a.outputs[0].end(), 0.0); }

constexpr OpExample kIotaExamples[] = {
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kI32, 1)}; }, .out = "i32[1]"},
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kF32, 1001)}; }, .out = "f32[1001]"},
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kF64, 37)}; }, .out = "f64[37]"},
    {.in = "bf16[1]", .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kBF16, 37)}; }, .out = "bf16[37]"},
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kI32, 0)}; }, .out = "i32[0]"},
    {.in = "i32[1]",
     .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kI32, -1)}; },
     .error = "-1 is not a size"},
    {.in = "i32[1]",
     .record = [](VarSpan in) { return VarList{Iota(in[0].tape, kBool, 2)}; },
     .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kFill = {
    .name = "fill",
    .infer = InferFill,
    .kernels = {FillKernel<float>, FillKernel<double>, FillKernel<BF16>, FillKernel<int32_t>, FillKernel<bool>},
    .cut = Cut::kBoth,
    .no_gradient = "it has no inputs",
    .reference = FillReference,
    .attrs = AttrOpsOf<FillAttrs>(),
    .examples = kFillExamples};
Var Fill(Tape* tape, TensorType type, double value) {
  return tape->Record(kFill, Attrs::Of(FillAttrs{type, value}), {})[0];
}
Var FillLike(Var x, double value) { return Fill(x.tape, x.type(), value); }

constexpr OpDef kIota = {.name = "iota",
                         .infer = InferIota,
                         .kernels = {IotaKernel<float>, IotaKernel<double>, IotaKernel<BF16>, IotaKernel<int32_t>},
                         .cut = Cut::kBoth,
                         .no_gradient = "it has no inputs",
                         .reference = IotaReference,
                         .attrs = AttrOpsOf<IotaAttrs>(),
                         .examples = kIotaExamples};
Var Iota(Tape* tape, DType dtype, int64_t n) { return tape->Record(kIota, Attrs::Of(IotaAttrs{dtype, n}), {})[0]; }

}  // namespace weft
