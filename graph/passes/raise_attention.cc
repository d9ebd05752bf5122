// This pass recognises attention in elementary ops: scores, masks, softmax and the product with the values. It replaces
// them by the op `attention`, whose kernel never writes the scores of all positions to memory. attention_operands.cc
// finds queries, keys and values.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/graph/passes/attention_match.h"
#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

constexpr char kPattern[] = "attention";

// Returns the softmax whose result, after dropout and reshapes, is the first factor of the last product. If there is
// none, returns null. Sets the dropout of `match->attrs`.
const Node* FindSoftmax(const PatternRewriter& r, AttentionMatch* match) {
  ValueId id = match->pattern.EnterBeforeReshapes(match->last.inputs[0]);
  if (r.producer(id).op == &kDropout) {
    const auto [rate, stream] = r.producer(id).attrs.as<DropoutAttrs>();
    match->attrs.dropout = rate;
    match->attrs.stream = stream;
    id = match->pattern.EnterBeforeReshapes(r.producer(id).inputs[0]);
  }
  return r.producer(id).op == &kSoftmax ? &r.producer(id) : nullptr;
}

// Sets the sizes that follow from the shape of the scores. Scores of [T, S] have batch 1 and one head; scores of
// [B, T, S] have one head. Returns why the pattern can't be raised, or "" if it can.
std::string MatchShapes(const Shape& scores, AttentionMatch* match) {
  if (scores.rank() < 2 || scores.rank() > 4) return absl::StrCat("the scores have rank ", scores.rank());
  if (scores.elements() == 0) return "there are no scores";
  const auto [transpose_a, transpose_b, f32_output] = match->last.attrs.as<MatMulAttrs>();
  if (transpose_a || transpose_b) return "the last product takes a transposed factor";
  match->scores = scores;
  match->batch = scores.rank() == 2 ? 1 : scores.dim(0);
  match->heads = scores.rank() == 4 ? scores.dim(1) : 1;
  match->targets = scores.dim(-2);
  match->sources = scores.dim(-1);
  return "";
}

// Reports whether `id` is a product of matrices, or comes from one through scales, reshapes, masks, sums and tanh. Of a
// sum, only the first addend is examined.
bool LeadsToProduct(const Program& program, ValueId id) {
  while (true) {
    const Node& node = program.producer(id);
    if (node.op == &kMatmul) return true;
    if (const auto scaled = MatchScaled(program, id)) {
      id = scaled->x;
    } else if (node.op == &kReshape || node.op == &kAdd || node.op == &kTanh || MatchMasked(program, id)) {
      id = node.inputs[0];
    } else {
      return false;
    }
  }
}

// Returns the smaller limit of a band. A negative number is no limit.
int32_t Smaller(int32_t a, int64_t b) { return b >= 0 && (a < 0 || b < a) ? BandLimit(b) : a; }

