// This pass merges a permutation with an earlier one. RaiseAttention permutes the result of `attention` to
// [B, H, T, width], as the raised pattern did, and models permute it back at once. Together, the two move nothing.
#include "weft/graph/passes/matchers.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"

namespace weft {
namespace {

// Rewrite permute(permute(x)) to permute(x), or to x
VarList ToOnePermute(PatternRewriter& r, const Node& outer) {
  const ValueId between = SkipReshapes(r, outer.inputs[0]);
  const Node& inner = r.producer(between);
  if (r.uses().differentiated_by(between) || r.uses().differentiated_by(outer.output(0))) return {};
  if (inner.op != &kPermute || r.type(between) != r.type(outer.inputs[0])) return {};
  const PermuteAttrs a = inner.attrs.as<PermuteAttrs>(), b = outer.attrs.as<PermuteAttrs>();
  PermuteAttrs both = {.rank = b.rank};
  bool identity = true;
  for (int i = 0; i < b.rank; ++i) {
    both.axes[i] = a.axes[b.axes[i]];
    identity = identity && both.axes[i] == i;
  }
  const Var x = r.Now(inner.inputs[0]);
  return {identity ? x : Record(kPermute, {x}, Attrs::Of(both))};
}

}  // namespace

absl::Status MergePermutes(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kPermute, nullptr, ToOnePermute}}); }

}  // namespace weft
