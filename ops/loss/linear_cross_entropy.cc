// linear_cross_entropy computes row_loss [..., 1] of cross_entropy(x · w + bias, targets). x is [..., C], w is [C, V]
// (or stored as [V, C], if `transpose_w`), targets are i32 [...], and bias [V] is optional.
//
// linear_cross_entropy_gradient computes the gradients by x, w and bias from (x, w, targets, drow [..., 1], bias). Let
// dlogits = (softmax(x · w + bias) - q) · drow, or 0 for ignored targets, with q as in cross_entropy.cc. Then
// dx = dlogits · wᵀ, dbias = Σ dlogits over rows, and dw = xᵀ · dlogits or, if `transpose_w`, its transpose.
//
// Neither op has a kernel. The compiler replaces both by ordinary ops on blocks of rows, so that logits of more than
// one block never exist as a whole.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/loss/cross_entropy.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Checks x, w, targets and the optional bias. Returns the type of row_loss.
absl::StatusOr<TensorType> Check(const char* op, const LinearCrossEntropyAttrs& attrs, TypeSpan in) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (!IsFloat(in[0].dtype)) return ShapeError(op, absl::StrCat("not defined for ", Name(in[0].dtype)), in);
  if (x.rank() < 2) return ShapeError(op, "x needs rank >= 2", in);
  if (w.rank() != 2 || in[1].dtype != in[0].dtype || w.dim(attrs.transpose_w ? 1 : 0) != x.dim(-1)) {
    const std::string wanted =
        attrs.transpose_w ? absl::StrCat("[V, ", x.dim(-1), "]") : absl::StrCat("[", x.dim(-1), ", V]");
    return ShapeError(op, absl::StrCat("w must be ", wanted, ", of x's dtype"), in);
  }
  const int64_t classes = w.dim(attrs.transpose_w ? 0 : 1);
  const TensorType logits = {ComputedIn(in[0].dtype), WithDim(x, -1, classes)}, bias = {in[0].dtype, {classes}};
  if (in.size() > 3 && in[3] != bias) return ShapeError(op, absl::StrCat("the bias must be ", ToString(bias)), in);
  WEFT_RETURN_IF_ERROR(CheckCrossEntropy(op, attrs.loss(), {logits, in[2]}));
  return TensorType{logits.dtype, WithDim(x, -1, 1)};
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_ASSIGN_OR_RETURN(const TensorType column,
                        Check("linear_cross_entropy", attrs.as<LinearCrossEntropyAttrs>(), in));
  return Types{column};
}

// The gradient is linear_cross_entropy_gradient.
VarList Gradient(const GradientArgs& a) {
  VarList inputs(a.inputs.begin(), a.inputs.end());
  inputs.insert(inputs.begin() + 3, a.grad(0));
  VarList gradients = RecordAll(kLinearCrossEntropyGradient, inputs, a.attrs);
  gradients.resize(a.inputs.size() - 1);  // dx, dw and, if there is a bias, dbias
  gradients.insert(gradients.begin() + 2, Var());
  return gradients;
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const auto own = attrs.as<LinearCrossEntropyAttrs>();
  Var logits = MatMul(in[0], in[1], {.transpose_b = own.transpose_w, .f32_output = in[0].dtype() == kBF16});
  if (in.size() > 3) logits = logits + Cast(in[3], logits.dtype());
  return {RecordAll(kCrossEntropy, {logits, in[2]}, Attrs::Of(own.loss()))[0]};
}

VarList Lower(const Attrs& attrs, VarSpan in) {
  return {LinearCrossEntropyByBlocks(attrs.as<LinearCrossEntropyAttrs>(), in, Var()).row_loss};
}

constexpr LinearCrossEntropyAttrs kPlain = {}, kTransposed = {.transpose_w = true}, kSmallBlocks = {.block = 1};
constexpr LinearCrossEntropyAttrs kSmoothed = {.transpose_w = true, .label_smoothing = 0.1};
constexpr LinearCrossEntropyAttrs kIgnoring = {
    .transpose_w = true, .ignore_index = 1, .label_smoothing = 0.1, .block = 1};

