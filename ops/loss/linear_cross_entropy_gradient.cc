// The gradients of linear_cross_entropy by x, w and the optional bias, from (x, w, targets, drow [..., 1], bias).
//
// With dlogits = (softmax(x · w + bias) - q) · drow, where q is as in cross_entropy.cc:
//   dx = dlogits · wᵀ, dw = xᵀ · dlogits (transposed if w is), dbias = Σ over rows of dlogits.
// The op has no kernel; linear_cross_entropy.cc has the ops that replace it.
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/linear_cross_entropy.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns x, w, targets and bias, or their types, without drow.
template <class List>
List WithoutDrow(absl::Span<const typename List::value_type> in) {
  List rest(in.begin(), in.end());
  rest.erase(rest.begin() + 3);
  return rest;
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  constexpr char kOp[] = "linear_cross_entropy_gradient";
  WEFT_RETURN_IF_ERROR(CheckLinearCrossEntropy(kOp, attrs.as<LinearCrossEntropyAttrs>(), WithoutDrow<Types>(in)));
  TensorType column = {ComputedIn(in[0].dtype), in[0].shape};
  column.shape.set_dim(-1, 1);
  if (in[3] != column) return ShapeError(kOp, absl::StrCat("drow must be ", ToString(column)), in);
  if (in.size() > 4) return Types{in[0], in[1], in[4]};
  return Types{in[0], in[1]};
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const auto own = attrs.as<LinearCrossEntropyAttrs>();
  const Shape shape = in[0].shape();
  const int64_t rows = shape.rows();
  const Var x = Reshape(in[0], {rows, shape.cols()}), w = in[1], targets = Reshape(in[2], {rows});
  Var logits = MatMul(x, w, {.transpose_b = own.transpose_w, .f32_output = x.dtype() == kBF16});
  if (in.size() > 4) logits = logits + Cast(in[4], logits.dtype());
  const Attrs loss = Attrs::Of(own.loss());
  const Var lse = RecordAll(kCrossEntropy, {logits, targets}, loss)[1];
  const Var exact = Record(kCrossEntropyGradient, {logits, targets, lse, Reshape(in[3], {rows, 1})}, loss);
  const Var dlogits = Cast(exact, w.dtype());
  const Var dx = MatMul(dlogits, w, {.transpose_b = !own.transpose_w});
  const Var dw =
      own.transpose_w ? MatMul(dlogits, x, {.transpose_a = true}) : MatMul(x, dlogits, {.transpose_a = true});
  VarList gradients = {Reshape(dx, shape), dw};
  if (in.size() > 4) gradients.push_back(Cast(SumTo(exact, in[4].shape()), in[4].dtype()));
  return gradients;
}

VarList Lower(const Attrs& attrs, VarSpan in) {
  const auto result = LinearCrossEntropyByBlocks(attrs.as<LinearCrossEntropyAttrs>(), WithoutDrow<VarList>(in), in[3]);
  if (in.size() > 4) return {result.dx, result.dw, result.dbias};
  return {result.dx, result.dw};
}

template <bool transpose_w, int64_t ignore_index, int smoothing_percent, int64_t block>
VarList Example(VarSpan in) {
  return RecordAll(kLinearCrossEntropyGradient, in,
                   Attrs::Of(LinearCrossEntropyAttrs{.transpose_w = transpose_w,
                                                     .ignore_index = ignore_index,
                                                     .label_smoothing = smoothing_percent / 100.0,
                                                     .block = block}));
}
constexpr int64_t kOneBlock = int64_t{1} << 24;

constexpr OpExample kExamples[] = {
    {.in = "[1,1] [1,1] i32[1] [1,1]", .record = Example<false, -100, 0, kOneBlock>, .below = 1, .out = "[1,1]"},
    {.in = "[7,3] [3,5] i32[7] [7,1]", .record = Example<false, -100, 0, kOneBlock>, .below = 5, .out = "[7,3]"},
    {.in = "[7,3] [5,3] i32[7] [7,1]", .record = Example<true, -100, 0, kOneBlock>, .below = 5},
    {.in = "[2,3,5] [17,5] i32[2,3] [2,3,1] [17]", .record = Example<true, -100, 10, kOneBlock>, .below = 17},
    {.in = "[130,3] [5,3] i32[130] [130,1] [5]", .record = Example<true, 1, 10, 1>, .below = 7},  // 3 blocks
    {.in = "[2,70,3] [3,5] i32[2,70] [2,70,1]", .record = Example<false, -100, 0, 1>, .below = 5},
    {.in = "bf16[130,3] bf16[5,3] i32[130] f32[130,1] bf16[5]", .record = Example<true, 1, 10, 1>, .below = 5},
    {.in = "[0,3] [5,3] i32[0] [0,1]", .record = Example<true, -100, 0, kOneBlock>},
    {.in = "[7,3] [3,5] i32[7] [7,1]", .record = Example<true, -100, 0, kOneBlock>, .error = "w must be [V, 3]"},
    {.in = "[7,3] [5,3] i32[7] [7]", .record = Example<true, -100, 0, kOneBlock>, .error = "drow must be f32[7,1]"},
};

}  // namespace

constexpr OpDef kLinearCrossEntropyGradient = {.name = "linear_cross_entropy_gradient",
                                               .infer = Infer,
                                               .outputs = 0,
                                               .lower = Lower,
                                               .elementary = Elementary,
                                               .attrs = AttrOpsOf<LinearCrossEntropyAttrs>(),
                                               .examples = kExamples};

}  // namespace weft
