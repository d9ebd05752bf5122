// Records softmax(q kᵀ) v in the spellings that people use. Either the compiler raises a spelling to the op
// `attention`, which must give the values and gradients of the elementary ops; or it leaves the spelling alone and says
// why.
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/program.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 2, kHeads = 4, kTargets = 7, kSources = 7, kWidth = 6;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Spelt {
  Var y, weights;  // another reader of the weights keeps the spelling elementary
};
struct Spelling {
  const char* name;
  std::function<Spelt(Tape*)> record;
  const char* declined = nullptr;  // part of the reason that the compiler gives; null if it raises the spelling
};

TensorType Floats(const Shape& shape) { return {kF64, shape}; }
Var Parameter(Tape* tape, const char* name, const Shape& shape) {
  return tape->Parameter(name, Floats(shape), Gaussian(1));
}
Var ByHead(Var x, int64_t heads) {
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Var MergeHeads(Var y) { return Reshape(Permute(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)}); }
Var Scaled(Var x) { return Scale(x, 1 / std::sqrt(static_cast<double>(kWidth))); }
Var PaddingOf(Tape* tape) { return tape->Input("padding", {kBool, {kBatch, 1, 1, kSources}}); }

struct Operands {
  Var q, k, v;  // [B, H, T, D]
};
Operands Separate(Tape* tape) {
  const auto operand = [&](const char* name, int64_t n) {
    return ByHead(Parameter(tape, name, {kBatch, n, kHeads * kWidth}), kHeads);
  };
  return {operand("q", kTargets), operand("k", kSources), operand("v", kSources)};
}

// Returns softmax(`scores`(q, k)) v.
Spelt Apply(const Operands& o, Var scores) {
  const Var weights = Softmax(scores);
  return {MergeHeads(MatMul(weights, o.v)), weights};
}
Var Product(const Operands& o) { return MatMul(o.q, o.k, {.transpose_b = true}); }

Spelt Grouped(Tape* tape) {
  constexpr int64_t kGroups = 2;
  const Var q = ByHead(Parameter(tape, "q", {kBatch, kTargets, kHeads * kWidth}), kHeads);
  const Var k = ByHead(Parameter(tape, "k", {kBatch, kSources, kGroups * kWidth}), kGroups);
  const Var v = ByHead(Parameter(tape, "v", {kBatch, kSources, kGroups * kWidth}), kGroups);
  const Shape together = {kBatch, kGroups, kHeads / kGroups * kTargets, kWidth};
  Var scores = MatMul(Reshape(q, together), k, {.transpose_b = true});
  scores = CausalMask(Scaled(Reshape(scores, {kBatch, kHeads, kTargets, kSources})), kHidden);
  const Var weights = Dropout(Softmax(scores), 0.25);
  const Var y = MatMul(Reshape(weights, {kBatch, kGroups, kHeads / kGroups * kTargets, kSources}), v);
  return {MergeHeads(Reshape(y, {kBatch, kHeads, kTargets, kWidth})), weights};
}

Spelt Packed(Tape* tape, bool split) {
  const Var x = Parameter(tape, "x", {kBatch, kTargets, 5});
  const Var all = MatMul(x, Parameter(tape, "w", {5, 3 * kHeads * kWidth}));
  constexpr int64_t kColumns = kHeads * kWidth;
  const VarList parts = split ? Split(all, -1, 3)
                              : VarList{Slice(all, -1, 0, kColumns), Slice(all, -1, kColumns, 2 * kColumns),
                                        Slice(all, -1, 2 * kColumns, 3 * kColumns)};
  const Operands o = {ByHead(parts[0], kHeads), ByHead(parts[1], kHeads), ByHead(parts[2], kHeads)};
  return Apply(o, CausalMask(Scaled(Product(o)), kHidden));
}

