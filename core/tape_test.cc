#include "weft/core/tape.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Types> InferSum(const Attrs&, TypeSpan in) {
  if (in.size() != 2 || in[0] != in[1]) return ShapeError("plus", "the types differ", in);
  return Types{in[0]};
}
void NoKernel(const KernelArgs&, Rect) {}
constexpr OpDef kPlus = {.name = "plus", .infer = InferSum, .kernels = {NoKernel}};
constexpr OpDef kOverwrite = {.name = "overwrite", .infer = InferSum, .kernels = {NoKernel}, .writes = 1};

absl::StatusOr<Types> InferHuge(const Attrs&, TypeSpan) {
  return Types{TensorType{kF32, {int64_t{1} << 40, int64_t{1} << 40}}};
}
constexpr OpDef kHuge = {.name = "huge", .infer = InferHuge, .kernels = {NoKernel}};

std::string Message(const Tape& tape) { return std::string(tape.status().message()); }

TEST(TapeTest, RecordsInOrder) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}}), y = tape.Parameter("y", {kF32, {2}}, Ones());
  const Var z = Record(kPlus, {x, y});
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(z.type(), (TensorType{kF32, {2}}));
  const Program& program = tape.program();
  ASSERT_EQ(program.nodes.size(), 3);
  EXPECT_EQ(program.producer(z.id).op, &kPlus);
  EXPECT_EQ(program.producer(z.id).inputs[1], y.id);
  EXPECT_EQ(tape.ParameterName(y), "y");
  EXPECT_EQ(tape.Weights().size(), 1);
}

TEST(TapeTest, FirstErrorStays) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}}), y = tape.Input("y", {kF32, {3}});
  {
    Scope outer(&tape, "gpt");
    Scope inner(&tape, "mlp");
    const Var bad = Record(kPlus, {x, y});
    EXPECT_EQ(bad.type().shape.rank(), Shape::kMaxRank);  // so that later code may ask for its axes
    Record(kPlus, {bad, x});
  }
  EXPECT_EQ(Message(tape), "plus: the types differ; inputs f32[2], f32[3]; at gpt/mlp");
  EXPECT_EQ(tape.status().code(), absl::StatusCode::kInvalidArgument);
  const size_t nodes = tape.program().nodes.size();
  tape.Input("x", {kF32, {2}});
  Record(kPlus, {x, x});
  EXPECT_EQ(tape.Gradient(x, {x}).size(), 1);
  EXPECT_EQ(tape.program().nodes.size(), nodes);
  EXPECT_EQ(Message(tape), "plus: the types differ; inputs f32[2], f32[3]; at gpt/mlp");
}

TEST(TapeTest, ScopesNameParameters) {
  Tape tape;
  Var inner, shared, state;
  {
    Scope h(&tape, "h.0");
    Scope quiet(&tape, "attention", Scope::kNoNames);
    {
      Scope mlp(&tape, "mlp");
      inner = tape.Parameter("weight", {kF32, {2}}, Ones());
      state = tape.State("adamw.step", {kI32, {}}, Zeros());
    }
    shared = tape.Parameter("bias", {kF32, {2}}, Ones());
  }
  EXPECT_EQ(tape.ParameterName(inner), "h.0.mlp.weight");
  EXPECT_EQ(tape.ParameterName(shared), "h.0.bias");
  EXPECT_EQ(tape.ParameterName(state), "adamw.step");
  EXPECT_EQ(tape.program().scope(tape.program().producer(inner.id)), "h.0/attention/mlp");
  EXPECT_EQ(tape.Weights().size(), 2);  // a state is not a weight
}

TEST(TapeTest, NamesAreUsedOnce) {
  Tape tape;
  tape.Parameter("w", {kF32, {2}}, Ones());
  tape.Input("w", {kF32, {2}});  // an input and a parameter may have the same name
  ASSERT_TRUE(tape.status().ok());
  tape.State("w", {kF32, {2}}, Zeros());
  EXPECT_THAT(Message(tape), HasSubstr("parameter 'w' f32[2]: another parameter of this tape has this name"));

  Tape inputs;
  inputs.Input("x", {kF32, {2}});
  inputs.Input("x", {kF32, {3}});
  EXPECT_THAT(Message(inputs), HasSubstr("input 'x' f32[3]: another input has this name"));
}

TEST(TapeTest, LayersShareParameters) {
  Tape tape;
  const TensorType type = {kF32, {2, 3}};
  const auto weight = [&](const char* layer, const TensorType& of) {
    const Scope scope(&tape, layer);
    return tape.Parameter("fc.weight", of, Zeros());
  };
  const Var first = weight("h.0", type);
  tape.ShareParameters("h.1", "h.0");
  EXPECT_EQ(weight("h.1", type).id, first.id);
  EXPECT_NE(weight("h.10", type).id, first.id);
  EXPECT_EQ(tape.Weights().size(), 2u);
  weight("h.1", {kF32, {3, 2}});
  EXPECT_EQ(tape.status().message(), "parameter 'h.1.fc.weight' f32[3,2] can't be 'h.0.fc.weight' f32[2,3]; at h.1");
}

