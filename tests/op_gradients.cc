// This function of CheckOp compares gradients with central differences.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_check.h"

namespace weft {
namespace {

constexpr double kDelta = 1e-6, kF32Delta = 1e-3;  // of central differences, for f64 and f32 inputs
// Tighter than usual for central differences (1e-3 and 1e-5), because these are computed in f64 on small tensors.
constexpr double kRelative = 1e-5, kAbsolute = 1e-6;
constexpr int64_t kMaxElements = 48;  // inputs of twice as many elements or more are sampled evenly

// Returns the sum of all elements of all `vars`, times random weights. The weights have both signs, so that no symmetry
// hides an error.
Var WeightedSum(Tape* tape, VarSpan vars, uint64_t seed) {
  std::optional<Var> sum;
  for (const Var var : vars) {
    const Buffer weights = RandomBuffer({kF64, var.shape()}, seed++, -1.5, 1.5);
    const Var term = Sum(Cast(var, kF64) * tape->Constant(weights.tensor()));
    sum = sum.has_value() ? *sum + term : term;
  }
  return *sum;
}

// Compares output k of `gradient` with central differences of `scalar` with respect to inputs[wrt[k]]. Sets `compared`
// if at least one element was compared.
void ExpectDifferences(CompiledCase& scalar, CompiledCase& gradient, const std::vector<Buffer>& inputs,
                       const std::vector<int>& wrt, bool* compared) {
  const auto got = gradient.Run(inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<Buffer> moved = inputs;
  for (size_t k = 0; k < wrt.size(); ++k) {
    Buffer& input = moved[wrt[k]];
    const int64_t stride = std::max<int64_t>(1, input.elements() / kMaxElements);
    for (int64_t i = 0; i < input.elements(); i += stride) {
      const double x = input.Get(i);
      const double delta = input.type().dtype == kF64 ? kDelta : kF32Delta;
      double sides[2], points[2];
      for (int side = 0; side < 2; ++side) {
        input.Set(i, side == 0 ? x - delta : x + delta);
        points[side] = input.Get(i);
        const auto value = scalar.Run(moved);
        ASSERT_TRUE(value.ok()) << value.status();
        sides[side] = value->front().Get(0);
      }
      input.Set(i, x);
      if (points[0] == points[1]) continue;  // x is so large that x + delta rounds to x
      *compared = true;
      const double wanted = (sides[1] - sides[0]) / (points[1] - points[0]), is = (*got)[k].Get(i);
      const double rounding = 1e-9 * std::max(std::abs(sides[0]), std::abs(sides[1]));
      if (std::abs(is - wanted) <= kAbsolute + rounding + kRelative * std::abs(wanted)) continue;
      ADD_FAILURE() << "the gradient by input " << wrt[k] << " at " << i << " is " << is << ", differences give "
                    << wanted;
      return;
    }
  }
}

// Expects that differentiating an op without a gradient gives an error that names the op.
void ExpectNoGradient(const OpDef& op, const OpCase& c, const VarList& gradients) {
  const absl::StatusOr<NodeCase> node = FindNode(op, c);
  if (!node.ok() || node->inputs.empty()) return;  // it has no inputs to differentiate by
  const auto compiled = CompiledCase::Make(*c.tape, gradients, c.inputs);
  ASSERT_FALSE(compiled.ok()) << op.name << " has a gradient, though it says why it has none";
  EXPECT_THAT(std::string(compiled.status().message()), ::testing::HasSubstr(op.name));
}

}  // namespace

void CheckGradients(const OpDef& op, const OpExample& example, OpCheckResult* result) {
  if (!example.check_gradient) return;
  absl::StatusOr<OpCase> made = MakeCase(op, example, kF64);
  if (!made.ok() || !made->tape->status().ok()) return;  // reported already
  OpCase& c = *made;
  Tape* tape = c.tape.get();
  std::vector<int> wrt;
  VarList differentiated;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!IsFloat(c.inputs[i].dtype())) continue;
    wrt.push_back(static_cast<int>(i));
    differentiated.push_back(c.inputs[i]);
  }
  VarList outputs;  // outputs that are exact enough for differences
  std::copy_if(c.outputs.begin(), c.outputs.end(), std::back_inserter(outputs),
               [](Var output) { return output.dtype() == kF64; });
  if (outputs.empty() || wrt.empty()) return;
  const Var loss = WeightedSum(tape, outputs, 1);
  const VarList gradients = tape->Gradient(loss, differentiated);
  if (op.writes > 0 || op.no_gradient != nullptr) return ExpectNoGradient(op, c, gradients);

  const auto scalar = CompiledCase::Make(*tape, {loss}, c.inputs),
             first = CompiledCase::Make(*tape, gradients, c.inputs);
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  ASSERT_TRUE(first.ok()) << first.status();
  {
    SCOPED_TRACE("gradient");
    bool compared = false;
    ExpectDifferences(**scalar, **first, c.values, wrt, &compared);
    result->gradients += compared;
  }
  SCOPED_TRACE("second gradient");
  const Var scalar_of_gradients = WeightedSum(tape, gradients, 100);
  const auto second = CompiledCase::Make(*tape, tape->Gradient(scalar_of_gradients, differentiated), c.inputs);
  if (!second.ok()) {
    result->second_missing = std::string(second.status().message());
    return;
  }
  const auto compiled = CompiledCase::Make(*tape, {scalar_of_gradients}, c.inputs);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  bool compared = false;
  ExpectDifferences(**compiled, **second, c.values, wrt, &compared);
  result->second_gradients += compared;
}

}  // namespace weft
