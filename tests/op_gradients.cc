// This function of CheckOp compares gradients with central differences.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/run/check_gradients.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_check.h"

namespace weft {
namespace {

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

// Compares output k of `gradient` with central differences of `scalar` with respect to inputs[wrt[k]]. Adds the
// number of elements compared to `compared`.
void ExpectDifferences(CompiledCase& scalar, CompiledCase& gradient, const std::vector<Buffer>& inputs,
                       const std::vector<int>& wrt, int64_t* compared) {
  const auto got = gradient.Run(inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<Buffer> moved = inputs;
  const auto value = [&]() -> absl::StatusOr<double> {
    const auto outputs = scalar.Run(moved);
    if (!outputs.ok()) return outputs.status();
    return outputs->front().Get(0);
  };
  for (size_t k = 0; k < wrt.size(); ++k) {
    const auto count = CompareWithDifferences(value, moved[wrt[k]].tensor(), (*got)[k].tensor(), {});
    ASSERT_TRUE(count.ok()) << "the gradient by input " << wrt[k] << ": " << count.status();
    *compared += *count;
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

void CheckOpGradients(const OpDef& op, const OpExample& example, OpCheckResult* result) {
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
    int64_t compared = 0;
    ExpectDifferences(**scalar, **first, c.values, wrt, &compared);
    result->gradients += compared > 0;
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
  int64_t compared = 0;
  ExpectDifferences(**compiled, **second, c.values, wrt, &compared);
  result->second_gradients += compared > 0;
}

}  // namespace weft