TEST(TapeTest, SharedParametersWereRecordedBefore) {
  Tape tape;
  tape.ShareParameters("h.1", "h.0");
  const Scope scope(&tape, "h.1");
  tape.Parameter("weight", {kF32, {2}}, Zeros());
  EXPECT_EQ(tape.status().message(), "no parameter 'h.0.weight' was recorded before; at h.1");
}

TEST(TapeTest, RefusesWhatIsNoShape) {
  Tape tape;
  tape.Input("x", {kF32, {2, -3}});
  EXPECT_THAT(Message(tape), HasSubstr("input 'x' f32[2,-3]: not a shape"));
  Tape large;
  Record(kHuge, {large.Input("x", {kF32, {}})});
  EXPECT_THAT(Message(large), HasSubstr("huge: the result"));
}

TEST(TapeTest, RefusesVarsOfOtherTapes) {
  Tape tape, other;
  const Var x = tape.Input("x", {kF32, {2}}), y = other.Input("y", {kF32, {2}});
  Record(kPlus, {x, y});
  EXPECT_EQ(Message(tape), "plus: input 1 is from another tape");
  EXPECT_TRUE(other.status().ok());

  Tape empty;
  Record(kPlus, {empty.Input("x", {kF32, {2}}), Var{}});
  EXPECT_EQ(Message(empty), "plus: input 1 is an empty Var");
}

TEST(TapeDeathTest, NamesAnOpOfEmptyVars) {
  EXPECT_DEATH(Record(kPlus, {Var{}, Var{}}), "plus: all inputs are empty Vars");
}

TEST(TapeDeathTest, NamesACompositeWithoutAFirstInput) {
  EXPECT_DEATH(Composite("twice", {Var{}}, []() -> absl::StatusOr<Var> { return Var{}; }),
               "twice: input 0 is an empty Var");
  EXPECT_DEATH(CompositeAll("halves", {}, 2, []() -> absl::StatusOr<VarList> { return VarList(2); }),
               "halves: input 0 is an empty Var");
}

TEST(TapeTest, RefusesDtypesWithoutKernel) {
  Tape tape;
  const Var x = tape.Input("x", {kI32, {2}});
  Record(kPlus, {x, x});
  EXPECT_EQ(Message(tape), "plus: not defined for i32; inputs i32[2], i32[2]");
}

TEST(TapeTest, AVersionCanBeWrittenAgain) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF32, {2}}, Ones()), x = tape.Input("x", {kF32, {2}});
  const Var next = Record(kOverwrite, {w, x});
  Record(kOverwrite, {next, x});
  Record(kOverwrite, {w, x});  // in another graph than the first; graph/compile/passes/writes.cc checks this
  EXPECT_TRUE(tape.status().ok()) << tape.status();
}

TEST(TapeTest, OnlyStateIsWritten) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  Record(kOverwrite, {x, x});
  EXPECT_THAT(Message(tape), HasSubstr("overwrite: input 0 f32[2] is to be written, but is no parameter or state"));
}

TEST(TapeTest, GradientsAreOfFloatScalarsByFloats) {
  Tape good;
  const Var loss = good.Input("loss", {kF32, {}}), by = good.Parameter("w", {kF64, {2}}, Ones());
  const VarList gradients = good.Gradient(loss, {by, loss});
  ASSERT_TRUE(good.status().ok()) << good.status();
  ASSERT_EQ(gradients.size(), 2);
  EXPECT_EQ(gradients[0].type(), by.type());
  EXPECT_TRUE(good.Gradient(loss, {}).empty());

  Tape vector;
  vector.Gradient(vector.Input("x", {kF32, {2}}), {vector.Input("y", {kF32, {}})});
  EXPECT_THAT(Message(vector), HasSubstr("the loss must be a float scalar, not f32[2]"));
  Tape integer;
  integer.Gradient(integer.Input("x", {kF32, {}}), {integer.Input("y", {kI32, {}})});
  EXPECT_THAT(Message(integer), HasSubstr("by i32[], which is not of floats"));
}

TEST(TapeTest, ConstantsAreCopied) {
  Tape tape;
  float value = 3;
  const Var c = tape.Constant({{kF32, {}}, reinterpret_cast<std::byte*>(&value)});
  value = 4;
  const ConstantData& data = tape.program().constants[tape.program().producer(c.id).attrs.as<SourceAttrs>().index];
  EXPECT_EQ(*reinterpret_cast<const float*>(data.bytes->data()), 3);
}

TEST(TapeTest, StreamsAndIdsDiffer) {
  Tape a, b;
  EXPECT_NE(a.id(), b.id());
  const uint32_t first = a.NextStream();
  EXPECT_NE(first, a.NextStream());
}

}  // namespace
}  // namespace weft
