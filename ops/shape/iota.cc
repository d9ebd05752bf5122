// y[i] = i.
#include <numeric>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct IotaAttrs {
  DType dtype = kI32;
  int64_t n = 0;
  auto Fields() const { return std::tuple{AttrField{"dtype", dtype}, AttrField{"n", n}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [dtype, n] = attrs.as<IotaAttrs>();
  if (n < 0) return ShapeError("iota", absl::StrCat(n, " is not a size"), in);
  if (dtype == kI32 && n > int64_t{1} << 31) return ShapeError("iota", absl::StrCat(n, " is too large for i32"), in);
  return Types{{dtype, {n}}};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  for (int64_t i = tile.col_begin; i < tile.col_end; ++i) a.output<T>(0)[i] = ConvertTo<T>(i);
}

void Reference(const ReferenceArgs& a) { std::iota(a.outputs[0].begin(), a.outputs[0].end(), 0.0); }

constexpr OpExample kExamples[] = {
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

constexpr OpDef kIota = {.name = "iota",
                         .infer = Infer,
                         .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>},
                         .cut = Cut::kBoth,
                         .no_gradient = "it has no inputs",
                         .reference = Reference,
                         .attrs = AttrOpsOf<IotaAttrs>(),
                         .examples = kExamples};
Var Iota(Tape* tape, DType dtype, int64_t n) { return tape->Record(kIota, Attrs::Of(IotaAttrs{dtype, n}), {})[0]; }

}  // namespace weft
