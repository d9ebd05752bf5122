// These passes serve linear_cross_entropy, the cross-entropy of a product, whose logits are computed block by block.
// Otherwise the logits of a large vocabulary are the largest value of a training step.
//
// RaiseLinearCrossEntropy recognises a cross-entropy whose logits are one product, with or without a bias, and replaces
// both by the op.
//
// Lower replaces ops without kernels by the ordinary ops that OpDef::lower records. It runs after gradients are
// expanded, so that such an op can have its own gradient. linear_cross_entropy is lowered together with its gradient.
// The op keeps no logits, so a separate gradient would compute all logits again. If both are recorded together, each
// block's logits serve the loss and the gradient. OpDef::lower sees only one node, so this pass looks for the
// gradient's node. Both can be recorded together unless the gradient's input `drow`, the factor of each row's loss,
// depends on the loss. In training, `drow` usually follows from the targets alone.
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/cross_entropy.h"
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

// Index of the input `drow` of linear_cross_entropy_gradient(x, w, t, drow [, bias]). The other inputs are those of
// linear_cross_entropy(x, w, t [, bias]).
constexpr int kRowGradientInput = 3;

bool IsGradientOf(const Node& node, const Node& loss) {
  if (!node.op->attrs.equal(node.attrs, loss.attrs)) return false;
  auto inputs = node.inputs;
  inputs.erase(inputs.begin() + kRowGradientInput);
  return inputs == loss.inputs;
}

class LossLowering {
 public:
  explicit LossLowering(Replay& replay) : replay_(replay), program_(replay.program()) {
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      if (program_.nodes[n].op == &kLinearCrossEntropyGradient) gradients_.push_back(n);
    }
  }

  // Rewrite linear_cross_entropy(x, w, t), ..., its gradient to blocks of rows that compute both
  // Records the nodes on which `drow` depends ahead of their turn, then the blocks in place of the loss and the
  // gradient. Returns the loss, or an empty list if there is no gradient that can be recorded here.
  VarList Record(const Node& loss) {
    const uint32_t n = program_.value(loss.output(0)).producer;
    for (const uint32_t g : gradients_) {
      const Node& gradient = program_.nodes[g];
      std::vector<uint32_t> between;
      if (g < n || Recorded(g) || !IsGradientOf(gradient, loss) || !Between(n, g, &between)) continue;
      for (uint32_t b : between) replay_.Replace(program_.nodes[b], replay_.Copy(program_.nodes[b]));
      replay_.tape().SetScope(loss.scope);
      const LinearCrossEntropyResult result =
          LinearCrossEntropyByBlocks(loss.attrs.as<LinearCrossEntropyAttrs>(), replay_.Now(loss.inputs),
                                     replay_.Now(gradient.inputs[kRowGradientInput]));
      replay_.Replace(gradient, {result.dx, result.dw, result.dbias});
      return {result.row_loss};
    }
    return {};
  }

 private:
  bool Recorded(uint32_t n) const { return static_cast<bool>(replay_.Now(program_.nodes[n].output(0))); }

  // Finds the nodes after the loss, node `n`, on which `drow` of the gradient, node `g`, depends. Omits nodes that are
  // recorded already. Returns false if `drow` depends on the loss, or on a node that must not move.
  bool Between(uint32_t n, uint32_t g, std::vector<uint32_t>* nodes) const {
    std::vector<bool> seen(g - n, false);
    std::vector<ValueId> open = {program_.nodes[g].inputs[kRowGradientInput]};
    while (!open.empty()) {
      const uint32_t producer = program_.value(open.back()).producer;
      open.pop_back();
      if (producer < n || Recorded(producer) || seen[producer - n]) continue;
      const Node& node = program_.nodes[producer];
      if (producer == n || node.op->writes > 0 || node.op->lower != nullptr) return false;
      seen[producer - n] = true;
      nodes->push_back(producer);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    absl::c_sort(*nodes);
    return true;
  }

  Replay& replay_;
  const Program& program_;
  std::vector<uint32_t> gradients_;  // indices of the nodes linear_cross_entropy_gradient
};

}  // namespace

absl::Status RaiseLinearCrossEntropy(Rewrite& rewrite) {
  return RewritePatterns(rewrite, {{&kCrossEntropy, kPattern, RaiseLoss}});
}

// Rewrite op(x) to the ops that OpDef::lower records
absl::Status Lower(Rewrite& rewrite) {
  const auto lowers = [](const Node& node) { return node.op->lower != nullptr; };
  if (absl::c_none_of(rewrite.program.nodes, lowers)) return absl::OkStatus();
  Replay replay(rewrite);
  LossLowering losses(replay);
  WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
    if (node.op->lower == nullptr) return {};
    if (node.op == &kLinearCrossEntropy) {
      VarList loss = losses.Record(node);
      if (!loss.empty()) return loss;
    }
    return node.op->lower(node.attrs, replay.Now(node.inputs));
  }));
  replay.Finish();
  return DropDead(rewrite);
}

}  // namespace weft
