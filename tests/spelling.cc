#include "weft/tests/spelling.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_case.h"

namespace weft {

SpellingResult RunSpelling(const Spelling& spelling, DType dtype) {
  SpellingResult result;
  const absl::StatusOr<Types> types = ParseTypes(spelling.types, dtype);
  EXPECT_TRUE(types.ok()) << types.status();
  if (!types.ok()) return result;
  Tape tape;
  const VarList inputs = RecordInputs(&tape, *types, /*states=*/0, spelling.below);
  std::vector<Buffer> values;
  VarList wrt;
  for (size_t i = 0; i < types->size(); ++i) {
    values.push_back(RandomBuffer((*types)[i], i + 1, spelling.low, spelling.high, spelling.below));
    if (IsFloat((*types)[i].dtype)) wrt.push_back(inputs[i]);
  }
  VarList fetch = spelling.record(inputs);
  Var loss;
  for (size_t i = 0; i < fetch.size(); ++i) {
    const Buffer weights = RandomBuffer(fetch[i].type(), 100 + i, -1.5, 1.5);
    const Var term = Sum(fetch[i] * tape.Constant(weights.tensor()));
    loss = loss ? loss + term : term;
  }
  for (const Var gradient : Gradient(loss, wrt)) fetch.push_back(gradient);

  std::vector<std::vector<Buffer>> outputs;
  for (const bool raise : {true, false}) {
    const auto compiled = CompiledCase::Make(tape, fetch, inputs, /*threads=*/1, raise);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return result;
    const absl::StatusOr<std::vector<Buffer>> run = (*compiled)->Run(values);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return result;
    outputs.push_back(*run);
    if (!raise) break;
    for (const Node& node : (*compiled)->graph().program().nodes) result.ops.push_back(node.op->name);
    for (const Explanation& e : (*compiled)->graph().compiled().explanations) {
      if (e.declined.empty()) {
        ++result.raised;
      } else {
        result.declined.push_back(e.declined);
      }
    }
  }
  for (size_t k = 0; k < fetch.size(); ++k) {
    for (int64_t i = 0; i < outputs[0][k].elements(); ++i) {
      const double raised = outputs[0][k].Get(i), spelt = outputs[1][k].Get(i);
      const bool same = raised == spelt || (std::isnan(raised) && std::isnan(spelt));
      if (!same) result.difference = std::max(result.difference, std::abs(raised - spelt) / (1 + std::abs(spelt)));
      if (std::isnan(raised) != std::isnan(spelt)) ADD_FAILURE() << "value " << k << ": NaN in one of the two";
    }
  }
  return result;
}

}  // namespace weft
