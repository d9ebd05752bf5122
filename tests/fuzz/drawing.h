// What the rules of a random chain draw from: values so far, fresh inputs and weights, sizes, axes.
#ifndef WEFT_TESTS_FUZZ_DRAWING_H_
#define WEFT_TESTS_FUZZ_DRAWING_H_

#include <random>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/tests/buffer.h"

namespace weft {

// A value and, for as long as it is no NaN, what it does not exceed by much: so that no chain overflows.
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
  const VarList& leaves() const { return leaves_; }          // floats that gradients are taken by
  VarList& undifferentiated() { return undifferentiated_; }  // to be fetched, but nothing more
  const VarList& weights() const { return weights_; }        // those of them that are parameters

  // Numbers. The same on every platform, which the standard's distributions are not.
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }
  double Uniform(double low, double high) { return low + (high - low) * (random_() * 0x1p-32); }
  template <class T>
  const T& OneOf(absl::Span<const T> of) {
    return of[static_cast<size_t>(Below(static_cast<int64_t>(of.size())))];
  }
  int64_t Size();  // of an axis: mostly small, seldom 0
  Shape AnyShape();
  int Axis(const Shape& shape) { return static_cast<int>(Below(shape.rank()) - (Chance(2) ? shape.rank() : 0)); }
  std::vector<int> Axes(const Shape& shape);       // some of them, perhaps all or none
  std::vector<int64_t> Factors(int64_t elements);  // sizes of this product
  Shape Broadcastable(const Shape& shape);         // one that broadcasts to it

  // Values.
  const Drawn& Any();              // recent ones more often
  Drawn AnyOfRank(int least);      // Any(), or a fresh one where none is there
  Drawn Leaf(const Shape& shape);  // a fresh input or weight
  Drawn Weight(const Shape& shape, double bound);
  Var State(const Shape& shape);               // of halves
  Drawn Like(const Shape& shape);              // of this shape: one that is there, a part of one, or fresh
  Drawn Under(const Drawn& x, double bound);   // x, or its tanh where it may be larger
  Drawn Apart(const Drawn& x);                 // x plus fresh numbers, so that it lies at no kink
  Var Ids(const Shape& shape, int64_t below);  // i32
  Var Mask(const Shape& shape);                // bool
  Var Input(const TensorType& type, double low, double high, int64_t below = 0);
  void Keep(const Drawn& drawn);  // among the values, unless it is too large

 private:
  std::mt19937 random_;
  DType dtype_;
  Tape* tape_;
  std::vector<std::pair<Var, Buffer>> feeds_;
  std::vector<Drawn> values_;
  VarList leaves_, weights_, undifferentiated_;
  int states_ = 0;
};

// Ways to make a value of others. One that can't be applied to what it draws returns a Drawn without a Var.
using Rule = Drawn (*)(Drawing& draw);
absl::Span<const Rule> ElementwiseRules();
absl::Span<const Rule> ShapeRules();
absl::Span<const Rule> ReductionRules();  // and losses
absl::Span<const Rule> NetworkRules();    // products, attention, norms, lookups, and patterns that the compiler raises

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_DRAWING_H_
