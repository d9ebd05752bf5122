// y = factor · x.
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const Computed<T> factor = static_cast<Computed<T>>(a.attrs.as<ScaleAttrs>().factor);
  ForInnerLoops(a.output_shape(0), tile,
                [&](int64_t begin, int64_t n) { Scale(a.input<T>(0) + begin, factor, a.output<T>(0) + begin, n); });
}

// dx = factor · dy.
VarList Gradient(const GradientArgs& a) { return {Scale(a.grad(0), a.attrs.as<ScaleAttrs>().factor)}; }

void Reference(const ReferenceArgs& a) {
  const double factor = a.attrs.as<ScaleAttrs>().factor;
  for (size_t i = 0; i < a.outputs[0].size(); ++i) a.outputs[0][i] = factor * a.inputs[0][i];
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = [](VarSpan in) { return VarList{Scale(in[0], 2)}; }},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{Scale(in[0], -0.3)}; }},
    {.in = "[19]", .record = [](VarSpan in) { return VarList{Scale(in[0], 0)}; }},
    {.in = "[0,4]", .record = [](VarSpan in) { return VarList{-in[0]}; }},
    {.in = "i32[2]", .record = [](VarSpan in) { return VarList{Scale(in[0], 2)}; }, .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kScale = {.name = "scale",
                          .infer = InferSame,
                          .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                          .cut = Cut::kBoth,
                          .in_place = 0,
                          .gradient = Gradient,
                          .reference = Reference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<ScaleAttrs>(),
                          .examples = kExamples};
Var Scale(Var x, double factor) { return Record(kScale, {x}, Attrs::Of(ScaleAttrs{factor})); }

}  // namespace weft
