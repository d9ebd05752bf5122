// Compares the LSTM with PyTorch's (tests/peers/pytorch_lstm.py), and attention to a memory with its formula.
#include "weft/models/recurrent.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/core/safetensors.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 3, kLength = 5, kInputs = 4, kWidth = 6;

// The array number `k` of the script.
std::vector<double> Array(int k, size_t n) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 0.5 * std::sin(1 + 0.9 * k + 0.61 * static_cast<double>(i));
  return values;
}

void SetArray(const Parameters& parameters, const std::string& name, int k) {
  const absl::StatusOr<Tensor> found = parameters.Find(name);
  ASSERT_TRUE(found.ok()) << found.status();
  const absl::Span<double> to = found->span<double>();
  const std::vector<double> from = Array(k, to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

TEST(RecurrentTest, AnLstmIsPyTorchs) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open("tests/peers/pytorch_lstm.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<int32_t> lengths = {5, 2, 4};
  for (const bool reverse : {false, true}) {
    Tape tape;
    const Var x = tape.Input("x", {kF64, {kBatch, kLength, kInputs}}), of = tape.Input("lengths", {kI32, {kBatch}});
    const LstmResult y = Lstm("lstm", x, kWidth, {.reverse = reverse, .lengths = of});
    const Var loss = Sum(Square(y.outputs)) + Sum(Square(y.last.hidden)) + Sum(Square(y.last.cell));
    const char* const kNames[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    VarList wrt = {x};
    for (const char* const name : kNames) wrt.push_back(tape.FindParameter(absl::StrCat("lstm.", name)));
    const VarList gradients = Gradient(loss, wrt);
    std::vector<std::pair<std::string, Var>> compared = {
        {"output", y.outputs}, {"hidden", y.last.hidden}, {"cell", y.last.cell}, {"d_x", gradients[0]}};
    for (size_t i = 0; i < 4; ++i) compared.emplace_back(absl::StrCat("d_", kNames[i]), gradients[i + 1]);
    VarList fetch;
    for (const auto& [name, value] : compared) fetch.push_back(value);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    for (int i = 0; i < 4; ++i) SetArray(parameters, absl::StrCat("lstm.", kNames[i]), 1 + i);
    const std::vector<double> data = Array(0, kBatch * kLength * kInputs);
    const absl::StatusOr<Outputs> out = runner.Run({{x, data}, {of, lengths}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (const auto& [name, value] : compared) {
      const std::string full_name = absl::StrCat(reverse ? "reverse." : "forward.", name);
      const NamedTensor* const wanted = file->Find(full_name);
      ASSERT_NE(wanted, nullptr) << full_name;
      ASSERT_EQ(ToString(value.type()), ToString(wanted->tensor.type)) << full_name;
      const absl::Span<const double> got = (*out)[value].span<const double>();
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], wanted->tensor.as<double>()[i], 1e-12) << full_name << " " << i;
      }
    }
  }
}

TEST(RecurrentTest, AttentionIsWhatTheFormulaSays) {
  constexpr int64_t kSources = 4, kHidden = 2, kQuery = 3;
  Tape tape;
  const Var memory = tape.Input("memory", {kF64, {1, kSources, kInputs}}),
            query = tape.Input("query", {kF64, {1, kQuery}});
  const Var lengths = tape.Input("lengths", {kI32, {1}});
  const Var mask = Not(Less(Iota(&tape, kI32, kSources), Reshape(lengths, {1, 1})));
  const AdditiveAttention attention("attention", memory, kQuery, kHidden, mask);
  const Var context = attention.Context(query);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {context}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  SetArray(parameters, "attention.query.weight", 1);
  SetArray(parameters, "attention.key.weight", 2);
  SetArray(parameters, "attention.score.weight", 3);
  const std::vector<double> w = Array(1, kHidden * kQuery), u = Array(2, kHidden * kInputs), v = Array(3, kHidden),
                            m = Array(4, kSources * kInputs), q = Array(5, kQuery);
  const std::vector<int32_t> visible = {3};
  const absl::StatusOr<Outputs> out = runner.Run({{memory, m}, {query, q}, {lengths, visible}});
  ASSERT_TRUE(out.ok()) << out.status();
  std::vector<double> sum(kInputs);
  double total = 0;
  for (size_t s = 0; s < 3; ++s) {
    double score = 0;
    for (size_t a = 0; a < kHidden; ++a) {
      double hidden = 0;
      for (size_t i = 0; i < kQuery; ++i) hidden += w[a * kQuery + i] * q[i];
      for (size_t i = 0; i < kInputs; ++i) hidden += u[a * kInputs + i] * m[s * kInputs + i];
      score += v[a] * std::tanh(hidden);
    }
    total += std::exp(score);
    for (size_t i = 0; i < kInputs; ++i) sum[i] += std::exp(score) * m[s * kInputs + i];
  }
  for (size_t i = 0; i < kInputs; ++i) EXPECT_NEAR((*out)[context].span<const double>()[i], sum[i] / total, 1e-12);
}

TEST(RecurrentTest, SaysWhatDoesNotFit) {
  Tape tape;
  Lstm("lstm", tape.Input("x", {kF32, {2, 3}}), 4);
  EXPECT_THAT(tape.status().message(), HasSubstr("lstm: x must be [B,T,C] with T > 0; inputs f32[2,3]"));
  Tape other;
  const Var source = other.Input("source", {kI32, {2, 3}}, {.below = 9});
  LstmTranslator({}).Logits(source, other.Input("target", {kI32, {2, 0}}, {.below = 9}));
  EXPECT_THAT(other.status().message(), HasSubstr("target must be [B,T] with T > 0; inputs i32[2,0]"));
}

}  // namespace
}  // namespace weft
