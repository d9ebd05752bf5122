#include "weft/tests/fuzz/random_chain.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/ops/ops.h"
#include "weft/tests/fuzz/drawing.h"

namespace weft {
namespace {

Drawn ApplyAny(Drawing& draw) {
  using RulesOf = absl::Span<const Rule> (*)();
  static constexpr RulesOf kRules[] = {ElementwiseRules, ShapeRules, ReductionRules, NetworkRules};
  for (int tries = 0; tries < 8; ++tries) {
    const Drawn drawn = draw.OneOf<Rule>(draw.OneOf<RulesOf>(kRules)())(draw);
    if (drawn.var) return drawn;
  }
  return draw.Leaf(draw.AnyShape());
}

bool Contains(const VarList& vars, Var var) {
  return std::any_of(vars.begin(), vars.end(), [&](Var known) { return known.id == var.id; });
}

// Chooses the values to differentiate by: inputs, weights, and usually an intermediate value.
VarList AnySources(Drawing& draw) {
  VarList sources;
  for (const Var leaf : draw.leaves()) {
    if (sources.size() < 6 && !draw.Chance(3)) sources.push_back(leaf);
  }
  const Var between = draw.Any().var;
  if (!Contains(draw.leaves(), between)) sources.push_back(between);
  return sources;
}

// Returns a scalar of magnitude about 1 that depends on all of `values`.
Var Blend(Drawing& draw, const VarList& values) {
  Var loss = Fill(draw.tape(), {draw.dtype(), {}}, 0);
  for (const Var value : values) {
    const double count = static_cast<double>(std::max<int64_t>(1, value.shape().elements()));
    loss = loss + Sum(Tanh(value * 0.3)) * (draw.Uniform(0.5, 1.5) / count);
  }
  return loss;
}

// Records an update by a random optimizer, with the gradient multiplied by `scale`.
Var Updated(Drawing& draw, Var weight, Var gradient, Var scale) {
  Tape* tape = draw.tape();
  const std::string name = tape->ParameterName(weight);  // a copy, because adding states moves the names
  const auto state = [&](const char* which) {
    return tape->State(absl::StrCat(name, ".", which), weight.type(), Zeros());
  };
  const Var m = state("m"), v = state("v");
  const Var rate = Fill(tape, {kF32, {}}, 0.05), step = Fill(tape, {kI32, {}}, 2);
  switch (draw.Below(6)) {
    case 0:
      return SgdUpdate(weight, m, gradient, rate, scale, {.momentum = 0.9, .nesterov = draw.Chance(2)})[0];
    case 1:
      return AdamWUpdate(weight, m, v, gradient, rate, scale, step, {.epsilon = 1e-2})[0];
    case 2:
      return AdamUpdate(weight, m, v, gradient, rate, scale, step, {.epsilon = 1e-2})[0];
    case 3:  // the square root is steep at 0, where a gradient that should be 0 may be a rounding error
      return AdagradUpdate(weight, m, gradient, rate, scale, step, {.epsilon = 1e-2})[0];
    case 4: {  // updates by the sign, so random numbers move the gradient away from 0
      const Drawn apart = draw.Apart({gradient});
      return LionUpdate(weight, m, apart.var, rate, scale, {})[0];
    }
    default:
      return Assign(weight, weight - 0.1 * gradient * Cast(scale, weight.dtype()));
  }
}

}  // namespace

RandomChain RecordRandomChain(const ChainOptions& options, Tape* tape) {
  Drawing draw(options.seed, options.dtype, tape);
  draw.Keep(draw.Leaf(draw.AnyShape()));
  for (int i = 0; i < options.ops; ++i) draw.Keep(ApplyAny(draw));
  if (!tape->status().ok()) return {};

  RandomChain chain;
  for (int i = 0; i < 3; ++i) chain.fetch.push_back(draw.Any().var);
  const VarList sources = AnySources(draw);
  if (!sources.empty()) {
    const Var loss = Blend(draw, chain.fetch);
    chain.fetch.push_back(loss);
    const VarList gradients = Gradient(loss, sources);
    chain.fetch.insert(chain.fetch.end(), gradients.begin(), gradients.end());
    if (draw.Chance(3)) {
      const VarList second = Gradient(Blend(draw, gradients), sources);
      chain.fetch.insert(chain.fetch.end(), second.begin(), second.end());
    }
    // The scale is always f32. In f64 chains `max_norm` is so large that the scale is 1. Otherwise the last bits of the
    // norm would change how the scale is rounded.
    const double max_norm = draw.dtype() == kF64 ? 1e300 : draw.Uniform(0.01, 1);
    const Var scale = ClipScale(GlobalNorm(gradients), draw.Chance(2) ? 0 : max_norm);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (Contains(draw.weights(), sources[i]) && !draw.Chance(3))
        chain.updates.push_back(Updated(draw, sources[i], gradients[i], scale));
    }
  }
  chain.fetch.insert(chain.fetch.end(), draw.undifferentiated().begin(), draw.undifferentiated().end());
  chain.feeds = std::move(draw.feeds());
  return chain;
}

}  // namespace weft
