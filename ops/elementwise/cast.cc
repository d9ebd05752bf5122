// Converts x to another dtype. Conversion to a float dtype rounds once, to nearest even. Conversion to i32 truncates
// and saturates; NaN becomes 0. Conversion to bool gives x != 0.
#include <algorithm>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct CastAttrs {
  DType dtype = kF32;
  auto Fields() const { return std::tuple{AttrField{"dtype", dtype}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const DType dtype = attrs.as<CastAttrs>().dtype;
  if (dtype > kBool) return ShapeError("cast", "no such dtype", in);
  return Types{{dtype, in[0].shape}};
}

template <class From>
void Kernel(const KernelArgs& a, Rect tile) {
  Dispatch(a.attrs.as<CastAttrs>().dtype, [&](auto zero) {
    using To = decltype(zero);
    ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
      const From* x = a.input<From>(0) + begin;
      To* y = a.output<To>(0) + begin;
      if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BF16>) {
        Maps<BF16>().narrow(x, y, n);
      } else if constexpr (std::is_same_v<From, BF16> && std::is_same_v<To, float>) {
        Maps<BF16>().widen(x, y, n);
      } else if constexpr (std::is_same_v<From, bool>) {
        const To if_true = ConvertTo<To>(1.0), if_false = ConvertTo<To>(0.0);
        Selects<To>().select(x, &if_true, 0, &if_false, 0, y, n);
      } else {
        std::transform(x, x + n, y, ConvertTo<To, From>);
      }
    });
  });
}

// dx = dy, cast to x's dtype. If x or y is i32 or bool, x has no gradient.
VarList Gradient(const GradientArgs& a) {
  const DType from = a.input(0).dtype();
  if (!IsFloat(from) || !IsFloat(a.output(0).dtype())) return {Var{}};
  return {Cast(a.grad(0), from)};
}

void Reference(const ReferenceArgs& a) {
  const auto convert = [&](double x) {
    return Dispatch(a.output_types[0].dtype,
                    [&](auto zero) { return static_cast<double>(ConvertTo<decltype(zero)>(x)); });
  };
  std::transform(a.inputs[0].begin(), a.inputs[0].end(), a.outputs[0].begin(), convert);
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = RecordCall<Cast, kBF16>, .out = "bf16[]"},
    {.in = "bf16[3,37]", .record = RecordCall<Cast, kF32>, .out = "f32[3,37]"},
    {.in = "f32[3,37]", .record = RecordCall<Cast, kF64>, .out = "f64[3,37]"},
    {.in = "f64[3,37]", .record = RecordCall<Cast, kF32>, .out = "f32[3,37]"},
    {.in = "f64[3,37]",
     .record = [](VarSpan in) { return VarList{Cast(Cast(in[0], kF32), kF64)}; },
     .low = -1e-5,  // f32 is fine enough for finite differences here
     .high = 1e-5},
    {.in = "[37]", .record = RecordCall<Cast, kI32>, .low = -5e9, .high = 5e9, .out = "i32[37]"},
    {.in = "[37]", .record = RecordCall<Cast, kBool>, .out = "bool[37]"},
    {.in = "i32[5]", .record = RecordCall<Cast, kF32>, .below = 9, .out = "f32[5]"},
    {.in = "bool[5]", .record = RecordCall<Cast, kF64>, .out = "f64[5]"},
    {.in = "[0,3]", .record = RecordCall<Cast, kI32>, .out = "i32[0,3]"},
    {.in = "[2]", .record = RecordCall<Cast, static_cast<DType>(kDTypeCount)>, .error = "no such dtype"},
};

}  // namespace

constexpr OpDef kCast = {.name = "cast",
                         .infer = Infer,
                         .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                         .cut = Cut::kBoth,
                         .gradient = Gradient,
                         .reference = Reference,
                         .autocast = Autocast::kFirst,
                         .attrs = AttrOpsOf<CastAttrs>(),
                         .examples = kExamples};
Var Cast(Var x, DType dtype) { return x.dtype() == dtype ? x : Record(kCast, {x}, Attrs::Of(CastAttrs{dtype})); }

}  // namespace weft
