// Drawing makes the random choices for a random chain's rules: existing values, new inputs and weights, sizes and axes.
#ifndef WEFT_TESTS_FUZZ_DRAWING_H_
#define WEFT_TESTS_FUZZ_DRAWING_H_

#include <random>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/tests/buffer.h"

namespace weft {

// A value and an approximate bound of its elements' magnitudes. Rules use the bound to keep chains from overflowing.
struct Drawn {
  Var var;
  double bound = 1;

  Shape shape() const { return var.shape(); }
};

class Drawing {
 public:
  Drawing(uint32_t seed, DType dtype, Tape* tape) : random_(seed), dtype_(dtype), tape_(tape) {}

  Tape* tape() const { return tape_; }
  DType dtype() const { return dtype_; }
  std::vector<std::pair<Var, Buffer>>& feeds() { return feeds_; }
  const VarList& leaves() const { return leaves_; }          // inputs and weights that gradients are taken by
  VarList& undifferentiated() { return undifferentiated_; }  // values that are only fetched
  const VarList& weights() const { return weights_; }        // the leaves that are parameters

  // Return random numbers, which are the same on every platform, unlike those of the standard library's distributions.
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }
  double Uniform(double low, double high) { return low + (high - low) * (random_() * 0x1p-32); }
  template <class T>
  const T& OneOf(absl::Span<const T> of) {
    return of[static_cast<size_t>(Below(static_cast<int64_t>(of.size())))];
  }
  int64_t Size();  // the size of an axis: mostly small, rarely 0
  Shape AnyShape();
  int Axis(const Shape& shape) { return static_cast<int>(Below(shape.rank()) - (Chance(2) ? shape.rank() : 0)); }
  std::vector<int> Axes(const Shape& shape);       // any subset of the shape's axes
  std::vector<int64_t> Factors(int64_t elements);  // sizes whose product is `elements`
  Shape Broadcastable(const Shape& shape);         // a shape that broadcasts to `shape`

  // Values.
  const Drawn& Any();              // an existing value, recent ones more often
  Drawn AnyOfRank(int min_rank);   // an existing value of this rank or more, or a new leaf
  Drawn Leaf(const Shape& shape);  // a new input or weight
  Drawn Weight(const Shape& shape, double bound);
  Var State(const Shape& shape);               // a state whose elements are 0.5
  Drawn Like(const Shape& shape);              // a value of this shape: existing, a part of one, or new
  Drawn Under(const Drawn& x, double bound);   // x, or tanh(x) if x may exceed `bound`
  Drawn Apart(const Drawn& x);                 // x plus random numbers, so that no element is at a kink
  Var Ids(const Shape& shape, int64_t below);  // i32
  Var Mask(const Shape& shape);                // bool
  Var Input(const TensorType& type, double low, double high, int64_t below = 0);
  void Keep(const Drawn& drawn);  // adds a value to the existing ones, unless it has too many elements

 private:
  std::mt19937 random_;
  DType dtype_;
  Tape* tape_;
  std::vector<std::pair<Var, Buffer>> feeds_;
  std::vector<Drawn> values_;
  VarList leaves_, weights_, undifferentiated_;
  int states_ = 0;
};

// A rule draws values and records a value computed from them. If the rule can't be applied to the drawn values, or has
// recorded all that it needs, it returns a Drawn without a Var.
using Rule = Drawn (*)(Drawing& draw);
absl::Span<const Rule> ElementwiseRules();
absl::Span<const Rule> ShapeRules();
absl::Span<const Rule> ReductionRules();  // and losses
absl::Span<const Rule> NetworkRules();    // products, attention, norms, lookups, and patterns that the compiler raises

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_DRAWING_H_
