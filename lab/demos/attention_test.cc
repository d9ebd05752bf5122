// Compares the matrices of AttentionDemo with those that docs/tour/01_attention_by_hand.md derives on paper.
#include <cctype>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/lab/demos/demo.h"

namespace weft {
namespace {

using Values = std::map<std::string, std::string>;  // of flags
using Named = std::map<std::string, DemoMatrix>;

constexpr double kRounding = 0.5001e-4;  // of the page's four decimals

// Returns the rows below "NAME = " on the page.
DemoMatrix OnPage(const std::string& name) {
  const absl::StatusOr<std::string> page = ReadFile("docs/tour/01_attention_by_hand.md");
  DemoMatrix matrix;
  const std::string begin = absl::StrCat("\n", name, " = ");
  size_t found = page.ok() ? page->find(begin) : std::string::npos;
  const auto is_formula = [&](size_t at) { return std::isalpha(static_cast<unsigned char>((*page)[at])); };
  while (found != std::string::npos && is_formula(found + begin.size())) {
    found = page->find(begin, found + 1);
  }
  EXPECT_NE(found, std::string::npos) << name;
  if (found == std::string::npos) return matrix;
  std::istringstream lines(page->substr(found + begin.size()));
  for (std::string line; std::getline(lines, line) && !line.empty() && line[0] != '`'; ++matrix.rows) {
    std::istringstream numbers(line);
    for (double x; numbers >> x;) matrix.values.push_back(x);
  }
  matrix.columns = static_cast<int64_t>(matrix.values.size()) / matrix.rows;
  return matrix;
}

DemoMatrix Transposed(const DemoMatrix& m) {
  DemoMatrix t = {m.name, m.title, m.columns, m.rows, {}};
  for (int64_t i = 0; i < m.columns; ++i) {
    for (int64_t j = 0; j < m.rows; ++j) t.values.push_back(m.values[j * m.columns + i]);
  }
  return t;
}

std::string Json(const DemoMatrix& m) {
  std::string text = "[";
  for (int64_t i = 0; i < m.rows * m.columns; ++i) {
    absl::StrAppend(&text, i == 0 ? "[" : i % m.columns == 0 ? "],[" : ",");
    std::ostringstream number;
    number.precision(17);
    number << m.values[i];
    absl::StrAppend(&text, number.str());
  }
  return text + "]]";
}

// Writes a file with the page's input and weights, and with `more` JSON. Returns its path.
std::string WritePage(bool columns, const std::string& more = "") {
  const std::string path = absl::StrCat(::testing::TempDir(), "/page.json");
  std::string text = "{";
  for (const auto& [key, name] : Values{{"x", "X"}, {"wq", "W_Q"}, {"wk", "W_K"}, {"wv", "W_V"}}) {
    const DemoMatrix m = columns ? Transposed(OnPage(name)) : OnPage(name);
    absl::StrAppend(&text, text.size() > 1 ? "," : "", "\"", key, "\":", Json(m));
  }
  EXPECT_TRUE(WriteFile(path, {absl::StrCat(text, more, "}")}).ok());
  return path;
}

absl::StatusOr<DemoResult> RunWith(const Values& values) {
  const Demo demo = AttentionDemo();
  for (const Hyperparameter& flag : demo.flags) {
    if (values.contains(flag.flag)) {
      EXPECT_TRUE(SetFromText(values.at(flag.flag), flag).ok()) << flag.flag;
    }
  }
  return demo.run();
}

std::string ErrorOf(const Values& values) { return std::string(RunWith(values).status().message()); }

Named Matrices(const Values& values) {
  const absl::StatusOr<DemoResult> result = RunWith(values);
  EXPECT_TRUE(result.ok()) << result.status();
  Named matrices;
  if (!result.ok()) return matrices;
  for (const DemoMatrix& matrix : result->matrices) {
    EXPECT_TRUE(matrices.emplace(matrix.name, matrix).second) << matrix.name << " occurs twice";
  }
  return matrices;
}

void ExpectEqual(const DemoMatrix& got, const DemoMatrix& wanted, double tolerance) {
  ASSERT_EQ(got.rows, wanted.rows) << got.name;
  ASSERT_EQ(got.columns, wanted.columns) << got.name;
  ASSERT_EQ(got.values.size(), wanted.values.size()) << got.name;
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    if (std::isfinite(wanted.values[i]) && std::isfinite(got.values[i])) {
      EXPECT_NEAR(got.values[i], wanted.values[i], tolerance) << got.name << " " << i;
    } else {
      EXPECT_EQ(got.values[i], wanted.values[i]) << got.name << " " << i;
    }
  }
}

std::string Text(bool value) { return value ? "true" : "false"; }

// The gradient of the page's loss by Y: dz = (sigmoid(z) - t) / 3, for z the first column of Y.
DemoMatrix GradientOfTheLoss(const DemoMatrix& y) {
  DemoMatrix dy = {"dY", "", 3, 2, {}};
  const double targets[] = {1, 0, 1};
  for (int i = 0; i < 3; ++i) {
    dy.values.push_back((1 / (1 + std::exp(-y.values[2 * i])) - targets[i]) / 3);
    dy.values.push_back(0);
  }
  return dy;
}

TEST(AttentionDemoTest, ThePagesMatrices) {
  const DemoMatrix dy = GradientOfTheLoss(Matrices({{"matrices", WritePage(false)}})["Y"]);
  for (const bool columns : {false, true}) {
    const std::string gradient = absl::StrCat(",\"gradient\":", Json(columns ? Transposed(dy) : dy));
    const Named m = Matrices({{"matrices", WritePage(columns, gradient)}, {"columns", Text(columns)}});
    for (const char* name :
         {"X",  "W_Q", "W_K", "W_V", "Q",  "K",  "V",    "A",    "S",    "P",    "Y",    "dY",   "dV",
          "dP", "r",   "dS",  "dA",  "dQ", "dK", "dW_Q", "dW_K", "dW_V", "dX_Q", "dX_K", "dX_V", "dX"}) {
      ASSERT_TRUE(m.contains(name)) << name;
      ExpectEqual(columns ? Transposed(m.at(name)) : m.at(name), OnPage(name), kRounding);
    }
  }
}

TEST(AttentionDemoTest, ThePagesMaskAndHeads) {
  for (const bool columns : {false, true}) {
    const Values flags = {{"matrices", WritePage(columns)}, {"columns", Text(columns)}};
    Values causal = flags, heads = flags;
    causal["causal"] = "true";
    heads["heads"] = "2";
    const Named masked = Matrices(causal), two = Matrices(heads);
    const auto turned = [&](const DemoMatrix& m) { return columns ? Transposed(m) : m; };
    ExpectEqual(turned(masked.at("P")), OnPage("P_c"), kRounding);
    ExpectEqual(turned(masked.at("Y")), OnPage("Y_c"), kRounding);
    ExpectEqual(turned(two.at("P_1")), OnPage("P_1"), kRounding);
    ExpectEqual(turned(two.at("P_2")), OnPage("P_2"), kRounding);
    ExpectEqual(turned(two.at("Y")), OnPage("Y_h"), kRounding);
  }
}

// An element of dX is the slope of the sum of the result, with heads, a mask and W_O at once.
TEST(AttentionDemoTest, GradientsOfTheSum) {
  const std::string path = WritePage(false, ",\"wo\":[[1,-0.5,2],[0.25,1,-1]]");
  const Values flags = {{"matrices", path}, {"heads", "2"}, {"causal", "true"}};
  const Named m = Matrices(flags);
  const auto sum = [&](double change) {
    DemoMatrix x = OnPage("X");
    x.values[5] += change;
    std::string text = *ReadFile(path);
    const std::string old = Json(OnPage("X"));
    text.replace(text.find("\"x\":" + old) + 4, old.size(), Json(x));
    const std::string moved = absl::StrCat(::testing::TempDir(), "/moved.json");
    EXPECT_TRUE(WriteFile(moved, {text}).ok());
    Values other = flags;
    other["matrices"] = moved;
    double total = 0;
    const Named moved_matrices = Matrices(other);  // it must outlive the loop
    for (const double y : moved_matrices.at("O").values) total += y;
    return total;
  };
  EXPECT_NEAR(m.at("dX").values[5], (sum(1e-6) - sum(-1e-6)) / 2e-6, 1e-6);
  EXPECT_EQ(m.at("M_2").values[1], -INFINITY);
  EXPECT_EQ(m.at("dS_2").values[1], 0);
}

// Every matrix with tokens as columns is the transpose of that with tokens as rows.
TEST(AttentionDemoTest, ColumnsAreTheTransposes) {
  const auto run = [](bool columns, const std::string& w_o) {
    const std::string path = WritePage(columns, ",\"wo\":" + w_o);
    return Matrices({{"matrices", path}, {"heads", "2"}, {"causal", "true"}, {"columns", Text(columns)}});
  };
  const Named rows = run(false, "[[1,-0.5],[0.25,1]]"), columns = run(true, "[[1,0.25],[-0.5,1]]");
  ASSERT_EQ(columns.size(), rows.size());
  for (const auto& [name, matrix] : columns) ExpectEqual(Transposed(matrix), rows.at(name), 1e-12);
}

// Writes a file with the text, and returns its path.
std::string WriteText(const std::string& text) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/text.json");
  EXPECT_TRUE(WriteFile(path, {text}).ok());
  return path;
}