constexpr OpExample kExamples[] = {
    {.in = "[1,1] [1,1] i32[1]", .record = RecordWith<kLinearCrossEntropy, kPlain>, .below = 1, .out = "[1,1]"},
    {.in = "[7,3] [3,5] i32[7]", .record = RecordWith<kLinearCrossEntropy, kPlain>, .below = 5, .out = "[7,1]"},
    {.in = "[7,3] [5,3] i32[7]", .record = RecordWith<kLinearCrossEntropy, kTransposed>, .below = 5},
    {.in = "[2,3,5] [17,5] i32[2,3] [17]",
     .record = RecordWith<kLinearCrossEntropy, kSmoothed>,
     .below = 17,
     .out = "[2,3,1]"},
    {.in = "[130,3] [5,3] i32[130] [5]",
     .record = RecordWith<kLinearCrossEntropy, kIgnoring>,
     .below = 7},  // 3 blocks; some targets are ignored
    {.in = "[2,70,3] [3,5] i32[2,70]", .record = RecordWith<kLinearCrossEntropy, kSmallBlocks>, .below = 5},
    {.in = "[0,3] [5,3] i32[0]", .record = RecordWith<kLinearCrossEntropy, kTransposed>},
    {.in = "bf16[130,3] bf16[5,3] i32[130] bf16[5]",
     .record = RecordWith<kLinearCrossEntropy, kIgnoring>,
     .below = 5,
     .out = "f32[130,1]"},
    {.in = "[3] [5,3] i32[]", .record = RecordWith<kLinearCrossEntropy, kTransposed>, .error = "x needs rank >= 2"},
    {.in = "[7,3] [3,5] i32[7]", .record = RecordWith<kLinearCrossEntropy, kTransposed>, .error = "w must be [V, 3]"},
    {.in = "[7,3] [5,3] i32[7] [4]",
     .record = RecordWith<kLinearCrossEntropy, kTransposed>,
     .error = "the bias must be f32[5]"},
    {.in = "[7,3] [5,3] i32[6]",
     .record = RecordWith<kLinearCrossEntropy, kTransposed>,
     .error = "targets must be i32[7]"},
    {.in = "i32[7,3] i32[5,3] i32[7]",
     .record = RecordWith<kLinearCrossEntropy, kTransposed>,
     .error = "not defined for i32"},
};

// Returns x, w, targets and bias, or their types, without drow.
template <class List>
List WithoutDrow(absl::Span<const typename List::value_type> in) {
  List rest(in.begin(), in.end());
  rest.erase(rest.begin() + 3);
  return rest;
}

absl::StatusOr<Types> InferGradient(const Attrs& attrs, TypeSpan in) {
  constexpr char kOp[] = "linear_cross_entropy_gradient";
  const Types forward = WithoutDrow<Types>(in);
  WEFT_ASSIGN_OR_RETURN(const TensorType column, Check(kOp, attrs.as<LinearCrossEntropyAttrs>(), forward));
  if (in[3] != column) return ShapeError(kOp, absl::StrCat("drow must be ", ToString(column)), in);
  if (in.size() > 4) return Types{in[0], in[1], in[4]};
  return Types{in[0], in[1]};
}

VarList LowerGradient(const Attrs& attrs, VarSpan in) {
  const VarList inputs = WithoutDrow<VarList>(in);
  const auto parts = LinearCrossEntropyByBlocks(attrs.as<LinearCrossEntropyAttrs>(), inputs, in[3]);
  if (in.size() > 4) return {parts.dx, parts.dw, parts.dbias};
  return {parts.dx, parts.dw};
}

VarList ElementaryGradient(const Attrs& attrs, VarSpan in) {
  auto whole = attrs.as<LinearCrossEntropyAttrs>();
  whole.block = int64_t{1} << 48;  // one block has all rows
  return LowerGradient(Attrs::Of(whole), in);
}

constexpr OpExample kGradientExamples[] = {
    {.in = "[1,1] [1,1] i32[1] [1,1]",
     .record = RecordWith<kLinearCrossEntropyGradient, kPlain>,
     .below = 1,
     .out = "[1,1]"},
    {.in = "[7,3] [3,5] i32[7] [7,1]",
     .record = RecordWith<kLinearCrossEntropyGradient, kPlain>,
     .below = 5,
     .out = "[7,3]"},
    {.in = "[7,3] [5,3] i32[7] [7,1]", .record = RecordWith<kLinearCrossEntropyGradient, kTransposed>, .below = 5},
    {.in = "[2,3,5] [17,5] i32[2,3] [2,3,1] [17]",
     .record = RecordWith<kLinearCrossEntropyGradient, kSmoothed>,
     .below = 17},
    {.in = "[130,3] [5,3] i32[130] [130,1] [5]",
     .record = RecordWith<kLinearCrossEntropyGradient, kIgnoring>,
     .below = 7},  // 3 blocks
    {.in = "[2,70,3] [3,5] i32[2,70] [2,70,1]",
     .record = RecordWith<kLinearCrossEntropyGradient, kSmallBlocks>,
     .below = 5},
    {.in = "bf16[130,3] bf16[5,3] i32[130] f32[130,1] bf16[5]",
     .record = RecordWith<kLinearCrossEntropyGradient, kIgnoring>,
     .below = 5},
    {.in = "[0,3] [5,3] i32[0] [0,1]", .record = RecordWith<kLinearCrossEntropyGradient, kTransposed>},
    {.in = "[7,3] [3,5] i32[7] [7,1]",
     .record = RecordWith<kLinearCrossEntropyGradient, kTransposed>,
     .error = "w must be [V, 3]"},
    {.in = "[7,3] [5,3] i32[7] [7]",
     .record = RecordWith<kLinearCrossEntropyGradient, kTransposed>,
     .error = "drow must be f32[7,1]"},
};

