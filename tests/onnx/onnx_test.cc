// Runs ONNX's own node cases (onnx==1.22.0). Every case that Weft's types can hold is recorded through tables.h,
// compiled, run on two threads and compared with the tolerances of ONNX's runner.
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/cases/case_file.h"
#include "weft/tests/onnx/tables.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
constexpr int kPassed = 616, kSkipped = 91;  // 707 cases in all

std::map<std::string, CaseOp> Table() {
  std::map<std::string, CaseOp> table;
  for (const auto& ops :
       {OnnxElementwise(), OnnxShapes(), OnnxReductions(), OnnxNetworks(), OnnxAttention(), OnnxTraining()}) {
    for (const CaseOp& op : ops) table.emplace(op.name, op);
  }
  return table;
}

// Returns the failure of the case, or Unimplemented if it cannot be run.
absl::Status CheckCase(const CaseFile& file, const Case& onnx, const CaseOp& op) {
  Tape tape;
  const CaseInputs inputs = RecordInputs(&tape, onnx);
  const absl::StatusOr<VarList> outputs = op.build(CaseNode(file, onnx, &tape, inputs.vars));
  if (!outputs.ok()) return outputs.status();
  if (outputs->size() != onnx.outputs.size()) return absl::InternalError("the number of outputs differs");
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {outputs->begin(), outputs->end()}});
  if (!graph.ok()) return absl::InternalError(graph.status().message());
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters, {.threads = 2});
  const absl::StatusOr<Outputs> run = runner.Run(inputs.feeds);
  if (!run.ok()) return absl::InternalError(run.status().message());
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (!onnx.outputs[i]) continue;
    const std::string difference = Difference((*run)[(*outputs)[i]], *onnx.outputs[i], kRelative, kAbsolute);
    if (!difference.empty()) return absl::InternalError(absl::StrCat("output ", i, ": ", difference));
  }
  return absl::OkStatus();
}

TEST(OnnxTest, NodeCases) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/onnx/cases.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::map<std::string, CaseOp> table = Table();
  int passed = 0, skipped = 0, failed = 0;
  for (const Case& onnx : file->cases()) {
    const auto op = table.find(onnx.op);
    std::string skip = onnx.skip.empty() && op == table.end() ? "outside Weft's field" : onnx.skip;
    absl::Status status;
    if (skip.empty()) status = CheckCase(*file, onnx, op->second);
    if (absl::IsUnimplemented(status)) skip = std::string(status.message());
    if (!skip.empty()) {
      ++skipped;
      std::printf("skipped %s: %s\n", onnx.name.c_str(), skip.c_str());
    } else if (status.ok()) {
      ++passed;
    } else {
      ++failed;
      ADD_FAILURE() << onnx.name << ": " << status.message();
    }
  }
  EXPECT_EQ(passed, kPassed);
  EXPECT_EQ(skipped, kSkipped);
  std::printf("%d passed, %d skipped, %d failed\n", passed, skipped, failed);
}

}  // namespace
}  // namespace weft