std::vector<Spelling> Spellings() {
  const auto separate = [](const char* name, auto scores, const char* declined = nullptr) {
    return Spelling{name,
                    [scores](Tape* tape) {
                      const Operands o = Separate(tape);
                      return Apply(o, scores(tape, o));
                    },
                    declined};
  };
  return {
      separate("plain", [](Tape*, const Operands& o) { return Product(o); }),
      separate("scores multiplied", [](Tape*, const Operands& o) { return CausalMask(Product(o) * 0.4, kHidden); }),
      separate("scores multiplied from the left",
               [](Tape* tape, const Operands& o) { return Mul(Fill(tape, Floats({}), 0.4), Product(o)); }),
      separate("scores divided", [](Tape*, const Operands& o) { return CausalMask(Product(o) / 2.5, kHidden); }),
      separate("scaled after the mask", [](Tape*, const Operands& o) { return CausalMask(Product(o), kHidden) * 0.4; }),
      separate("queries scaled",
               [](Tape*, const Operands& o) {
                 return Product({o.q * 0.4, o.k, o.v});
               }),
      separate("queries and keys divided",
               [](Tape*, const Operands& o) {
                 return Product({o.q / 2, o.k / 3, o.v});
               }),
      separate("keys transposed", [](Tape*, const Operands& o) { return MatMul(o.q, Transpose(o.k, -1, -2)) * 0.4; }),
      separate("keys padded",
               [](Tape* tape, const Operands& o) { return MaskFill(Scaled(Product(o)), PaddingOf(tape), kHidden); }),
      separate("a window", [](Tape*, const Operands& o) { return BandMask(Scaled(Product(o)), 2, 1, kHidden); }),
      separate("two bands",
               [](Tape*, const Operands& o) {
                 return CausalMask(Scaled(BandMask(BandMask(Product(o), 2, -1, kHidden), 3, 4, kHidden)), kHidden);
               }),
      separate("padded and causal",
               [](Tape* tape, const Operands& o) {
                 return MaskFill(CausalMask(Scaled(Product(o)), kHidden), PaddingOf(tape), kHidden);
               }),
      separate("a bias of the scores",
               [](Tape* tape, const Operands& o) {
                 return Scaled(Product(o)) + Parameter(tape, "bias", {kHeads, kTargets, kSources});
               }),
      separate("a bias in front, scaled along",
               [](Tape* tape, const Operands& o) {
                 return CausalMask((Parameter(tape, "bias", {kTargets, kSources}) + Product(o)) * 0.3, kHidden);
               }),
      separate("a bias beneath a bias",
               [](Tape* tape, const Operands& o) {
                 return Add(Add(Product(o), Parameter(tape, "near", {kTargets, kSources})),
                            Parameter(tape, "far", {kHeads, kTargets, kSources}));
               }),
      {"grouped heads and dropout", Grouped},
      {"split of one product", [](Tape* tape) { return Packed(tape, true); }},
      {"slices of one product", [](Tape* tape) { return Packed(tape, false); }},
      {"one head",
       [](Tape* tape) {
         const Var q = Parameter(tape, "q", {kBatch, kTargets, kWidth}), k = Parameter(tape, "k", q.shape()),
                   v = Parameter(tape, "v", q.shape());
         const Var weights = Softmax(CausalMask(MatMul(q, k, {.transpose_b = true}), kHidden));
         return Spelt{MatMul(weights, v), weights};
       }},
      {"a memory for each head",
       [](Tape* tape) {
         const Var q = Parameter(tape, "q", {2, 2, kTargets, kWidth}), k = Parameter(tape, "k", {2, kSources, kWidth}),
                   v = Parameter(tape, "v", {2, kSources, kWidth});
         const Var weights = Softmax(MatMul(q, k, {.transpose_b = true}));
         return Spelt{MatMul(weights, v), weights};
       },
       "broadcast against one another"},
      separate(
          "hidden by a finite number", [](Tape*, const Operands& o) { return CausalMask(Product(o), -1e9); },
          "hidden scores are -1e+09"),
      separate(
          "scores of a network", [](Tape*, const Operands& o) { return Sigmoid(Product(o)); },
          "the scores are not a product, but sigmoid"),
      separate("capped",
               [](Tape* tape, const Operands& o) {
                 return MaskFill(CausalMask(Tanh(Scaled(Product(o)) / 1.5) * 1.5, kHidden), PaddingOf(tape), kHidden);
               }),
      separate("capped and cooled", [](Tape*, const Operands& o) { return Tanh(Product(o) * 0.3) * 2 * 0.5; }),
      separate(
          "masked before the cap",
          [](Tape* tape, const Operands& o) {
            return Tanh(Product(o) + Parameter(tape, "bias", {kTargets, kSources}));
          },
          "not a product where they are capped, but add"),
      separate(
          "scaled by a value",
          [](Tape* tape, const Operands& o) { return Product(o) * Parameter(tape, "temperature", {}); },
          "the scores are not a product, but mul"),
      separate(
          "turned round by the scale", [](Tape*, const Operands& o) { return CausalMask(Product(o), kHidden) * -1; },
          "not positive"),
  };
}

