// The errors of functions that are composed of other ops: each names function, reason, types and scope.
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

struct Row {
  Var (*record)(Var x, Var ids);  // f32 [2,3,4], i32 [2,3]
  const char* error;
};

const Row kRows[] = {
    {[](Var x, Var) {
       return Sum(x, {0, 3});
     },
     "sum: axis 3 is outside rank 3; inputs f32[2,3,4]"},
    {[](Var x, Var) {
       return Sum(x, {1, -2});
     },
     "sum: axis -2 is named twice"},
    {[](Var x, Var) {
       return Mean(x, {0, -4});
     },
     "mean: axis -4 is outside rank 3"},
    {[](Var x, Var) {
       return Variance(x, {0, 0});
     },
     "variance: axis 0 is named twice"},
    {[](Var x, Var) {
       return Max(x, {2, 2});
     },
     "max: axis 2 is named twice"},
    {[](Var x, Var) { return Min(Slice(x, 0, 0, 0), {0}); }, "min: max: the axes have no elements; inputs f32[0,3,4]"},
    {[](Var x, Var) { return Prod(x, {5}); }, "prod: axis 5 is outside rank 3"},
    {[](Var x, Var) { return Norm(x, {0}, 0); }, "norm: order = 0, wanted > 0"},
    {[](Var x, Var) {
       return LogSumExp(x, {1, 1});
     },
     "log_sum_exp: axis 1 is named twice"},
    {[](Var x, Var) { return Squeeze(x, {1}); }, "squeeze: axis 1 has size 3"},
    {[](Var x, Var) { return Squeeze(x, {3}); }, "squeeze: axis 3 is outside rank 3"},
    {[](Var x, Var) {
       return Squeeze(Unsqueeze(x, 0), {0, -4});
     },
     "squeeze: axis -4 is named twice"},
    {[](Var x, Var) { return Unsqueeze(x, 4); }, "unsqueeze: axis 4 is outside rank 4"},
    {[](Var x, Var) { return Unsqueeze(x, -5); }, "unsqueeze: axis -5 is outside rank 4"},
    {[](Var x, Var) {
       return Stack({x, Slice(x, 0, 0, 1)}, 0);
     },
     "concat"},
    {[](Var x, Var) {
       return Permute(x, {0, 0, 1});
     },
     "permute"},
    {[](Var x, Var) {
       return Triu(Sum(x, {0, 1}));
     },
     "triu: x needs rank >= 2"},
    {[](Var x, Var) { return Pad(x, 0, -1, 0); }, "pad: can't pad by -1 and 0"},
    {[](Var x, Var) { return Pad(x, 0, int64_t{1} << 60, 0); }, "pad: can't pad by"},
    {[](Var x, Var) {
       return Reshape(x, {int64_t{1} << 40, int64_t{1} << 40});
     },
     "reshape"},
    {[](Var x, Var ids) { return x + ids; }, "add: dtypes differ"},
    {[](Var x, Var) { return Where(Equal(x, x), x, Sum(x, 2)); }, "where: the inputs don't broadcast"},
    {[](Var x, Var) { return And(x, x); }, "and: not defined for f32"},
    {[](Var x, Var) { return Less(Equal(x, x), Equal(x, x)); }, "less: not defined for bool"},
    {[](Var x, Var) { return TakeAlong(x, x, 0); }, "take_along: ids must be i32"},
    {[](Var x, Var ids) { return TakeAlong(x, ids, 0); }, "take_along: x and ids differ in rank"},
    {[](Var x, Var ids) { return TakeAlong(Slice(Sum(x, 2), 1, 0, 2), ids, 0); }, "ids have 3 along axis 1 of 2"},
    {[](Var x, Var ids) { return ScatterAdd(Sum(x, 2), ids, x, 0); }, "scatter_add: ids and updates differ in shape"},
    {[](Var x, Var ids) { return ScatterAdd(Sum(x, 2), ids, Sum(x, 2), 2); }, "scatter_add: axis 2 is outside rank 2"},
    {[](Var x, Var) { return BinaryCrossEntropy(x, Sum(x, 0)); }, "binary_cross_entropy: logits and targets must have"},
    {[](Var x, Var) { return MeanSquaredError(x, Sum(x, 0)); }, "mean_squared_error: the inputs must have one type"},
    {[](Var x, Var) { return KlDivergence(x, Cast(x, kF64)); }, "kl_divergence: log_q and p must have one type"},
    {[](Var x, Var ids) { return NegativeLogLikelihood(Sum(x, 0), ids); },
     "wanted log_p [..., V] and targets i32 [...]"},
    {[](Var x, Var ids) { return CrossEntropy(x, ids, {.weights = Sum(x, 0)}); },
     "cross_entropy: weights must be f32[4]"},
    {[](Var x, Var) { return CrossEntropy(x, Sum(x, 0)); }, "cross_entropy: soft targets must have the logits' type"},
    {[](Var x, Var) {
       return Unsqueeze(Reshape(x, {1, 1, 1, 2, 3, 4}), 0);
     },
     "reshape"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, x, x, {.heads = 0}); }, "heads = 0"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, x, x, {.window = -1}); }, "window = -1, wanted >= 0"},
    {[](Var x, Var) {
       return Stack({x, Var()}, 0);
     },
     "stack: input 1 is an empty Var"},
    {[](Var x, Var) { return Greater(x, Var()); }, "greater: input 1 is an empty Var"},
    {[](Var x, Var) { return Where(Equal(x, x), x, Var()); }, "where: input 2 is an empty Var"},
    {[](Var x, Var) {
       return GlobalNorm({x, Var()});
     },
     "global_norm: input 1 is an empty Var"},
    {[](Var x, Var) { return LionUpdate(x, x, x, Sum(x), Var(), {})[0]; }, "lion: input 4 is an empty Var"},
    {[](Var x, Var) { return ClipScale(x, 1); }, "clip_scale: the norm must be a scalar"},
    {[](Var x, Var) { return ClipScale(Sum(x), -1); }, "clip_scale: max_norm = -1, wanted >= 0"},
    {[](Var, Var ids) { return ClipScale(ids, 1); }, "clip_scale: not defined for i32"},
    {[](Var x, Var) { return Pad(x, -4, 0, 1); }, "pad: axis -4 is outside rank 3"},
    {[](Var x, Var) { return MuonUpdate(x, x, x, Sum(x), Sum(x), {})[0]; }, "muon: w must be a matrix"},
    {[](Var x, Var) { return MuonUpdate(x, x, x, Sum(x), Sum(x), {.momentum = 1})[0]; },
     "muon: momentum = 1, wanted in [0, 1)"},
    {[](Var x, Var) { return AdafactorUpdate(x, {x}, x, Sum(x), Sum(x), Cast(Sum(x), kI32), {})[0]; },
     "adafactor: the squares must have the types of AdafactorStates"},
    {[](Var x, Var) { return AdafactorUpdate(x, {x}, x, Sum(x), Sum(x), Cast(Sum(x), kI32), {.beta2_decay = -1})[0]; },
     "adafactor: beta2_decay = -1, wanted >= 0"},
    {[](Var, Var ids) { return LogSumExp(ids, 0); }, "log_sum_exp: not defined for i32"},
    {[](Var x, Var) { return CrossEntropy(x, Var()); }, "cross_entropy: input 1 is an empty Var"},
    {[](Var x, Var) { return Embedding(Sum(x, 0), Var()); }, "embedding: input 1 is an empty Var"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, x, Var(), {}); }, "attention: input 2 is an empty Var"},
    {[](Var x, Var) { return Split(x, 1, std::numeric_limits<int>::max())[0]; }, "split: axis 1 does not fall into"},
    {[](Var x, Var) {
       return Reshape(x, {1, 1, 1, 1, 2, 3, 4});
     },
     "can't be seen as [more than 6 axes]"},
    {[](Var x, Var) {
       return Permute(x, {0, 1, -5});
     },
     "permute: axis -5 is outside rank 3"},
    {[](Var x, Var) { return Variance(x, {0}, std::numeric_limits<double>::quiet_NaN()); },
     "variance: correction = nan, wanted >= 0, finite"},
    {[](Var, Var ids) { return ids + 0.5; }, "fill: the number 0.5 is not an i32"},
    {[](Var, Var ids) { return MaskFill(ids, Less(ids, ids), 1e20); }, "mask_fill: the number 1e+20 is not an i32"},
    {[](Var x, Var) { return Not(x); }, "not: not defined for f32"},
    {[](Var x, Var ids) { return Xor(Less(x, x), ids); }, "xor: not defined for i32"},
    {[](Var, Var ids) { return Pow(ids, -1); }, "pow: not defined for i32"},
    {[](Var x, Var) { return Rotary(x, x, x, RotaryLayout::kHalves); },
     "rotary: cosine and sine must broadcast to [2,3,2]"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, x, x, {.heads = 3}); },
     "f32[2,3,4] does not fall into 3 heads"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, Slice(x, 2, 0, 2), Slice(x, 2, 0, 2), {.heads = 2}); },
     "attention: heads of queries and keys differ in width"},
    {[](Var x, Var) { return ScaledDotProductAttention(x, x, x, {.heads = 2, .key_value_heads = -2}); },
     "heads = 2, key_value_heads = -2, wanted"},
    {[](Var x, Var) { return Gather(x, x, 0); }, "gather: ids must be i32"},
    {[](Var x, Var ids) { return Gather(Slice(x, 0, 0, 0), ids, 0); },
     "gather: axis 0 has size 0, so that no id is valid"},
    {[](Var x, Var ids) { return ScatterAdd(Sum(x, 2), ids, Cast(Sum(x, 2), kF64), 0); },
     "scatter_add: x and updates must be both f32"},
    {[](Var x, Var ids) { return NegativeLogLikelihood(x, ids, {.label_smoothing = 0.1}); },
     "negative_log_likelihood: label_smoothing must be 0; only cross_entropy has it"},
    {[](Var x, Var) { return Neg(Equal(x, x)); }, "neg: scale: not defined for bool"},
    {[](Var x, Var) { return CrossEntropy(x, x, {.label_smoothing = 2}); }, "label_smoothing = 2, wanted in [0, 1]"},
};