// Returns the rows of a block: `rows` or, if less, a multiple of 64. Blocks are about equal. A block has at most `most`
// logits, unless 64 rows have more.
int64_t BlockRows(int64_t rows, int64_t vocabulary, int64_t most) {
  constexpr int64_t kRows = 64;
  const int64_t fit = std::max(kRows, most / vocabulary / kRows * kRows);
  const int64_t blocks = std::max<int64_t>(1, (rows + fit - 1) / fit);
  return std::min(rows, ((rows + blocks - 1) / blocks + kRows - 1) / kRows * kRows);
}

Var AddTo(Var sum, Var term) { return sum ? sum + term : term; }

}  // namespace

LinearCrossEntropyResult LinearCrossEntropyByBlocks(const LinearCrossEntropyAttrs& attrs, VarSpan inputs, Var drow) {
  const Shape shape = inputs[0].shape();
  const int64_t rows = shape.rows(), vocabulary = inputs[1].dim(attrs.transpose_w ? 0 : 1);
  const int64_t block = BlockRows(rows, vocabulary, attrs.block);
  const Var all = Reshape(inputs[0], {rows, shape.cols()}), w = inputs[1], bias = inputs.size() > 3 ? inputs[3] : Var();
  const DType products = w.dtype();
  const bool f32_output = products == kBF16;  // keeps logits and the sums of dw in f32
  const Var all_targets = Reshape(inputs[2], {rows}), all_drow = drow ? Reshape(drow, {rows, 1}) : Var();
  const Attrs loss = Attrs::Of(attrs.loss());
  LinearCrossEntropyResult result;
  VarList row_loss, dx;
  for (int64_t begin = 0; begin == 0 || begin < rows; begin += std::max<int64_t>(block, 1)) {
    const auto block_of = [&](Var v) { return block == rows ? v : Slice(v, 0, begin, std::min(begin + block, rows)); };
    const Var x = block_of(all), targets = block_of(all_targets);
    Var logits = MatMul(x, w, {.transpose_b = attrs.transpose_w, .f32_output = f32_output});  // [R, V]
    if (bias) logits = logits + Cast(bias, logits.dtype());
    const VarList losses = RecordAll(kCrossEntropy, {logits, targets}, loss);
    row_loss.push_back(losses[0]);
    if (!drow) continue;
    const Var exact = Record(kCrossEntropyGradient, {logits, targets, losses[1], block_of(all_drow)}, loss);
    const Var dlogits = Cast(exact, products);
    dx.push_back(MatMul(dlogits, w, {.transpose_b = !attrs.transpose_w}));
    const Var left = attrs.transpose_w ? dlogits : x, right = attrs.transpose_w ? x : dlogits;
    const MatMulOptions options = {.transpose_a = true, .f32_output = f32_output};
    result.dw = result.dw ? MatMulAdd(left, right, result.dw, options) : MatMul(left, right, options);
    if (bias) result.dbias = AddTo(result.dbias, SumTo(exact, bias.shape()));
  }
  if (result.dw) result.dw = Cast(result.dw, products);
  if (result.dbias) result.dbias = Cast(result.dbias, bias.dtype());
  const auto whole = [](const VarList& blocks, const Shape& of) {
    return Reshape(blocks.size() == 1 ? blocks[0] : Concat(blocks, 0), of);
  };
  result.row_loss = whole(row_loss, WithDim(shape, -1, 1));
  if (drow) result.dx = whole(dx, shape);
  return result;
}

constexpr OpDef kLinearCrossEntropy = {.name = "linear_cross_entropy",
                                       .infer = Infer,
                                       .gradient = Gradient,
                                       .lower = Lower,
                                       .elementary = Elementary,
                                       .autocast = Autocast::kProduct,
                                       .attrs = AttrOpsOf<LinearCrossEntropyAttrs>(),
                                       .examples = kExamples};

constexpr OpDef kLinearCrossEntropyGradient = {.name = "linear_cross_entropy_gradient",
                                               .infer = InferGradient,
                                               .outputs = 0,
                                               .lower = LowerGradient,
                                               .elementary = ElementaryGradient,
                                               .attrs = AttrOpsOf<LinearCrossEntropyAttrs>(),
                                               .examples = kGradientExamples};

}  // namespace weft
