// Patterns of nodes, and what they are rewritten to.
//
// A rule is a function of the last node of its pattern. It looks upwards from there, in the program as it was, and
// records what stands for that node instead; the rest of the pattern is then dropped, where nobody else needs it.
//
//   // Rewrite exp(log(x)) to x
//   VarList RaiseExpLog(PatternRewriter& r, const Node& exp) {
//     const Node& log = r.producer(exp.inputs[0]);
//     if (log.op != &kLog) return {};                                            // no such pattern
//     if (!r.OnlyUse(log.output(0))) return r.Decline(exp, "exp of log", "the logarithm has other users");
//     return {r.Now(log.inputs[0])};
//   }
//   absl::Status Raise(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kExp, "exp of log", RaiseExpLog}}); }
#ifndef WEFT_GRAPH_PASSES_PATTERN_H_
#define WEFT_GRAPH_PASSES_PATTERN_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "weft/core/tape.h"
#include "weft/graph/passes/passes.h"

namespace weft {

class PatternRewriter;

struct PatternRule {
  const OpDef* last;    // the op of the pattern's last node
  const char* pattern;  // its name in explanations; null for none
  // What stands for the node's outputs from now on, of their types; a null Var where nobody uses one. Nothing: the
  // node stays.
  VarList (*rewrite)(PatternRewriter& rewriter, const Node& last);
};

// Tries the rules, in order, on every node, and drops what is dead afterwards. A rule sees the program as it was before
// any of them: patterns made of what a rule recorded are for another call. Types are checked.
absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules);

class PatternRewriter {
 public:
  explicit PatternRewriter(Rewrite& rewrite);

  // The program as it was.
  const Program& program() const { return program_; }
  const Node& producer(ValueId id) const { return program_.producer(id); }
  const TensorType& type(ValueId id) const { return program_.value(id).type; }
  // The value before the reshapes that `id` ends, if any; values between them may have other users.
  ValueId BeforeReshapes(ValueId id) const;
  // How often the value is read: by nodes, gradients that are taken by it included, and by who fetches it.
  int uses(ValueId id) const { return uses_[static_cast<size_t>(id)]; }
  bool OnlyUse(ValueId id) const { return uses(id) == 1; }
  const Node* OnlyUser(ValueId id) const;  // the node that reads it, once; null if there are others or it is fetched
  bool Fetched(ValueId id) const { return fetched_[static_cast<size_t>(id)]; }
  // Whether a gradient is taken by the value: what stands for its reader must go on reading it.
  bool DifferentiatedBy(ValueId id) const { return differentiated_by_[static_cast<size_t>(id)]; }
  // Of the values inside a pattern, one that is also used elsewhere than inside or by its last node; kNoValue if there
  // is none. Such a value must be there, and differentiated, whatever becomes of the pattern.
  ValueId UsedElsewhere(absl::Span<const ValueId> inside, const Node& last) const;
  // Whether the node is differentiated twice or more: by the gradient of a gradient of something that it leads to.
  bool UnderTwoGradients(const Node& node) const;
  // The number that `id` holds in every element: that of a fill or of a constant, seen through reshapes, broadcasts,
  // casts and scales.
  absl::optional<double> Number(ValueId id) const;

  // What is being recorded: the value that stands for `id`, of an input of the pattern.
  Var Now(ValueId id) const { return recorded_[static_cast<size_t>(id)]; }
  Tape* tape() { return &tape_; }
  // Says why the pattern that ends in `last` is left alone; returns nothing, as the rule should.
  VarList Decline(const Node& last, const char* pattern, std::string reason);

 private:
  friend absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules);

  absl::Status Run(absl::Span<const PatternRule> rules);
  VarList Try(const Node& node, absl::Span<const PatternRule> rules);
  void CountGradients();

  Rewrite& rewrite_;
  const Program& program_;
  Tape tape_;
  std::vector<Var> recorded_;
  std::vector<int> uses_;
  std::vector<NodeId> user_;  // the last one
  std::vector<bool> fetched_, differentiated_by_;
  std::vector<uint8_t> gradients_;  // by node: how many gradients of one another it lies under; 2 for more
  bool changed_ = false;
};

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_PATTERN_H_