TEST(OpErrorsTest, SayWhatWasGotAndWantedAndWhere) {
  for (const Row& row : kRows) {
    Tape tape;
    const Scope scope(&tape, "here");
    const Var x = tape.Input("x", {kF32, {2, 3, 4}}), ids = tape.Input("ids", {kI32, {2, 3}}, {.below = 4});
    const Var result = row.record(x, ids);
    EXPECT_THAT(std::string(tape.status().message()), HasSubstr(row.error));
    EXPECT_TRUE(result.id != x.id && result.id != ids.id) << "an input is returned instead of a poisoned value";
    EXPECT_THAT(std::string(tape.status().message()), HasSubstr("; at here"));
    EXPECT_EQ(tape.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// After an error, recording continues, and the tape keeps the first error.
TEST(OpErrorsTest, TheFirstErrorStays) {
  for (const Row& row : kRows) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {2, 3, 4}}), ids = tape.Input("ids", {kI32, {2, 3}}, {.below = 4});
    tape.Fail(absl::InvalidArgumentError("the first"));
    const Var result = row.record(x, ids);
    EXPECT_THAT(std::string(tape.status().message()), HasSubstr("the first"));
    EXPECT_TRUE(result.id != x.id && result.id != ids.id) << row.error;
  }
}

TEST(OpErrorsDeathTest, NamesADropoutOfAnEmptyVar) {
  EXPECT_DEATH(Dropout(Var(), 0.1), "dropout: input 0 is an empty Var");
}

}  // namespace
}  // namespace weft