TEST(AttentionDemoTest, GivenQueriesKeysAndValues) {
  const DemoMatrix dy = GradientOfTheLoss(OnPage("Y"));
  for (const bool columns : {false, true}) {
    const auto turned = [&](const DemoMatrix& m) { return columns ? Transposed(m) : m; };
    std::string text = absl::StrCat("{\"gradient\":", Json(turned(dy)));
    for (const auto& [key, name] : Values{{"q", "Q"}, {"k", "K"}, {"v", "V"}}) {
      absl::StrAppend(&text, ",\"", key, "\":", Json(turned(OnPage(name))));
    }
    const Named m = Matrices({{"matrices", WriteText(text + "}")}, {"columns", Text(columns)}});
    for (const char* name : {"A", "P", "Y", "dV", "dP", "dS", "dQ", "dK"}) {
      ASSERT_TRUE(m.contains(name)) << name;
      ExpectEqual(turned(m.at(name)), OnPage(name), 2 * kRounding);  // dy is computed from rounded numbers
    }
    EXPECT_FALSE(m.contains("dX"));
  }
  const std::string cross = WriteText(R"({"q": [[1]], "k": [[0], [0]], "v": [[2, 5], [4, 7]]})");
  const Named m = Matrices({{"matrices", cross}});  // one query and two equal keys
  EXPECT_EQ(m.at("P").values, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(m.at("Y").values, (std::vector<double>{3, 6}));
  EXPECT_EQ(ErrorOf({{"matrices", cross}, {"causal", "true"}}),
            "causal: got 1 queries and 2 keys, wanted as many of each");
}

TEST(AttentionDemoTest, TextAndRandomMatrices) {
  const absl::StatusOr<DemoResult> page = RunWith({{"matrices", WritePage(false)}, {"causal", "true"}});
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string text = PrintText(*page);
  EXPECT_NE(text.find("\nQ = X W_Q\n  2  0\n  0  2\n  1  1\n\nK = X W_K\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nA = Q Kᵀ\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nM = S with -inf for later tokens\n  0.0000    -inf    -inf\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("-0.0000"), std::string::npos) << text;
  EXPECT_NE(PrintJson(*page).find("\"Q\":[[2.0,0.0],[0.0,2.0],[1.0,1.0]]"), std::string::npos);
  const Named one = Matrices({{"tokens", "5"}, {"width", "6"}, {"heads", "3"}}),
              other = Matrices({{"tokens", "5"}, {"width", "6"}, {"heads", "3"}, {"seed", "2"}});
  EXPECT_EQ(one.at("O").rows, 5);
  EXPECT_EQ(one.at("P_3").columns, 5);
  EXPECT_NE(one.at("O").values, other.at("O").values);
}

TEST(AttentionDemoTest, ErrorsNameTheMatrixAndItsShape) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/wrong.json");
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"x": [[1,0],[0,1],[1,1]], "wq": [[1]], "wk": [[1]], "wv": [[1]]})",
       "wq is [1,1], wanted [2,1]; the matrices are wk [1,1], wq [1,1], wv [1,1], x [3,2]"},
      {R"({"x": [[1,0]], "wq": [[1],[1]], "wk": [[1,2],[1,2]], "wv": [[1],[2]]})",
       "wk is [2,2], wanted [2,1]; the matrices are wk [2,2], wq [2,1], wv [2,1], x [1,2]"},
      {R"({"x": [[1]], "wq": [[1]], "wk": [[1]], "wv": [[1]], "wo": [[1],[2]]})",
       "wo is [2,1], wanted [1,1]; the matrices are wk [1,1], wo [2,1], wq [1,1], wv [1,1], x [1,1]"},
      {R"({"x": [[1]], "wq": [[1]], "wk": [[1]], "wv": [[1,2]], "gradient": [[1]]})",
       "gradient is [1,1], wanted [1,2]; the matrices are gradient [1,1], wk [1,1], wq [1,1], wv [1,2], x [1,1]"},
      {R"({"x": [[1]], "wq": [[1]], "wk": [[1]]})", "wv: the matrix is missing; wanted x, wq, wk and wv"},
      {R"({"q": [[1]], "k": [[1]]})", "v: the matrix is missing; wanted q, k and v"},
      {R"({"q": [[1]], "k": [[1]], "v": [[1]], "x": [[1]]})", "x: wanted either x, wq, wk and wv, or q, k and v"},
      {R"({"q": [[1]], "k": [[1, 2]], "v": [[1]]})",
       "k is [1,2], wanted [1,1]; the matrices are k [1,2], q [1,1], v [1,1]"},
      {R"({"x": [[1]], "wq": [[1]], "wk": [[1]], "wv": [[1]], "grad": 1})",
       "unknown key 'grad', did you mean 'gradient'?"},
      {R"({"x": [[1,2],[3,4,5]]})", "x: row 2 has 3 numbers, wanted 2"},
      {R"({"x": [[1,2],3]})", "x: row 2 is 3, wanted an array of numbers"},
      {R"({"x": [[]]})", "x: row 1 has 0 numbers, wanted 1 to 64"},
      {R"({"x": [1,2]})", "x: row 1 is 1, wanted an array of numbers"},
      {R"({"x": [[1,"a"]]})", "x: row 1, column 2 is \"a\", wanted a number"},
      {R"({"x": [[[1,2,3,4,5,6,7,8,9,10,11,12,13,14]]]})", "x: row 1, column 1 is a long array, wanted a number"},
      {R"({"x": []})", "x: got 0 rows, wanted an array of 1 to 64 arrays of 1 to 64 numbers"},
      {R"({"x": null})", "x: got null, wanted an array of 1 to 64 arrays of 1 to 64 numbers"},
      {R"({"x": "a text of more than thirty letters"})",
       "x: got a long string, wanted an array of 1 to 64 arrays of 1 to 64 numbers"},
      {R"({"x": 1})", "x: got 1, wanted an array of 1 to 64 arrays of 1 to 64 numbers"}};
  for (const auto& [json, error] : wrong) {
    ASSERT_TRUE(WriteFile(path, {json}).ok());
    EXPECT_EQ(ErrorOf({{"matrices", path}}), absl::StrCat(path, ": ", error));
  }
  std::string row = "1", rows = "[1]";
  for (int i = 1; i < 65; ++i) {
    absl::StrAppend(&row, ",1");
    absl::StrAppend(&rows, ",[1]");
  }
  ASSERT_TRUE(WriteFile(path, {absl::StrCat("{\"x\": [[", row, "]]}")}).ok());
  EXPECT_EQ(ErrorOf({{"matrices", path}}), absl::StrCat(path, ": x: row 1 has 65 numbers, wanted 1 to 64"));
  ASSERT_TRUE(WriteFile(path, {absl::StrCat("{\"x\": [", rows, "]}")}).ok());
  EXPECT_EQ(ErrorOf({{"matrices", path}}),
            absl::StrCat(path, ": x: got 65 rows, wanted an array of 1 to 64 arrays of 1 to 64 numbers"));
  EXPECT_EQ(ErrorOf({{"heads", "3"}}), "heads: 3 heads do not divide the 4 columns of wq");
  EXPECT_EQ(ErrorOf({{"matrices", WritePage(false)}, {"heads", "4"}}),
            "heads: 4 heads do not divide the 2 columns of wq");
  EXPECT_EQ(ErrorOf({{"matrices", WritePage(true)}, {"heads", "4"}, {"columns", "true"}}),
            "heads: 4 heads do not divide the 2 rows of wq");
  EXPECT_EQ(ErrorOf({{"matrices", WritePage(true)}}),
            absl::StrCat(WritePage(true),
                         ": wq is [2,4], wanted [3,4]; the matrices are wk [2,4], wq [2,4], wv [2,4], x [4,3]"));
}

}  // namespace
}  // namespace weft
