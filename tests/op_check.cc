#include "weft/tests/op_check.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

bool HasGradient(const OpDef& op) { return op.gradient != nullptr || op.elementary != nullptr; }

void CheckDefinition(const OpDef& op) {
  const auto examples = op.examples;
  const auto is_error = [](const OpExample& e) { return e.error != nullptr; };
  EXPECT_TRUE(std::any_of(examples.begin(), examples.end(), is_error)) << op.name << " has no error row";
  EXPECT_FALSE(std::all_of(examples.begin(), examples.end(), is_error)) << op.name << " has no examples";
  EXPECT_TRUE(op.elementary != nullptr || op.reference != nullptr || op.view)
      << op.name << " has neither elementary spelling nor reference";
  EXPECT_TRUE(HasGradient(op) || op.no_gradient != nullptr || op.writes > 0)
      << op.name << " has neither gradient, nor elementary spelling, nor the reason why there is none";
}

void CheckErrorRow(const OpDef& op, const OpExample& example) {
  const absl::StatusOr<OpCase> c = MakeCase(op, example, kF32);
  ASSERT_TRUE(c.ok()) << c.status();
  const std::string message(c->tape->status().message());
  EXPECT_EQ(c->tape->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr(example.error));
  // The error may name the function that records the op: "sum: axis 2 is outside rank 2".
  if (!absl::StrContains(example.error, ": ")) {
    EXPECT_THAT(message, StartsWith(absl::StrCat(op.name, ": ")));
  }
}

void CheckAttrs(const NodeCase& node) {
  const AttrOps& ops = node.op->attrs;
  if (ops.equal == nullptr) return;
  const Attrs copy = node.attrs;
  EXPECT_TRUE(ops.equal(node.attrs, copy)) << "attributes differ from their copy";
  EXPECT_EQ(ops.hash(node.attrs), ops.hash(copy));
}

// Returns `twin`, the same node in f64, with the input values of `node`. The elementary spelling is computed on it.
NodeCase WithValues(NodeCase twin, const NodeCase& node) {
  for (size_t i = 0; i < twin.inputs.size(); ++i) {
    for (int64_t j = 0; j < twin.inputs[i].elements(); ++j) twin.inputs[i].Set(j, node.inputs[i].Get(j));
  }
  return twin;
}

void CheckExample(const OpDef& op, const OpExample& example, DType dtype) {
  const absl::StatusOr<OpCase> c = MakeCase(op, example, dtype);
  ASSERT_TRUE(c.ok()) << c.status();
  ASSERT_TRUE(c->tape->status().ok()) << c->tape->status();
  const absl::StatusOr<NodeCase> node = FindNode(op, *c);
  ASSERT_TRUE(node.ok()) << node.status();
  if (example.out != nullptr) {
    absl::StatusOr<Types> out = ParseTypes(example.out, dtype);
    ASSERT_TRUE(out.ok() && out->size() == 1) << "'" << example.out << "' is no type";
    if (dtype == kBF16) out->front().dtype = c->outputs[0].dtype();  // sums of bf16 are f32
    EXPECT_EQ(ToString(c->outputs[0].type()), ToString(out->front()));
  }
  CheckAttrs(*node);
  NodeCase twin = *node;
  if (op.elementary != nullptr) {
    const absl::StatusOr<OpCase> exact = MakeTwin(op, example);
    ASSERT_TRUE(exact.ok() && exact->tape->status().ok()) << "not defined in f64, which proves it";
    const absl::StatusOr<NodeCase> found = FindNode(op, *exact);
    ASSERT_TRUE(found.ok()) << found.status();
    twin = WithValues(*found, *node);
  }
  CheckValues(example, *node, twin);
  CheckTiles(*node);
  CheckInPlace(*node);
  CheckConcurrentTiles(*node);
  CheckThreads(*c);
}

}  // namespace

OpCheckResult CheckOp(const OpDef& op) {
  OpCheckResult result;
  CheckDefinition(op);
  for (size_t i = 0; i < op.examples.size(); ++i) {
    const OpExample& example = op.examples[i];
    SCOPED_TRACE(absl::StrCat(op.name, ", example ", i, ": ", example.in));
    if (example.error != nullptr) {
      CheckErrorRow(op, example);
      continue;
    }
    if (HasFreeDType(example)) {
      SCOPED_TRACE("f32");
      CheckExample(op, example, kF32);
    }
    // An example in which some inputs are bf16 and others f32, such as the gain of a norm, states all dtypes.
    const bool in_bf16 = op.kernels[static_cast<int>(kBF16)] != nullptr && HasFreeDType(example);
    if (const auto c = MakeCase(op, example, kBF16);
        in_bf16 && c.ok() && c->tape->status().ok() && FindNode(op, *c).ok()) {
      SCOPED_TRACE("bf16");
      CheckExample(op, example, kBF16);
      ++result.bf16;
    }
    result.bf16 += absl::StrContains(example.in, "bf16");
    SCOPED_TRACE("f64");
    CheckExample(op, example, kF64);
    if (HasGradient(op) || op.no_gradient != nullptr || op.writes > 0) CheckOpGradients(op, example, &result);
  }
  EXPECT_TRUE(op.kernels[static_cast<int>(kBF16)] == nullptr || result.bf16 > 0) << op.name << " has no row in bf16";
  return result;
}

}  // namespace weft
