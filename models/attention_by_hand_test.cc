// Checks every number in docs/tour/01_attention_by_hand.md, and the page's claim about the variance of scores.
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/tests/tour/arithmetic.h"

namespace weft {
namespace {

constexpr double kRounding = 0.5001e-4;  // of four decimals

using Matrix = std::vector<std::vector<double>>;

// Reads the matrices of the page: "NAME = 1 2" and the rows below it, in the blocks marked "text". Others have
// diagrams.
std::map<std::string, Matrix> ReadPage() {
  std::map<std::string, Matrix> matrices;
  const absl::StatusOr<std::string> page = ReadFile("docs/tour/01_attention_by_hand.md");
  EXPECT_TRUE(page.ok()) << page.status();
  if (!page.ok()) return matrices;
  std::istringstream lines(*page);
  bool inside = false, is_text = false;
  Matrix* matrix = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      is_text = line == "```text";
      continue;
    }
    if (inside && !is_text) continue;
    if (!inside) {  // numbers are in blocks, where they are checked
      EXPECT_FALSE(std::regex_search(line, std::regex("[0-9]\\.[0-9]"))) << line;
      continue;
    }
    std::string numbers = line;
    if (const size_t equals = line.find(" = "); equals != std::string::npos) {
      matrix = &matrices[line.substr(0, equals)];
      EXPECT_TRUE(matrix->empty()) << line;
      numbers = line.substr(equals + 3);
    }
    std::istringstream row(numbers);
    std::vector<double> values;
    for (double value; row >> value;) values.push_back(value);
    EXPECT_TRUE(row.eof()) << line;
    if (!values.empty()) matrix->push_back(values);
  }
  return matrices;
}