class RaiseAttentionTest : public ::testing::TestWithParam<Spelling> {};

struct Result {
  std::vector<std::vector<double>> values;
  std::vector<std::string> ops, declined;
};

// kReadWeights: a sum of the weights is fetched, too, which keeps the ops elementary. kFetchWeights: the weights are.
// kFetchElementary: they are, and no pattern is raised.
enum Kind : uint8_t { kRaised, kReadWeights, kFetchWeights, kFetchElementary };

// Returns y and its gradients by all parameters, and the weights if they are fetched.
Result Evaluate(const Spelling& spelling, Kind kind, int threads) {
  Tape tape;
  const Spelt spelt = spelling.record(&tape);
  const Var loss = Sum(spelt.y * Sigmoid(spelt.y));
  VarList parameters;
  for (size_t i = 0; i < tape.program().nodes.size(); ++i) {
    const Node& node = tape.program().nodes[i];
    if (node.op == &kParameterOp) parameters.push_back({&tape, node.output(0)});
  }
  CompileOptions options = {.fetch = {spelt.y}, .tile_seconds = 1e-9};  // as many tiles as possible
  for (Var d : Gradient(loss, parameters)) options.fetch.push_back(d);
  if (kind == kFetchElementary) options.without = PassSet({Pass::kRaise});
  if (kind == kFetchWeights || kind == kFetchElementary) options.fetch.push_back(spelt.weights);
  const size_t compared = options.fetch.size();
  if (kind == kReadWeights) options.fetch.push_back(Sum(spelt.weights));
  const absl::StatusOr<Graph> graph = Compile(tape, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  Result result;
  if (!graph.ok()) return result;
  result.ops = OpNames(graph->program());
  for (const Explanation& e : graph->compiled().explanations) {
    if (!e.declined.empty()) result.declined.push_back(e.declined);
  }
  Parameters values({.seed = 3});
  Runner runner(*graph, &values, {.threads = threads});
  const bool padding[] = {false, false, false, true, false, true, true, true, true, true, true, true, true, true};
  std::vector<FeedPair> feeds;
  for (const Node& node : tape.program().nodes) {
    if (node.op == &kInputOp) feeds.push_back({{&tape, node.output(0)}, absl::MakeConstSpan(padding)});
  }
  const absl::StatusOr<Outputs> out = runner.Run(feeds);
  EXPECT_TRUE(out.ok()) << out.status();
  for (size_t i = 0; out.ok() && i < compared; ++i) {
    const auto span = (*out)[options.fetch[i]].span<const double>();
    result.values.emplace_back(span.begin(), span.end());
  }
  return result;
}

TEST_P(RaiseAttentionTest, GivesWhatItsElementarySpellingGives) {
  const Result raised = Evaluate(GetParam(), kRaised, 1), elementary = Evaluate(GetParam(), kReadWeights, 1);
  if (GetParam().declined != nullptr) {
    EXPECT_THAT(raised.ops, ::testing::Not(Contains("attention")));
    EXPECT_THAT(raised.declined, Contains(HasSubstr(GetParam().declined)));
    return;
  }
  EXPECT_THAT(raised.ops, Contains("attention"));
  EXPECT_THAT(raised.ops, Contains("attention_gradient"));
  EXPECT_THAT(raised.ops, ::testing::Not(Contains("softmax")));
  EXPECT_THAT(elementary.ops, Contains("softmax"));
  EXPECT_THAT(elementary.declined, Contains(HasSubstr("used elsewhere")));
  ASSERT_EQ(raised.values.size(), elementary.values.size());
  for (size_t i = 0; i < raised.values.size(); ++i) {
    EXPECT_THAT(raised.values[i], ::testing::Pointwise(::testing::DoubleNear(1e-12), elementary.values[i])) << i;
  }
  EXPECT_EQ(raised.values, Evaluate(GetParam(), kRaised, 3).values);
}

TEST_P(RaiseAttentionTest, GivesTheSameBitsIfItsWeightsAreFetched) {
  if (GetParam().declined != nullptr) return;
  Result fetched = Evaluate(GetParam(), kFetchWeights, 1);
  EXPECT_THAT(fetched.ops, Contains("attention"));
  EXPECT_THAT(fetched.ops, Contains("softmax"));
  const std::vector<double> weights = fetched.values.back();
  fetched.values.pop_back();
  EXPECT_EQ(fetched.values, Evaluate(GetParam(), kRaised, 1).values);
  const Result elementary = Evaluate(GetParam(), kFetchElementary, 1);
  EXPECT_THAT(elementary.ops, ::testing::Not(Contains("attention")));
  EXPECT_THAT(weights, ::testing::Pointwise(::testing::DoubleNear(1e-12), elementary.values.back()));
}

// A value that a gradient is taken by stays, and the operands of the raised op depend on it.
TEST(RaiseAttentionGradientTest, ByValuesInFrontOfTheProducts) {
  for (size_t which = 0; which < 5; ++which) {
    SCOPED_TRACE(which);
    std::vector<std::vector<double>> results[2];
    for (const bool raise : {true, false}) {
      Tape tape;
      const Var all = Parameter(&tape, "all", {kBatch, kTargets, 3 * kHeads * kWidth});
      const VarList parts = Split(all, -1, 3);
      const Operands o = {ByHead(parts[0], kHeads), ByHead(parts[1], kHeads), ByHead(parts[2], kHeads)};
      const Var number = Fill(&tape, {kF64, {}}, 0.4), scaled = o.q * number;
      const Var weights = Softmax(Product({scaled, o.k, o.v}));
      const Var mixed = MatMul(weights, o.v), twice = Permute(Permute(mixed, {0, 2, 1, 3}), {0, 2, 1, 3});
      const Var by = VarList{scaled, o.q, parts[0], twice, number}[which];
      const Var loss = Sum(twice * Sigmoid(twice)) + Sum(mixed);
      const VarList gradient = Gradient(loss, {by});
      const absl::StatusOr<Graph> graph =
          Compile(tape, {.fetch = gradient, .without = raise ? PassSet() : PassSet({Pass::kRaise})});
      ASSERT_TRUE(graph.ok()) << graph.status();
      Parameters values({.seed = 3});
      Runner runner(*graph, &values, {.threads = 1});
      const absl::StatusOr<Outputs> out = runner.Run({});
      ASSERT_TRUE(out.ok()) << out.status();
      const auto span = (*out)[gradient[0]].span<const double>();
      results[raise].emplace_back(span.begin(), span.end());
    }
    EXPECT_THAT(results[1][0], ::testing::Pointwise(::testing::DoubleNear(1e-12), results[0][0]));
    EXPECT_THAT(results[1][0], Contains(::testing::Ne(0.0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, RaiseAttentionTest, ::testing::ValuesIn(Spellings()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(c) ? c : '_';
  return name;
});

}  // namespace
}  // namespace weft
