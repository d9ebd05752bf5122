// Compares ops and their gradients with PyTorch's, in f64, on the cases of tests/pytorch/draw.py.
#include <cmath>
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/pytorch/ops.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-9, kAbsolute = 1e-11;
// Rates and scales of updates are f32.
constexpr double kUpdateRelative = 1e-6;

Var Weights(Tape* tape, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1 + 0.61 * static_cast<double>(i));
  return tape->Constant({{kF64, shape}, reinterpret_cast<std::byte*>(values.data())});
}

absl::Status CheckCase(const CaseFile& file, const Case& of, const CaseOp& op) {
  Tape tape;
  const CaseInputs inputs = RecordInputs(&tape, of);
  absl::StatusOr<VarList> outputs = op.build(CaseNode(file, of, &tape, inputs.vars));
  if (!outputs.ok()) return outputs.status();
  const bool updates = of.attributes.contains("no_gradient");
  if (!updates) {
    VarList wrt;
    for (Var x : inputs.vars) {
      if (IsFloat(x.dtype())) wrt.push_back(x);
    }
    const Var y = outputs->front();
    const VarList gradients = Gradient(Sum(y * Weights(&tape, y.shape())), wrt);
    outputs->insert(outputs->end(), gradients.begin(), gradients.end());
  }
  if (outputs->size() != of.outputs.size()) return absl::InternalError("the number of outputs differs");
  // Class weights are constants in PyTorch.
  if (of.attributes.contains("no_weight_gradient") && outputs->size() == 3) outputs->pop_back();
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {outputs->begin(), outputs->end()}});
  if (!graph.ok()) return graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters, {.threads = 2});
  const absl::StatusOr<Outputs> run = runner.Run(inputs.feeds);
  if (!run.ok()) return run.status();
  for (size_t i = 0; i < outputs->size(); ++i) {
    const std::string difference =
        Difference((*run)[(*outputs)[i]], *of.outputs[i], updates ? kUpdateRelative : kRelative, kAbsolute);
    if (!difference.empty()) return absl::InternalError(absl::StrCat("output ", i, ": ", difference));
  }
  return absl::OkStatus();
}

TEST(PytorchOpsTest, ValuesAndGradients) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/pytorch/cases.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  std::map<std::string, CaseOp> table;
  for (const CaseOp& op : PytorchOps()) table.emplace(op.name, op);
  size_t passed = 0, cases = 0;
  for (const Case& of : file->cases()) {
    if (of.op == kModelCase) continue;
    ++cases;
    const auto op = table.find(of.op);
    ASSERT_TRUE(op != table.end()) << of.op;
    const absl::Status status = CheckCase(*file, of, op->second);
    EXPECT_TRUE(status.ok()) << of.name << ": " << status.message();
    passed += status.ok();
  }
  EXPECT_GE(cases, 300u);
  std::printf("%zu of %zu cases passed\n", passed, cases);
}

}  // namespace
}  // namespace weft
