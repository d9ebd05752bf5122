// y = x / (1 - rate) with probability 1 - rate, else 0 (Srivastava et al., 2014).
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const double rate = attrs.as<DropoutAttrs>().rate;
  if (!(rate >= 0 && rate < 1)) return ShapeError("dropout", absl::StrCat("the rate ", rate, " is not in [0, 1)"), in);
  return Types{in[0]};
}

RandomStream StreamOf(const DropoutAttrs& attrs, RandomStream random) {
  random.stream = attrs.stream;
  return random;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const DropoutAttrs attrs = a.attrs.as<DropoutAttrs>();
  const RandomStream stream = StreamOf(attrs, a.random);
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
    Selects<T>().drop(stream, static_cast<uint64_t>(begin), attrs.rate, a.input<T>(0) + begin, a.output<T>(0) + begin,
                      n);
  });
}

// dx = dropout(dy) with the same random numbers.
VarList Gradient(const GradientArgs& a) { return {Record(kDropout, {a.grad(0)}, a.attrs)}; }

VarList InEval(const Attrs&, VarSpan in) { return {in[0]}; }

void Reference(const ReferenceArgs& a) {
  const DropoutAttrs attrs = a.attrs.as<DropoutAttrs>();
  const RandomStream stream = StreamOf(attrs, a.random);
  for (size_t i = 0; i < a.outputs[0].size(); ++i) {
    a.outputs[0][i] = stream.Uniform(i) >= attrs.rate ? a.inputs[0][i] / (1 - attrs.rate) : 0;
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = [](VarSpan in) { return VarList{Dropout(in[0], 0.5)}; }},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{Dropout(in[0], 0.1)}; }},
    {.in = "[2,1001]", .record = [](VarSpan in) { return VarList{Dropout(in[0], 0.9)}; }},
    {.in = "[0,3]", .record = [](VarSpan in) { return VarList{Dropout(in[0], 0.5)}; }},
    {.in = "[3]", .record = [](VarSpan in) { return VarList{Dropout(in[0], 1)}; }, .error = "1 is not in [0, 1)"},
    {.in = "[3]", .record = [](VarSpan in) { return VarList{Dropout(in[0], -0.1)}; }, .error = "not in [0, 1)"},
};

}  // namespace

constexpr OpDef kDropout = {.name = "dropout",
                            .infer = Infer,
                            .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                            .cut = Cut::kBoth,
                            .in_place = 0,
                            .random = true,
                            .gradient = Gradient,
                            .in_eval = InEval,
                            .reference = Reference,
                            .autocast = Autocast::kFollow,
                            .attrs = AttrOpsOf<DropoutAttrs>(),
                            .examples = kExamples};
Var Dropout(Var x, double rate) {
  if (rate == 0) return x;
  return Composite("dropout", {x}, [&] {
    return Record(kDropout, {x}, Attrs::Of(DropoutAttrs{rate, x.tape->NextStream()}));
  });
}

}  // namespace weft
