#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

constexpr char kPattern[] = "norm";

// What was found of gain · (x - mean) / sqrt(variance + epsilon), or without the mean.
class NormMatch {
 public:
  explicit NormMatch(const PatternRewriter& r) : r_(r) {}

  // Matches a value that ends in a product; false if it is nothing of the kind. The pattern is whole only where there
  // is no problem.
  bool Match(ValueId end) {
    Flatten(end, /*inverse=*/false);
    if (denominators_.size() != 1 || numerators_.empty() || numerators_.size() > 2) return false;
    const Shape& shape = r_.type(end).shape;
    for (size_t i = 0; i < numerators_.size(); ++i) {
      const size_t other = 1 - i;
      if (r_.type(numerators_[i]).shape != shape) continue;
      if (numerators_.size() == 2 && !IsVector(numerators_[other], shape)) continue;
      if (numerators_.size() == 2) gain = numerators_[other];
      problem.clear();
      if (MatchRoot(denominators_[0], numerators_[i])) return true;
    }
    return false;
  }

  // [C] for rows of C elements, or [1, C] and so on.
  bool IsVector(ValueId id, const Shape& rows) const {
    const Shape& shape = r_.type(id).shape;
    return shape.rank() >= 1 && shape.rank() <= rows.rank() && shape.dim(-1) == rows.dim(-1) &&
           shape.elements() == rows.dim(-1);
  }

  ValueId x = kNoValue, gain = kNoValue;
  double epsilon = 0;
  bool centred = false;
  std::string problem;
  std::vector<ValueId> inside;  // values between x and the end

 private:
  const Node& Enter(ValueId id) {
    if (std::find(inside.begin(), inside.end(), id) == inside.end()) inside.push_back(id);
    return r_.producer(id);
  }

  // The factors of a product, written in whatever order.
  void Flatten(ValueId id, bool inverse) {
    const Node& node = r_.producer(id);
    const bool product = node.op == &kMul || node.op == &kDiv;
    if (product && inside.size() < 4 && (inside.empty() || r_.OnlyUse(id)) && node.inputs[0] != node.inputs[1]) {
      Enter(id);
      Flatten(node.inputs[0], inverse);
      Flatten(node.inputs[1], inverse != (node.op == &kDiv));
    } else if (r_.Number(id) != 1.0) {
      (inverse ? denominators_ : numerators_).push_back(id);
    }
  }

  ValueId Unreshaped(ValueId id) {
    while (r_.producer(id).op == &kReshape) id = Enter(id).inputs[0];
    return id;
  }

  // factor · y, through reshapes.
  std::pair<double, ValueId> Scaled(ValueId id) {
    double factor = 1;
    for (;;) {
      id = Unreshaped(id);
      const Node& node = r_.producer(id);
      absl::optional<double> number;
      int rest = 0;
      if (node.op == &kScale) {
        number = node.attrs.as<ScaleAttrs>().factor;
      } else if (node.op == &kDiv) {
        number = r_.Number(node.inputs[1]);
        if (number.has_value()) number = 1 / *number;
      } else if (node.op == &kMul) {
        rest = r_.Number(node.inputs[0]).has_value() ? 1 : 0;
        number = r_.Number(node.inputs[1 - rest]);
      }
      if (!number.has_value()) return {factor, id};
      factor *= *number;
      Enter(id);
      id = node.inputs[rest];
    }
  }

  // The y whose rows' means `id` holds, as [..., 1] against rows of `shape`; kNoValue if it holds none.
  ValueId Averaged(ValueId id, const Shape& shape) {
    Shape column = shape;
    column.set_dim(-1, 1);
    const bool fits = r_.type(id).shape == column;
    auto [factor, y] = Scaled(id);
    if (r_.producer(y).op != &kSumBlocks) return kNoValue;
    while (r_.producer(y).op == &kSumBlocks) {
      const bool last = r_.producer(y).attrs.as<BlockAttrs>().axis == r_.type(y).shape.rank() - 1;
      if (!last) problem = "it is not along the last axis";
      y = Enter(y).inputs[0];
    }
    if (r_.type(y).shape != shape) return kNoValue;
    const double n = static_cast<double>(shape.dim(-1));
    if (problem.empty() && !fits) return kNoValue;
    if (problem.empty() && std::abs(factor * n - 1) > 1e-6) {
      problem = absl::StrCat("a sum over ", n, " elements is divided by ", 1 / factor);
    }
    return y;
  }

  // y where `id` is y · y.
  ValueId Squared(ValueId id) {
    const Node& node = r_.producer(id);
    if (node.op != &kMul || node.inputs[0] != node.inputs[1]) return kNoValue;
    return Enter(id).inputs[0];
  }

