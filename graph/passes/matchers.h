// With these functions, pattern rules recognise numbers, scales, sums and reshapes in the forms that models use.
//
// The functions named Match... examine the nodes that make a value. They return the number or operands that they find,
// or nullopt if the value has another form. A Pattern walks from the last node of a pattern towards its inputs, and
// collects the values that it passes.
//
//   // Rewrite tanh(a · b · x) to tanh((a · b) · x), where a and b are numbers
//   VarList MergeScales(PatternRewriter& r, const Node& tanh) {
//     Pattern pattern(r);
//     const Scaled input = pattern.BeforeScales(tanh.inputs[0]);
//     if (r.UsedElsewhere(pattern.inside(), tanh) != kNoValue) return {};
//     return {Tanh(Reshape(Scale(r.Now(input.x), input.factor), r.type(tanh.output(0)).shape))};
//   }
#ifndef WEFT_GRAPH_PASSES_MATCHERS_H_
#define WEFT_GRAPH_PASSES_MATCHERS_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/graph/passes/pattern.h"

namespace weft {

// If all elements of `id` are the same number, returns the number. Recognises fills and float constants, also through
// reshapes, broadcasts, scales and casts to floats.
std::optional<double> MatchNumber(const Program& program, ValueId id);

struct Scaled {  // factor · x
  double factor = 1;
  ValueId x = kNoValue;
};
// Matches one node: a scale, an elementwise product with a number on either side, or a quotient with a number as
// divisor.
std::optional<Scaled> MatchScaled(const Program& program, ValueId id);

struct Shifted {  // x + number
  double number = 0;
  ValueId x = kNoValue;
};
// Matches one sum with a number on either side.
std::optional<Shifted> MatchShifted(const Program& program, ValueId id);

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

#endif  // WEFT_GRAPH_PASSES_MATCHERS_H_
