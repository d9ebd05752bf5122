// This pass recognises norms written in elementary ops, and replaces them by the ops layer_norm and rms_norm, whose
// kernels read each row once. Models spell the variance as the mean of squared differences or as E[x²] - E[x]². They
// divide by a root or multiply by its inverse, and write factors in any order.
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr char kPattern[] = "norm";

// NormMatch finds the parts of gain · (x - mean) / sqrt(variance + epsilon), a norm of rows [..., C], upwards from the
// last product or quotient. If no mean is subtracted, it is an RMS norm.
class NormMatch {
 public:
  explicit NormMatch(const PatternRewriter& r) : pattern(r), r_(r) {}

  // Matches the product or quotient `end`. Returns false if it is not a norm. If it is a norm that can't be raised,
  // sets `problem`.
  bool Match(ValueId end) {
    Flatten(end, /*inverse=*/false);
    if (denominators_.size() != 1 || numerators_.empty() || numerators_.size() > 2) return false;
    const Shape& shape = r_.type(end).shape;
    for (size_t i = 0; i < numerators_.size(); ++i) {
      const ValueId main = numerators_[i], other = numerators_.size() == 2 ? numerators_[1 - i] : kNoValue;
      if (r_.type(main).shape != shape || (other != kNoValue && !IsVector(other, shape))) continue;
      gain = other;
      problem.clear();
      if (MatchRoot(denominators_[0], main)) return true;
    }
    return false;
  }

  // Reports whether `id` holds one element for each column of `rows`: [C], [1, C] and so on.
  bool IsVector(ValueId id, const Shape& rows) const {
    const Shape& shape = r_.type(id).shape;
    return shape.rank() >= 1 && shape.rank() <= rows.rank() && shape.dim(-1) == rows.dim(-1) &&
           shape.elements() == rows.dim(-1);
  }

  ValueId x = kNoValue, gain = kNoValue;
  double epsilon = 0;
  bool centred = false;  // true: the mean is subtracted
  std::string problem;   // why the norm can't be raised
  Pattern pattern;

 private:
  // Collects the factors and divisors of a product, in any order.
  void Flatten(ValueId id, bool inverse) {
    const Node& node = r_.producer(id);
    const bool product = node.op == &kMul || node.op == &kDiv, first = pattern.inside().empty();
    if (product && pattern.inside().size() < 4 && (first || r_.uses().OnlyOne(id)) &&
        node.inputs[0] != node.inputs[1]) {
      pattern.Enter(id);
      Flatten(node.inputs[0], inverse);
      Flatten(node.inputs[1], inverse != (node.op == &kDiv));
    } else if (MatchNumber(r_, id) != 1.0) {
      (inverse ? denominators_ : numerators_).push_back(id);
    }
  }

  // If `id` [..., 1] is the mean of each row of a value of `shape` [..., C], returns the value. If `id` is a sum of the
  // value, but not this mean, also sets `problem`. Otherwise returns kNoValue.
  ValueId Averaged(ValueId id, const Shape& shape) {
    const bool fits = shape.rank() > 0 && r_.type(id).shape == WithDim(shape, -1, 1);
    auto [factor, y] = pattern.BeforeScales(id);
    if (r_.producer(y).op != &kSumBlocks) return kNoValue;
    while (r_.producer(y).op == &kSumBlocks) {
      const bool last = r_.producer(y).attrs.as<BlockAttrs>().axis == r_.type(y).shape.rank() - 1;
      if (!last) problem = "its mean is not along the last axis";
      y = pattern.Enter(y).inputs[0];
    }
    if (r_.type(y).shape != shape) return kNoValue;
    const double n = static_cast<double>(shape.dim(-1));
    if (problem.empty() && !fits) return kNoValue;
    if (problem.empty() && std::abs(factor * n - 1) > 1e-6) {
      problem = absl::StrCat("a sum over ", n, " elements is divided by ", 1 / factor);
    }
    return y;
  }

  // Returns y if `id` is y · y.
  ValueId Squared(ValueId id) {
    const Node& node = r_.producer(id);
    if (node.op != &kMul || node.inputs[0] != node.inputs[1]) return kNoValue;
    return pattern.Enter(id).inputs[0];
  }

  // Reports whether `divisor` is sqrt(variance + epsilon), with the variance of `main`, x or x - mean [..., C]. If
  // epsilon is missing or outside the root, sets `problem`.
  bool MatchRoot(ValueId divisor, ValueId main) {
    ValueId root = pattern.EnterBeforeReshapes(divisor);
    if (const auto sum = MatchShifted(r_, root)) {
      problem = "epsilon is added to the root, not under it";
      root = pattern.EnterBeforeReshapes(sum->x);
    }
    if (r_.producer(root).op != &kSqrt) return false;
    ValueId variance = pattern.BeforeReshapes(r_.producer(root).inputs[0]);
    if (const auto sum = MatchShifted(r_, variance)) {
      pattern.Enter(variance);
      variance = sum->x;
      epsilon = sum->number;
    }
    if (!MatchVariance(variance, main)) return false;
    // A reshape may have turned the roots of rows into a row.
    if (problem.empty() && r_.type(divisor).shape != WithDim(r_.type(main).shape, -1, 1)) return false;
    if (problem.empty() && !(epsilon > 0)) problem = "no epsilon above 0 is added to the variance";
    return true;
  }

