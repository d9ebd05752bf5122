// Recognises attention written in elementary ops, and replaces it with the op `attention`, whose kernel never writes
// the scores of all positions to memory. Models write scores, masks, softmax and the product with the values; this pass
// makes them fast. attention_scores.cc and attention_operands.cc know the spellings.
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

// Returns the softmax that the last product multiplies with the values, through dropout and reshapes; null if its first
// factor is none.
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

// Scores of [T, S] have batch 1 and one head; scores of [B, T, S] have one head.
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

Var RecordAttention(const PatternRewriter& r, AttentionMatch* match) {
  VarList inputs = RecordAttentionOperands(r, match);
  for (const auto& [mask, factor] : match->masks) {
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
  if (problem.empty()) problem = MatchAttentionScores(r, scores, &match);
  if (problem.empty()) problem = MatchAttentionOperands(r, &match);
  if (problem.empty() && r.UsedElsewhere(match.pattern.inside(), last) != kNoValue) {
    problem = "a value inside it is used elsewhere";
  }
  if (problem.empty() && r.UnderTwoGradients(last)) problem = "it is differentiated twice";
  if (!problem.empty()) return r.Decline(last, kPattern, std::move(problem));
  return {RecordAttention(r, &match)};
}

}  // namespace

absl::Status RaiseAttention(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kMatmul, kPattern, ToAttention}}); }

}  // namespace weft