std::vector<double> Flat(const Matrix& matrix) {
  std::vector<double> flat;
  for (const std::vector<double>& row : matrix) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

class Page {
 public:
  Page() : matrices_(ReadPage()) {}

  // A matrix of the page, as an input of its value.
  Var Input(const std::string& name, const std::string& matrix) {
    const Matrix& m = matrices_.at(matrix);
    const Var x = tape_.Input(name, {kF64, {static_cast<int64_t>(m.size()), static_cast<int64_t>(m[0].size())}});
    values_[name] = Flat(m);
    feeds_.push_back({x, absl::Span<const double>(values_[name])});
    return x;
  }
  Tape* tape() { return &tape_; }

  // Compares each of `computed` with the page's matrix of the same name.
  void Check(const std::map<std::string, Var>& computed) {
    VarList fetch;
    for (const auto& [name, var] : computed) fetch.push_back(var);
    const absl::StatusOr<Graph> graph = Compile(tape_, {.fetch = {fetch.begin(), fetch.end()}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    const absl::StatusOr<Outputs> out = runner.Run(feeds_);
    ASSERT_TRUE(out.ok()) << out.status();
    for (const auto& [name, var] : computed) {
      ASSERT_TRUE(matrices_.contains(name)) << name;
      const std::vector<double> wanted = Flat(matrices_.at(name));
      const absl::Span<const double> got = (*out)[var].span<const double>();
      ASSERT_EQ(got.size(), wanted.size()) << name;
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], kRounding) << name << " " << i;
    }
  }
  const std::map<std::string, Matrix>& matrices() const { return matrices_; }
  bool fed(const std::string& name) const { return values_.contains(name); }

 private:
  std::map<std::string, Matrix> matrices_;
  Tape tape_;
  std::map<std::string, std::vector<double>> values_;
  std::vector<FeedPair> feeds_;
};

TEST(AttentionByHandTest, EveryNumberOnThePage) {
  Page page;
  ASSERT_FALSE(page.matrices().empty());
  std::map<std::string, Var> m;
  // X three times, so that its three gradients come apart.
  const Var x_q = page.Input("X", "X"), x_k = page.Input("X as key", "X"), x_v = page.Input("X as value", "X");
  const Var w_q = page.Input("W_Q", "W_Q"), w_k = page.Input("W_K", "W_K"), w_v = page.Input("W_V", "W_V");
  const Var u = page.Input("u", "u"), t = page.Input("t", "t");
  m["Q"] = MatMul(x_q, w_q);
  m["K"] = MatMul(x_k, w_k);
  m["V"] = MatMul(x_v, w_v);
  m["A"] = MatMul(m["Q"], m["K"], {.transpose_b = true});
  m["S"] = m["A"] / std::sqrt(2.0);
  m["P"] = Softmax(m["S"]);
  m["Y"] = MatMul(m["P"], m["V"]);
  m["z"] = MatMul(m["Y"], u);
  m["p"] = Sigmoid(m["z"]);
  m["L"] = BinaryCrossEntropy(m["z"], t);
  const std::pair<const char*, Var> wrt[] = {
      {"dz", m["z"]}, {"dY", m["Y"]}, {"dV", m["V"]}, {"dP", m["P"]}, {"dS", m["S"]}, {"dA", m["A"]}, {"dQ", m["Q"]},
      {"dK", m["K"]}, {"dW_Q", w_q},  {"dW_K", w_k},  {"dW_V", w_v},  {"dX_Q", x_q},  {"dX_K", x_k},  {"dX_V", x_v}};
  VarList vars;
  for (const auto& [name, var] : wrt) vars.push_back(var);
  const VarList gradients = Gradient(m["L"], vars);
  for (size_t i = 0; i < gradients.size(); ++i) m[wrt[i].first] = gradients[i];
  m["dX"] = m["dX_Q"] + m["dX_K"] + m["dX_V"];
  m["r"] = Sum(m["P"] * m["dP"], -1, /*keep=*/true);
  VarList jacobian;  // of the first token's weights
  for (int i = 0; i < 3; ++i) {
    const Var weight = Slice(Slice(m["P"], 0, 0, 1), 1, i, i + 1);
    jacobian.push_back(Slice(Gradient(Sum(weight), {m["S"]})[0], 0, 0, 1));
  }
  m["J"] = Concat(jacobian, 0);
  m["P_c"] = Softmax(CausalMask(m["S"], -std::numeric_limits<double>::infinity()));
  m["Y_c"] = MatMul(m["P_c"], m["V"]);
  VarList results;  // of the two heads
  for (int head = 0; head < 2; ++head) {
    const auto column = [&](const char* name) { return Slice(m[name], 1, head, head + 1); };
    const Var weights = Softmax(MatMul(column("Q"), column("K"), {.transpose_b = true}));
    results.push_back(MatMul(weights, column("V")));
    m[head == 0 ? "P_1" : "P_2"] = weights;
  }
  m["Y_h"] = Concat(results, 1);
  page.Check(m);
  for (const auto& [name, matrix] : page.matrices()) EXPECT_TRUE(m.contains(name) || page.fed(name)) << name;
}

TEST(AttentionByHandTest, Calculations) {
  const absl::StatusOr<std::string> page = ReadFile("docs/tour/01_attention_by_hand.md");
  ASSERT_TRUE(page.ok()) << page.status();
  Arithmetic arithmetic;
  bool is_calc = false;
  int checked = 0;
  std::istringstream lines(*page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      is_calc = line == "```calc";
    } else if (is_calc && !line.empty()) {
      EXPECT_EQ(arithmetic.Check(line), "") << line;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// ScaledDotProductAttention gives the same results. Its gradient computes the attention weights again.
TEST(AttentionByHandTest, TheOneOpGivesTheSame) {
  Page page;
  ASSERT_FALSE(page.matrices().empty());
  const Var x = page.Input("X", "X"), w_q = page.Input("W_Q", "W_Q"), w_k = page.Input("W_K", "W_K"),
            w_v = page.Input("W_V", "W_V"), u = page.Input("u", "u"), t = page.Input("t", "t");
  const auto one = [](Var v) { return Unsqueeze(v, 0); };  // a batch of one
  const auto attend = [&](const ScaledDotProductOptions& options) {
    return Squeeze(ScaledDotProductAttention(one(MatMul(x, w_q)), one(MatMul(x, w_k)), one(MatMul(x, w_v)), options),
                   {0});
  };
  const Var y = attend({.heads = 1});
  const Var loss = BinaryCrossEntropy(MatMul(y, u), t);
  const VarList d = Gradient(loss, {w_q, w_k, w_v, x});
  page.Check({{"Y_c", attend({.heads = 1, .causal = true})}, {"Y_h", attend({.heads = 2})}});
  page.Check({{"Y", y}, {"L", loss}, {"dW_Q", d[0]}, {"dW_K", d[1]}, {"dW_V", d[2]}, {"dX", d[3]}});
}

// q·k of unit Gaussians has mean 0 and variance d_k. The tolerances are four standard deviations of the estimates.
TEST(AttentionByHandTest, ScoresOfUnitGaussiansHaveVarianceOfTheWidth) {
  constexpr int64_t kPairs = 100'000;
  for (int64_t width : {1, 8, 64, 256}) {
    Tape tape;
    const Var q = tape.Parameter("q", {kF32, {kPairs, width}}, Gaussian(1));
    const Var k = tape.Parameter("k", {kF32, {kPairs, width}}, Gaussian(1));
    const Var scores = Sum(q * k, -1), mean = Mean(scores), variance = Mean(Square(scores));
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {mean, variance}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters);
    const absl::StatusOr<Outputs> out = runner.Run({});
    ASSERT_TRUE(out.ok()) << out.status();
    const double d = static_cast<double>(width), squares = 2 + 6 / d;  // variance of (q·k)² / d²
    EXPECT_NEAR(out->Scalar(mean), 0, 4 * std::sqrt(d / kPairs));
    EXPECT_NEAR(out->Scalar(variance), d, 4 * d * std::sqrt(squares / kPairs));
  }
}

}  // namespace
}  // namespace weft