// Walks from `scores`, the softmax's input, up to the product of queries and keys, and finds masks, cap and scale.
// Models scale before or after masks, hide elements by mask_fill, band_mask or an added mask, and cap scores by
// c · tanh(scores / c). Returns why the pattern can't be raised, or "" if it can.
std::string MatchScores(const PatternRewriter& r, ValueId scores, AttentionMatch* match) {
  const Program& program = r.program();
  AttentionAttrs& attrs = match->attrs;
  double factor = 1;  // between the value `next` and the softmax
  ValueId next = scores;
  for (;; next = match->pattern.EnterBeforeReshapes(next)) {
    const Node& node = program.producer(next);
    if (node.op == &kMatmul) break;
    if (const auto scaled = MatchScaled(program, next)) {
      factor *= scaled->factor;
      next = scaled->x;
    } else if (node.op == &kTanh) {
      if (attrs.soft_cap > 0) return "scores are capped twice";
      if (!(factor > 0 && std::isfinite(factor))) return "scores are capped by a number that is not positive";
      attrs.soft_cap = factor;
      next = node.inputs[0];
    } else if (attrs.soft_cap > 0) {
      return absl::StrCat("the scores are not a product where they are capped, but ", node.op->name);
    } else if (const auto masked = MatchMasked(program, next)) {
      if (masked->value != -std::numeric_limits<double>::infinity()) {
        return absl::StrCat("hidden scores are ", masked->value, ", not -inf");
      }
      if (!(factor > 0)) return "scores are scaled by a number that is not positive after they are masked";
      if (r.type(masked->x).shape != match->scores) return "a mask is of scores of another shape";
      if (masked->positions != kNoValue) {
        match->masks.push_back({.by_positions = *masked});
      } else if (masked->mask == kNoValue) {
        attrs.left = Smaller(attrs.left, masked->left);
        attrs.right = Smaller(attrs.right, masked->right);
      } else {
        match->masks.push_back({masked->mask, 1});
      }
      next = masked->x;
    } else if (node.op == &kAdd) {
      const int side = LeadsToProduct(program, node.inputs[0]) ? 0 : 1;
      if (!LeadsToProduct(program, node.inputs[side])) return "the scores are not a product";
      if (r.type(node.inputs[side]).shape != match->scores) return "a mask is of scores of another shape";
      match->masks.push_back({node.inputs[1 - side], factor});
      next = node.inputs[side];
    } else {
      return absl::StrCat("the scores are not a product, but ", node.op->name);
    }
  }
  match->product = next;
  attrs.scale = factor;
  if (match->masks.size() > kMaxAttentionMasks) return absl::StrCat("there are ", match->masks.size(), " masks");
  for (const ScoresMask& mask : match->masks) {
    if (mask.id != kNoValue && r.type(mask.id).shape.rank() > match->scores.rank()) {
      return "a mask has more axes than the scores";
    }
  }
  return "";
}

Var RecordAttention(PatternRewriter& r, AttentionMatch* match) {
  VarList inputs = RecordAttentionOperands(r, match);
  for (const auto& [mask, factor, band] : match->masks) {
    if (mask == kNoValue) {
      const Var positions = r.Now(band.positions);
      const TensorType type = {kBool, {match->batch, 1, match->targets, match->sources}};
      inputs.push_back(BandMask(Fill(positions.tape, type, 0), band.left, band.right, 1, positions));
      continue;
    }
    Var m = r.Now(mask);
    if (match->scores.rank() == 3 && m.shape().rank() == 3) m = Reshape(m, {m.dim(0), 1, m.dim(1), m.dim(2)});
    inputs.push_back(factor == 1 ? m : Scale(m, factor));
  }
  const Var y = RecordAll(kAttention, inputs, Attrs::Of(match->attrs))[0];  // [B, T, H·width]
  const Shape by_row = {match->batch, match->targets, match->heads, match->attrs.value_width};
  return Reshape(Permute(Reshape(y, by_row), {0, 2, 1, 3}), r.type(match->last.output(0)).shape);
}

// Rewrite softmax(scale · q kᵀ, capped, masked) · v to attention(q, k, v, masks)
VarList ToAttention(PatternRewriter& r, const Node& last) {
  AttentionMatch match(r, last);
  const Node* const softmax = FindSoftmax(r, &match);
  if (softmax == nullptr) return {};
  const ValueId scores = match.pattern.EnterBeforeReshapes(softmax->inputs[0]);
  std::string problem = MatchShapes(r.type(softmax->output(0)).shape, &match);
  if (problem.empty()) problem = MatchScores(r, scores, &match);
  if (problem.empty()) problem = MatchAttentionOperands(r, &match);
  if (problem.empty() && r.ReadElsewhere(match.pattern.inside(), last) != kNoValue) {
    problem = "a value inside it is used elsewhere";
  }
  if (problem.empty() && r.UnderTwoGradients(last)) problem = "it is differentiated twice";
  if (!problem.empty()) return r.Decline(last, kPattern, std::move(problem));
  return {RecordAttention(r, &match)};
}

}  // namespace

absl::Status RaiseAttention(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kMatmul, kPattern, ToAttention}}); }

}  // namespace weft
