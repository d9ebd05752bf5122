// Recognises attention's scores: the walk from the softmax up to the product of queries and keys. People scale before
// or after masks, hide elements by mask_fill, causal_mask or an added bias, and cap scores by c · tanh(scores / c).
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/graph/passes/attention_match.h"
#include "weft/ops/all_ops.h"

namespace weft {
namespace {

// Reports whether `id` is a product under scales, masks and a cap. Of a sum, only the first addend is examined.
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

}  // namespace

std::string MatchAttentionScores(const PatternRewriter& r, ValueId scores, AttentionMatch* match) {
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
      if (masked->mask == kNoValue) {
        attrs.causal = true;
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
    if (r.type(mask.id).shape.rank() > match->scores.rank()) return "a mask has more axes than the scores";
  }
  return "";
}

}  // namespace weft
