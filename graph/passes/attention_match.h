// RaiseAttention recognises softmax(scores) · value with these types and functions. The scores are
// scale · query · keyᵀ, which may be capped and masked.
//
// Axes: B batch, H heads, T targets (positions of queries), S sources (positions of keys and values). Keys and values
// have G <= H heads, the key-value groups: each serves H / G heads of queries.
#ifndef WEFT_GRAPH_PASSES_ATTENTION_MATCH_H_
#define WEFT_GRAPH_PASSES_ATTENTION_MATCH_H_

#include <string>
#include <vector>

#include "weft/graph/passes/matchers.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/attention/attention.h"

namespace weft {

struct ScoresMask {
  ValueId id = kNoValue;
  double factor = 1;    // factor of the mask before it is added
  Masked by_positions;  // if `id` is kNoValue: the band whose rows have positions
};

struct AttentionOperand {  // queries, keys or values, as the product reads them: [B, heads, positions, width]
  ValueId id = kNoValue;
  int64_t heads = 0, positions = 0, width = 0;
  bool in_scores = false;  // queries and keys: their scales are scales of the scores
};

struct AttentionMatch {
  AttentionMatch(const PatternRewriter& rewriter, const Node& node) : pattern(rewriter), last(node) {}

  Pattern pattern;
  const Node& last;            // the product of softmax and values
  ValueId product = kNoValue;  // the product of queries and keys
  Shape scores;                // [T, S], [B, T, S] or [B, H, T, S]
  int64_t batch = 0, heads = 0, groups = 0, targets = 0, sources = 0;
  AttentionAttrs attrs;
  std::vector<ScoresMask> masks;
  AttentionOperand query, key, value;
};

// Sets the queries, keys, values and sizes in `match`, whose scores must have been found. Returns why the pattern can't
// be raised, or "" if it can.
std::string MatchAttentionOperands(const PatternRewriter& r, AttentionMatch* match);

// Records queries, keys and values as the op `attention` takes them, and sets their columns and scale in
// `match->attrs`. If several of them are in one array, returns the same Var for each: by it, the op's gradient
// recognises them.
VarList RecordAttentionOperands(PatternRewriter& r, AttentionMatch* match);

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_ATTENTION_MATCH_H_
