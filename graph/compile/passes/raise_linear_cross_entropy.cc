// This pass recognises a cross-entropy whose logits are one product, with or without a bias, and replaces both by the
// op linear_cross_entropy. This op computes the logits block by block. Otherwise the logits of a large vocabulary are
// the largest value of a training step.
#include "absl/strings/str_cat.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/cross_entropy.h"
#include "weft/ops/loss/linear_cross_entropy.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

constexpr char kPattern[] = "linear + cross-entropy";

// Rewrite cross_entropy(reshape?(matmul(x, w) [+ bias]), t) to linear_cross_entropy(x, w, t [, bias])
// cross_entropy also returns which targets count. This output becomes ops on the targets only. Otherwise the gradient's
// factor 1 / count would depend on the logits.
VarList RaiseLoss(PatternRewriter& r, const Node& loss) {
  Pattern pattern(r);
  const ValueId logits = pattern.EnterBeforeReshapes(loss.inputs[0]);
  ValueId product = logits, bias = kNoValue;
  const auto is_product = [&](ValueId id) { return r.producer(Pattern(r).BeforeReshapes(id)).op == &kMatmul; };
  if (const Node& sum = r.producer(logits); sum.op == &kAdd) {
    const int i = is_product(sum.inputs[0]) ? 0 : 1;
    if (!is_product(sum.inputs[i])) return {};
    bias = sum.inputs[1 - i];
    product = pattern.EnterBeforeReshapes(sum.inputs[i]);
  }
  const Node& matmul = r.producer(product);
  if (matmul.op != &kMatmul) return {};

  const auto decline = [&](const std::string& reason) { return r.Decline(loss, kPattern, reason); };
  const auto [transpose_x, transpose_w, f32_output] = matmul.attrs.as<MatMulAttrs>();
  const TensorType &x = r.type(matmul.inputs[0]), &w = r.type(matmul.inputs[1]);
  const int64_t vocabulary = r.type(loss.inputs[0]).shape.dim(-1);
  if (transpose_x || w.shape.rank() != 2 || r.type(product).shape.dim(-1) != vocabulary) {
    return decline("the logits are not x · w with one matrix of weights and a column for each class");
  }
  if (bias != kNoValue && r.type(bias) != TensorType{x.dtype, {vocabulary}}) {
    return decline(absl::StrCat("the product's addend is ", ToString(r.type(bias)), ", not a bias ",
                                ToString(TensorType{x.dtype, {vocabulary}})));
  }
  if (const ValueId used = r.UsedElsewhere(pattern.inside(), loss); used != kNoValue) {
    return decline(r.uses().fetched(used) ? "the logits are fetched" : "the logits have other users");
  }
  if (r.uses().count(loss.output(1)) > 0) return decline("the logarithms of the sums have users");
  if (r.UnderTwoGradients(loss)) return decline("it is differentiated twice");

  const auto attrs = loss.attrs.as<CrossEntropyAttrs>();
  const Var targets = r.Now(loss.inputs[1]);
  Shape rows = targets.shape();  // [..., C]
  rows.Append(x.shape.dim(-1));
  VarList inputs = {Reshape(r.Now(matmul.inputs[0]), rows), r.Now(matmul.inputs[1]), targets};
  if (rows.rank() == 1) {  // one row of logits [V]
    inputs[0] = Reshape(inputs[0], {1, rows.dim(0)});
    inputs[2] = Reshape(targets, {1});
  }
  if (bias != kNoValue) inputs.push_back(r.Now(bias));
  const Var row_loss = RecordAll(kLinearCrossEntropy, inputs,
                                 Attrs::Of(LinearCrossEntropyAttrs{.transpose_w = transpose_w,
                                                                   .ignore_index = attrs.ignore_index,
                                                                   .label_smoothing = attrs.label_smoothing}))[0];
  return {Reshape(row_loss, r.type(loss.output(0)).shape), Var(),
          CountedTargets(targets, r.type(loss.output(2)).dtype, attrs, vocabulary)};
}

}  // namespace

absl::Status RaiseLinearCrossEntropy(Rewrite& rewrite) {
  return RewritePatterns(rewrite, {{&kCrossEntropy, kPattern, RaiseLoss}});
}

}  // namespace weft