  // The denominator, over the numerator `main`, both [..., C] once broadcast.
  bool MatchRoot(ValueId denominator, ValueId main) {
    const Node* root = &Enter(Unreshaped(denominator));
    if (root->op == &kAdd && WithoutNumber(*root) != kNoValue) {
      problem = "epsilon is added to the root, not under it";
      root = &Enter(Unreshaped(WithoutNumber(*root)));
    }
    if (root->op != &kSqrt) return false;
    ValueId variance = Unreshaped(root->inputs[0]);
    const Node& sum = r_.producer(variance);
    if (sum.op == &kAdd && WithoutNumber(sum) != kNoValue) {
      Enter(variance);
      variance = WithoutNumber(sum);
      epsilon = *r_.Number(sum.inputs[0] == variance ? sum.inputs[1] : sum.inputs[0]);
    }
    if (!MatchVariance(variance, main)) return false;
    if (problem.empty() && !(epsilon > 0)) problem = "no epsilon above 0 is added to the variance";
    return true;
  }

  // The other input of an addition of a number.
  ValueId WithoutNumber(const Node& add) const {
    for (int i : {0, 1}) {
      if (r_.Number(add.inputs[i]).has_value()) return add.inputs[1 - i];
    }
    return kNoValue;
  }

  bool MatchVariance(ValueId variance, ValueId main) {
    const Shape& shape = r_.type(main).shape;
    const Node& centre = r_.producer(main);
    const Node& difference = r_.producer(variance);
    if (difference.op == &kSub && centre.op == &kSub) {  // E[x²] - E[x]², which loses more to rounding
      const ValueId mean = Squared(difference.inputs[1]);
      if (mean == kNoValue || mean != centre.inputs[1]) return false;
      x = centre.inputs[0];
      const ValueId squares = Averaged(difference.inputs[0], shape);
      centred = squares != kNoValue && Squared(squares) == x && Averaged(mean, shape) == x;
      Enter(variance);
      Enter(mean);
      Enter(main);
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
    Enter(main);
    Enter(centre.inputs[1]);
    for (ValueId id : mean.inside) Enter(id);
    return true;
  }

  const PatternRewriter& r_;
  std::vector<ValueId> numerators_, denominators_;
};

VarList Raised(PatternRewriter& r, const Node& last, NormMatch& match, ValueId bias) {
  std::erase(match.inside, last.output(0));
  const ValueId shared = r.UsedElsewhere(match.inside, last);
  if (match.problem.empty() && r.type(match.x).dtype == kBF16) match.problem = "each step of it is rounded to bf16";
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

// Rewrite (x - mean(x)) / sqrt(mean((x - mean(x))²) + epsilon) to layer_norm(x), and x / sqrt(mean(x²) + epsilon) to
// rms_norm(x), each times a gain or not. Where a gain or a bias follows, the pattern ends there.
VarList RaiseProduct(PatternRewriter& r, const Node& last) {
  NormMatch match(r);
  if (!match.Match(last.output(0))) return {};
  const Node* const user = r.OnlyUser(last.output(0));
  if (user != nullptr && (user->op == &kMul || user->op == &kAdd)) {
    const ValueId other = user->inputs[user->inputs[0] == last.output(0) ? 1 : 0];
    const bool more = user->op == &kAdd ? match.centred : match.gain == kNoValue;
    if (more && match.IsVector(other, r.type(last.output(0)).shape)) return {};
  }
  return Raised(r, last, match, kNoValue);
}

// Rewrite layer_norm(x) + bias, spelt as above, to layer_norm(x, bias).
VarList RaiseSum(PatternRewriter& r, const Node& last) {
  for (int i : {0, 1}) {
    const ValueId product = last.inputs[i], bias = last.inputs[1 - i];
    NormMatch match(r);
    if (!r.OnlyUse(product) || !match.IsVector(bias, r.type(product).shape)) continue;
    if (match.Match(product) && match.centred) return Raised(r, last, match, bias);
  }
  return {};
}

}  // namespace

absl::Status RaiseNorms(Rewrite& rewrite) {
  const std::vector<Node>& nodes = rewrite.program.nodes;
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op == &kSqrt; })) {
    return absl::OkStatus();  // programs with additions and products, but no root, are not recorded again
  }
  return RewritePatterns(
      rewrite, {{&kMul, kPattern, RaiseProduct}, {&kDiv, kPattern, RaiseProduct}, {&kAdd, kPattern, RaiseSum}});
}

}  // namespace weft