  bool MatchVariance(ValueId variance, ValueId main) {
    const Shape& shape = r_.type(main).shape;
    const Node &centre = r_.producer(main), &difference = r_.producer(variance);
    if (difference.op == &kSub && centre.op == &kSub) {  // E[x²] - E[x]², which has larger rounding errors
      const ValueId mean = Squared(difference.inputs[1]);
      if (mean == kNoValue || mean != centre.inputs[1]) return false;
      x = centre.inputs[0];
      const ValueId squares = Averaged(difference.inputs[0], shape);
      centred = squares != kNoValue && Squared(squares) == x && Averaged(mean, shape) == x;
      for (ValueId id : {variance, mean, main}) pattern.Enter(id);
      return centred;
    }
    const ValueId squares = Averaged(variance, shape);
    if (squares == kNoValue || Squared(squares) != main) return false;
    x = main;
    if (centre.op != &kSub) return true;
    NormMatch mean(r_);
    centred = mean.Averaged(centre.inputs[1], shape) == centre.inputs[0] && mean.problem.empty();
    if (!centred) return true;
    x = centre.inputs[0];
    for (ValueId id : {main, centre.inputs[1]}) pattern.Enter(id);
    for (ValueId id : mean.pattern.inside()) pattern.Enter(id);
    return true;
  }

  const PatternRewriter& r_;
  std::vector<ValueId> numerators_, denominators_;
};

// Records the norm that ends in `last`, or declines it if it can't be raised. `bias`: [C], or kNoValue.
VarList Raised(PatternRewriter& r, const Node& last, NormMatch& match, ValueId bias) {
  match.pattern.Leave(last.output(0));
  const ValueId shared = r.UsedElsewhere(match.pattern.inside(), last);
  if (match.problem.empty() && r.type(match.x).dtype == kBF16)
    match.problem = "its intermediate values are rounded to bf16";
  if (match.problem.empty() && shared != kNoValue) {
    match.problem = absl::StrCat("its ", r.producer(shared).op->name, " has other users");
  }
  if (!match.problem.empty()) return r.Decline(last, kPattern, match.problem);
  const Var x = r.Now(match.x);
  const TensorType vector = {x.dtype(), {x.dim(-1)}};
  const auto vector_of = [&](ValueId id, double value) {
    return id == kNoValue ? Fill(r.tape(), vector, value) : Reshape(r.Now(id), vector.shape);
  };
  const Var gain = vector_of(match.gain, 1);
  return {match.centred ? LayerNorm(x, gain, vector_of(bias, 0), match.epsilon) : RmsNorm(x, gain, match.epsilon)};
}

// Rewrite (x - mean(x)) / sqrt(mean((x - mean(x))²) + epsilon) to layer_norm(x), with or without a gain
// Rewrite x / sqrt(mean(x²) + epsilon) to rms_norm(x), with or without a gain
// If the only reader of `last` multiplies by a gain or adds a bias, the pattern ends there: nothing is recorded.
VarList RaiseProduct(PatternRewriter& r, const Node& last) {
  const ValueId product = last.output(0);
  NormMatch match(r);
  if (!match.Match(product)) return {};
  if (const NodeId reader = r.uses().OnlyReader(product); reader != kNoNode) {
    const Node& user = r.program().node(reader);
    const bool more = user.op == &kAdd ? match.centred : user.op == &kMul && match.gain == kNoValue;
    if (more && match.IsVector(user.inputs[user.inputs[0] == product ? 1 : 0], r.type(product).shape)) return {};
  }
  return Raised(r, last, match, kNoValue);
}

// Rewrite layer_norm(x) + bias, spelt as above, to layer_norm(x, bias)
VarList RaiseSum(PatternRewriter& r, const Node& last) {
  for (int i : {0, 1}) {
    const ValueId product = last.inputs[i], bias = last.inputs[1 - i];
    NormMatch match(r);
    if (!r.uses().OnlyOne(product) || !match.IsVector(bias, r.type(product).shape)) continue;
    if (match.Match(product) && match.centred) return Raised(r, last, match, bias);
  }
  return {};
}

}  // namespace

absl::Status RaiseNorms(Rewrite& rewrite) {
  // Most programs have sums and products, but few have a root.
  const auto is_root = [](const Node& node) { return node.op == &kSqrt; };
  if (absl::c_none_of(rewrite.program.nodes, is_root)) return absl::OkStatus();
  return RewritePatterns(
      rewrite, {{&kMul, kPattern, RaiseProduct}, {&kDiv, kPattern, RaiseProduct}, {&kAdd, kPattern, RaiseSum}});
}

}  // namespace weft
