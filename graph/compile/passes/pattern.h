// RewritePatterns rewrites patterns of nodes by rules.
//
// A rule is a function of the last node of its pattern. From this node it walks towards the inputs, in the program
// before the pass. The rule records a replacement of the last node. A later pass removes the other nodes of the
// pattern, except those with other readers.
//
//   // Rewrite exp(log(x)) to x
//   VarList RaiseExpLog(PatternRewriter& r, const Node& exp) {
//     const Node& log = r.producer(exp.inputs[0]);
//     if (log.op != &kLog) return {};  // no such pattern
//     if (!r.uses().OnlyOne(log.output(0))) return r.Decline(exp, "exp of log", "the logarithm has other users");
//     return {r.Now(log.inputs[0])};
//   }
//   absl::Status Raise(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kExp, "exp of log", RaiseExpLog}}); }
#ifndef WEFT_GRAPH_COMPILE_PASSES_PATTERN_H_
#define WEFT_GRAPH_COMPILE_PASSES_PATTERN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/compile/passes/rewriting.h"

namespace weft {

class PatternRewriter;

struct PatternRule {
  const OpDef* last;    // the op of the pattern's last node
  const char* pattern;  // the pattern's name in explanations; null: no explanations
  // Returns a Var of the same type for each output of the node, or an empty Var for an output that nothing reads.
  // Returns an empty list if the node stays as it is.
  VarList (*rewrite)(PatternRewriter& rewriter, const Node& last);
};

// Tries the rules, in order, on every node until one replaces the node. Then drops dead nodes. Rules see the program as
// it was before the call: a pattern that contains nodes recorded by another rule needs a later call. A replacement of
// another type is an error.
absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules);

class PatternRewriter {
 public:
  explicit PatternRewriter(Rewrite& rewrite);

  // Return the program before the pass, and the readers of its values.
  const Program& program() const { return rewrite_.program; }
  const Node& producer(ValueId id) const { return program().producer(id); }
  const TensorType& type(ValueId id) const { return program().value(id).type; }
  const Uses& uses() const { return uses_; }
  const CompileOptions& options() const { return rewrite_.options; }
  // `inside` are the values within the pattern that ends in `last`. Returns a root among them. If there is none,
  // returns one that is read outside the pattern, or kNoValue. Such a value prevents a rewrite, because it is needed,
  // and perhaps differentiated, outside.
  ValueId UsedElsewhere(absl::Span<const ValueId> inside, const Node& last) const;
  // Like UsedElsewhere, but does not count roots. A value that is only fetched does not prevent a rewrite: its
  // elementary nodes stay, besides the replacement.
  ValueId ReadElsewhere(absl::Span<const ValueId> inside, const Node& last) const;
  // Reports whether a gradient of the node is itself differentiated.
  bool UnderTwoGradients(const Node& node) const;

  // Returns the Var of the new program to which `id`, an input of the pattern, is mapped. The first call of Now or tape
  // begins to copy the program, so a rule calls them only once its pattern has matched.
  Var Now(ValueId id) { return replay().Now(id); }
  Tape* tape() { return &replay().tape(); }
  // Records why the pattern that ends in `last` is left alone. Returns an empty list, which the rule returns in turn.
  VarList Decline(const Node& last, const char* pattern, std::string reason);

 private:
  friend absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules);

  absl::Status Try(const Node& node, absl::Span<const PatternRule> rules);
  // Copies the nodes before `node_` to the new program, which it creates at the first call.
  Replay& replay();

  Rewrite& rewrite_;
  std::optional<Replay> replay_;  // created when a rule first records, because most passes change nothing
  Uses uses_;
  std::vector<uint8_t> gradients_;  // by node: the number of nested gradients above it, at most 2
  uint32_t node_ = 0;               // index of the node on which the rules are tried
  bool changed_ = false;
};

// The functions named Match... recognise numbers, scales and sums in the forms that models use. They examine the nodes
// that make a value, and return the number or operands that they find, or nullopt if the value has another form.

// If all elements of `id` are the same number, returns the number. Recognises fills and float constants, also through
// reshapes, broadcasts, scales and casts to floats, unless a gradient is taken by one of these values.
std::optional<double> MatchNumber(const PatternRewriter& r, ValueId id);

struct Scaled {  // factor · x
  double factor = 1;
  ValueId x = kNoValue;
};
// Matches one node: a scale, an elementwise product with a number on either side, or a quotient with a number as
// divisor.
std::optional<Scaled> MatchScaled(const PatternRewriter& r, ValueId id);

struct Shifted {  // x + number
  double number = 0;
  ValueId x = kNoValue;
};
// Matches one sum with a number on either side.
std::optional<Shifted> MatchShifted(const PatternRewriter& r, ValueId id);

// Reports whether `node` is a permutation of axes to this order.
bool Permutes(const Node& node, absl::Span<const int32_t> axes);

// A Pattern walks from the last node of a pattern towards its inputs, and collects the values that it passes.
//
//   // Rewrite tanh(a · b · x) to tanh((a · b) · x), where a and b are numbers
//   VarList MergeScales(PatternRewriter& r, const Node& tanh) {
//     Pattern pattern(r);
//     const Scaled input = pattern.BeforeScales(tanh.inputs[0]);
//     if (r.UsedElsewhere(pattern.inside(), tanh) != kNoValue) return {};
//     return {Tanh(Reshape(Scale(r.Now(input.x), input.factor), r.type(tanh.output(0)).shape))};
//   }
class Pattern {
 public:
  explicit Pattern(const PatternRewriter& rewriter) : r_(rewriter) {}

  // Adds `id` to the values inside the pattern, and returns the node that makes `id`.
  const Node& Enter(ValueId id);
  // Returns the value before all reshapes that end in `id`. Adds the results of these reshapes to inside(), but not the
  // returned value.
  ValueId BeforeReshapes(ValueId id);
  // Returns the same value as BeforeReshapes, and adds this value to inside(), too.
  ValueId EnterBeforeReshapes(ValueId id);
  // Returns `id` as factor · x, where x is the value before all scales and reshapes that end in `id`. Adds the results
  // of these ops to inside(), but not x.
  Scaled BeforeScales(ValueId id);
  // Removes a value that was entered.
  void Leave(ValueId id) { std::erase(inside_, id); }

  // Returns the values between the pattern's inputs and its last node, without duplicates.
  absl::Span<const ValueId> inside() const { return inside_; }

 private:
  const PatternRewriter& r_;
  std::vector<ValueId> inside_;
};

// Returns the value before the reshapes that end in `id`, an input of the pattern; inside() is not changed. The walk
// stops at a value by which a gradient is taken, because the replacement must read that value.
ValueId SkipReshapes(const PatternRewriter& rewriter, ValueId id);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_PASSES_PATTERN_H_
