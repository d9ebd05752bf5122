// y = value, for any shape and dtype.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const TensorType type = attrs.as<FillAttrs>().type;
  if (!type.shape.valid()) return ShapeError("fill", absl::StrCat(ToString(type.shape), " is not a shape"), in);
  WEFT_RETURN_IF_ERROR(CheckNumber("fill", attrs.as<FillAttrs>().value, type.dtype, {type}));
  return Types{type};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const T value = ConvertTo<T>(a.attrs.as<FillAttrs>().value);
  ForInnerLoops(a.output_shape(0), tile,
                [&](int64_t begin, int64_t n) { std::fill_n(a.output<T>(0) + begin, n, value); });
}

void Reference(const ReferenceArgs& a) {
  const FillAttrs attrs = a.attrs.as<FillAttrs>();
  const double value = Dispatch(attrs.type.dtype,
                                [&](auto zero) { return static_cast<double>(ConvertTo<decltype(zero)>(attrs.value)); });
  std::fill(a.outputs[0].begin(), a.outputs[0].end(), value);
}

constexpr OpExample kExamples[] = {
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kF32, {}}, -1.5)};
         },
     .out = "f32[]"},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{FillLike(in[0], 0.1)}; }, .out = "[3,37]"},
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kI32, {5}}, -2.0)};
         },
     .out = "i32[5]"},
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kBool, {2, 2}}, 1)};
         },
     .out = "bool[2,2]"},
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kBF16, {3}}, 1e9)};
         },
     .out = "bf16[3]"},
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kF64, {0, 3}}, 1)};
         },
     .out = "f64[0,3]"},
    {.in = "i32[1]",
     .record =
         [](VarSpan in) {
           return VarList{Fill(in[0].tape, {kF32, {2, -1}}, 1)};
         },
     .error = "[2,-1] is not a shape"},
};

}  // namespace

constexpr OpDef kFill = {.name = "fill",
                         .infer = Infer,
                         .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                         .cut = Cut::kBoth,
                         .no_gradient = "it has no inputs",
                         .reference = Reference,
                         .attrs = AttrOpsOf<FillAttrs>(),
                         .examples = kExamples};
Var Fill(Tape* tape, TensorType type, double value) {
  return tape->Record(kFill, Attrs::Of(FillAttrs{type, value}), {})[0];
}
Var FillLike(Var x, double value) { return Fill(x.tape, x.type(), value); }

}  // namespace weft
