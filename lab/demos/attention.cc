// AttentionDemo computes attention on a few tokens, forward and backward, and shows every matrix.
//
// Each step is a node of its own, and each gradient is the one that autograd computes by the result of a step. So the
// demo shows Weft's numbers. docs/tour/01_attention_by_hand.md derives the same steps on paper.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/initializer.h"
#include "weft/lab/demos/demo.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Matrices = std::map<std::string, DemoMatrix>;  // by key

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr size_t kMaxSide = 64;  // rows and columns of a matrix in a file

// The matrices of a file by their keys. A file has all matrices of kProjected, or all of kDirect.
enum class Part : uint8_t { kProjected, kDirect, kOptional };
constexpr struct {
  const char *key, *name;
  Part part;
} kInputs[] = {
    {"x", "X", Part::kProjected},    {"wq", "W_Q", Part::kProjected}, {"wk", "W_K", Part::kProjected},
    {"wv", "W_V", Part::kProjected}, {"q", "Q", Part::kDirect},       {"k", "K", Part::kDirect},
    {"v", "V", Part::kDirect},       {"wo", "W_O", Part::kOptional},  {"gradient", "gradient", Part::kOptional}};

struct AttentionDemoOptions {
  std::string matrices;
  int64_t tokens = 3, width = 4, heads = 1;
  bool causal = false, columns = false;
  uint64_t seed = 1;
};

// The layout of all matrices. If tokens are columns, each matrix is the transpose of the matrix with tokens as rows, so
// the factors of a product change places.
struct Layout {
  bool columns;

  int features() const { return columns ? 0 : 1; }  // the axis of features, and of the sources of scores
  const char* token() const { return columns ? "column" : "row"; }
  const char* feature() const { return columns ? "row" : "column"; }
  Shape Turn(const Shape& s) const { return columns ? Shape{s.dim(1), s.dim(0)} : s; }
  Var Turn(Var x) const { return columns ? Transpose(x, 0, 1) : x; }
  std::string Product(const std::string& a, const std::string& b) const {
    return columns ? absl::StrCat(b, " ", a) : absl::StrCat(a, " ", b);
  }
  Var Product(Var a, Var b, bool transpose_b = false) const {
    return columns ? MatMul(b, a, {.transpose_a = transpose_b}) : MatMul(a, b, {.transpose_b = transpose_b});
  }
};

Shape ShapeOf(const DemoMatrix& m) { return {m.rows, m.columns}; }

// Returns the JSON if it is short, and otherwise its kind.
std::string Shown(const Json& json) {
  const std::string line = JsonLine(json);
  return line.size() <= 30 ? line : absl::StrCat("a long ", json.type_name());
}

absl::StatusOr<DemoMatrix> ReadMatrix(const char* name, const Json& rows) {
  const auto fits = [](size_t size) { return size >= 1 && size <= kMaxSide; };
  if (!rows.is_array() || !fits(rows.size())) {
    return InvalidArgument("got ", rows.is_array() ? absl::StrCat(rows.size(), " rows") : Shown(rows),
                           ", wanted an array of 1 to ", kMaxSide, " arrays of 1 to ", kMaxSide, " numbers");
  }
  DemoMatrix matrix = {name, name, static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())};
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const Json& row = rows[i];
    if (!row.is_array()) return InvalidArgument("row ", i + 1, " is ", Shown(row), ", wanted an array of numbers");
    if (!fits(row.size()) || row.size() != rows[0].size()) {
      return InvalidArgument("row ", i + 1, " has ", row.size(), " numbers, wanted ",
                             i == 0 ? absl::StrCat("1 to ", kMaxSide) : absl::StrCat(matrix.columns));
    }
    for (int64_t j = 0; j < matrix.columns; ++j) {
      if (!row[j].is_number()) {
        return InvalidArgument("row ", i + 1, ", column ", j + 1, " is ", Shown(row[j]), ", wanted a number");
      }
      matrix.values.push_back(row[j].get<double>());
    }
  }
  return matrix;
}

absl::StatusOr<Matrices> ReadMatrices(const Json& json) {
  const bool direct = json.contains("q") || json.contains("k") || json.contains("v");
  const Part left_out = direct ? Part::kProjected : Part::kDirect;
  Matrices matrices;
  std::vector<std::string> keys;
  for (const auto& [key, name, part] : kInputs) {
    keys.push_back(key);
    if (json.contains(key)) {
      if (part == left_out) return InvalidArgument(key, ": wanted either x, wq, wk and wv, or q, k and v");
      WEFT_ASSIGN_OR_RETURN(matrices[key], Annotate(ReadMatrix(name, json[key]), key));
    } else if (part != left_out && part != Part::kOptional) {
      return InvalidArgument(key, ": the matrix is missing; wanted ", direct ? "q, k and v" : "x, wq, wk and wv");
    }
  }
  for (const auto& [key, value] : json.items()) {
    if (!matrices.contains(key)) return InvalidArgument("unknown key '", key, "'", DidYouMean(key, keys));
  }
  return matrices;
}

// Draws the matrices. Their numbers have one decimal, so that all digits are shown.
Matrices DrawMatrices(const AttentionDemoOptions& o) {
  Matrices matrices;
  for (const auto& [key, name, part] : kInputs) {
    const std::string is = key;
    if (part != Part::kProjected && (is != "wo" || o.heads == 1)) continue;
    const Shape shape = Layout{o.columns}.Turn(Shape{is == "x" ? o.tokens : o.width, o.width});
    Numbers drawn(shape.elements());
    Initialize(Gaussian(1), o.seed, key, {{kF64, shape}, reinterpret_cast<std::byte*>(drawn.data())});
    for (double& x : drawn) x = std::round(10 * x) / 10;
    matrices[key] = {name, name, shape.dim(0), shape.dim(1), std::move(drawn)};
  }
  return matrices;
}

// Checks that the matrices fit each other. An error gives shapes in the layout.
absl::Status CheckShapes(const AttentionDemoOptions& o, const Matrices& matrices) {
  const Layout in{o.columns};
  std::map<std::string, Shape> shapes;  // with tokens as rows; those of missing matrices are not compared
  for (const auto& [key, name, part] : kInputs) {
    shapes[key] = matrices.contains(key) ? in.Turn(ShapeOf(matrices.at(key))) : Shape{1, 1};
  }
  const bool direct = matrices.contains("q");
  const Shape x = shapes["x"], q = shapes[direct ? "q" : "wq"], k = shapes["k"], v = shapes[direct ? "v" : "wv"];
  const Shape out = matrices.contains("wo") ? shapes["wo"] : v;
  const std::pair<const char*, Shape> wanted[] = {{"wq", {x.dim(1), q.dim(1)}},
                                                  {"wk", {x.dim(1), q.dim(1)}},
                                                  {"wv", {x.dim(1), v.dim(1)}},
                                                  {"k", {k.dim(0), q.dim(1)}},
                                                  {"v", {k.dim(0), v.dim(1)}},
                                                  {"wo", {v.dim(1), out.dim(1)}},
                                                  {"gradient", {(direct ? q : x).dim(0), out.dim(1)}}};
  for (const auto& [key, shape] : wanted) {
    if (!matrices.contains(key) || shapes[key] == shape) continue;
    const auto with_shape = [](std::string* text, const auto& matrix) {
      absl::StrAppend(text, matrix.first, " ", ToString(ShapeOf(matrix.second)));
    };
    return InvalidArgument(key, " is ", ToString(ShapeOf(matrices.at(key))), ", wanted ", ToString(in.Turn(shape)),
                           "; the matrices are ", absl::StrJoin(matrices, ", ", with_shape));
  }
  return absl::OkStatus();
}

// Checks that the flags fit the matrices.
absl::Status CheckFlags(const AttentionDemoOptions& o, const Matrices& matrices) {
  const Layout in{o.columns};
  const bool direct = matrices.contains("q");
  const auto size = [&](const char* key, int axis) { return in.Turn(ShapeOf(matrices.at(key))).dim(axis); };
  for (const char* const key : {direct ? "q" : "wq", direct ? "v" : "wv"}) {
    if (size(key, 1) % o.heads == 0) continue;
    return InvalidArgument("heads: ", o.heads, " heads do not divide the ", size(key, 1), " ", in.feature(), "s of ",
                           key);
  }
  if (!direct || !o.causal || size("q", 0) == size("k", 0)) return absl::OkStatus();
  return InvalidArgument("causal: got ", size("q", 0), " queries and ", size("k", 0), " keys, wanted as many of each");
}

// A matrix with the words of its title: "NAME = FORMULA".
struct Step {
  std::string name, formula;
  Var value;  // the result, or for a gradient the Var that the loss is differentiated by
};

// The steps of attention on given matrices, which must fit each other and the options.
class Recording {
 public:
  Recording(const AttentionDemoOptions& o, const Matrices& given) : o_(o), given_(given) {}

  // Records the forward pass. Returns its result.
  Var Forward() {
    const bool projects = given_.contains("wo");
    const std::string dq = in_.Product("dA#", "K#"), dk = in_.Product("dA#ᵀ", "Q#"), dv = in_.Product("P#ᵀ", "dY#");
    const Var queries = Project("Q", "q", one_ ? dq : Joined("dQ"));
    const Var keys = Project("K", "k", one_ ? dk : Joined("dK"));
    const Var values = Project("V", "v", one_ ? dv : Joined("dV"));
    VarList results;
    const std::string of_loss = given_.contains("gradient") ? "gradient" : "ones, as the loss is the sum";
    const std::string dy = projects ? in_.Product("dO", "W_Oᵀ") : of_loss;
    for (int64_t h = 0; h < o_.heads; ++h) {
      if (!one_) head_ = absl::StrCat("_", h + 1);
      const auto lines = [&](const char* name, int64_t width) {
        return absl::StrCat(in_.feature(), "s ", h * width + 1, " to ", (h + 1) * width, " of ", name);
      };
      const auto part = [&](const char* name, Var all, const std::string& gradient) {
        const int64_t width = all.shape().dim(in_.features()) / o_.heads;
        const Var of_head = Slice(all, in_.features(), h * width, (h + 1) * width);
        return one_ ? all : Add(absl::StrCat(name, "#"), lines(name, width), of_head, gradient);
      };
      const Var q = part("Q", queries, dq), k = part("K", keys, dk), v = part("V", values, dv);
      const int64_t d_k = q.shape().dim(in_.features());
      const Var a = Add("A#", in_.Product("Q#", "K#ᵀ"), in_.Product(q, k, true), absl::StrCat("dS# / √", d_k));
      const Var s = Add("S#", absl::StrCat("A# / √", d_k), a / std::sqrt(static_cast<double>(d_k)), "P# ∘ (dP# - r#)");
      Var seen = s;
      if (o_.causal) seen = Add("M#", "S# with -inf for later tokens", in_.Turn(CausalMask(in_.Turn(s), kHidden)), "");
      const Var p = Add("P#", absl::StrCat("softmax of each ", in_.token(), " of ", o_.causal ? "M#" : "S#"),
                        in_.Turn(Softmax(in_.Turn(seen))), in_.Product("dY#", "V#ᵀ"));
      results.push_back(Add("Y#", in_.Product("P#", "V#"), in_.Product(p, v),
                            one_ ? dy : lines("dY", v.shape().dim(in_.features()))));
    }
    head_ = "";
    const Var out = one_ ? results[0] : Add("Y", Joined("Y"), Concat(results, in_.features()), dy);
    if (!projects) return out;
    const Var w_o = Input("wo", "W_O", in_.Product("Yᵀ", "dO"));
    return Add("O", in_.Product("Y", "W_O"), in_.Product(out, w_o), of_loss);
  }

  // Records the gradients of the loss, which is the sum of `result`, or of its product with the given gradient.
  void Backward(Var result) {
    std::reverse(gradients_.begin(), gradients_.end());
    VarList by;
    for (const Step& gradient : gradients_) by.push_back(gradient.value);
    const VarList d = Gradient(Sum(given_.contains("gradient") ? result * Input("gradient", "", "") : result), by);
    Var dx;
    for (size_t i = 0; i < d.size(); ++i) {
      const std::string& name = gradients_[i].name;
      steps_.push_back({name, gradients_[i].formula, d[i]});
      if (absl::StartsWith(name, "dX")) dx = dx ? dx + d[i] : d[i];
      if (!absl::StartsWith(name, "dP")) continue;
      head_ = name.substr(2);
      Add("r#", absl::StrCat("sum of each ", in_.token(), " of P# ∘ dP#"),
          Sum(gradients_[i].value * d[i], in_.features(), /*keep=*/true), "");
    }
    if (dx) Add("dX", "dX_Q + dX_K + dX_V", dx, "");
  }

  // Runs the steps. Returns the given matrices and those of all steps, and draws the weights.
  absl::StatusOr<DemoResult> Collect() const {
    VarList fetch;
    for (const Step& step : steps_) fetch.push_back(step.value);
    WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape_, fetch, o_.seed, feeds_));
    DemoResult result;
    for (const auto& [key, name, part] : kInputs) {
      if (given_.contains(key)) result.matrices.push_back(given_.at(key));
    }
    std::vector<HeatMap> maps;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto& [name, formula, value] = steps_[i];
      const int64_t rows = value.shape().dim(0), columns = value.shape().dim(1);
      result.matrices.push_back({name, absl::StrCat(name, " = ", formula), rows, columns, v[i]});
      if (name[0] != 'P') continue;
      maps.push_back(
          {name, o_.columns ? "key" : "query", o_.columns ? "query" : "key", rows, columns, v[i], 0, 1, {}, 1});
    }
    result.picture = DrawHeatMaps("Attention weights of each head", maps);
    return result;
  }

 private:
  // Adds a step unless `formula` is empty, and its gradient unless `gradient`, a formula, is empty. Returns `value`.
  Var Add(const std::string& name, const std::string& formula, Var value, const std::string& gradient) {
    const auto text = [&](const std::string& words) { return absl::StrReplaceAll(words, {{"#", head_}}); };
    if (!formula.empty()) steps_.push_back({text(name), text(formula), value});
    if (!gradient.empty()) gradients_.push_back({text(absl::StrCat("d", name)), text(gradient), value});
    return value;
  }
  Var Input(const char* key, const std::string& name, const std::string& gradient) {
    const DemoMatrix& m = given_.at(key);
    feeds_.emplace_back(tape_.Input(absl::StrCat(key, feeds_.size()), {kF64, ShapeOf(m)}), m.values);
    return Add(name, "", feeds_.back().first, gradient);
  }
  // Returns the queries, keys or values, which are given or the product of X and a weight. X is an input for each of
  // its uses, so that it gets three gradients.
  Var Project(const char* name, const char* key, const std::string& gradient) {
    if (given_.contains("q")) return Input(key, name, gradient);
    const std::string weight = absl::StrCat("W_", name), d = absl::StrCat("d", name);
    const Var x = Input("x", absl::StrCat("X_", name), in_.Product(d, absl::StrCat(weight, "ᵀ")));
    const Var w = Input(absl::StrCat("w", key).c_str(), weight, in_.Product("Xᵀ", d));
    return Add(name, in_.Product("X", weight), in_.Product(x, w), gradient);
  }
  std::string Joined(const char* name) const {
    return absl::StrCat(name, "_1 to ", name, "_", o_.heads, o_.columns ? ", one below the other" : ", side by side");
  }

  const AttentionDemoOptions& o_;
  const Matrices& given_;
  const Layout in_ = {o_.columns};
  const bool one_ = o_.heads == 1;
  Tape tape_;
  std::vector<FeedPair> feeds_;
  std::vector<Step> steps_, gradients_;  // the gradients in the order of their steps, and reversed by Backward
  std::string head_;                     // takes the place of # in names and formulas
};

absl::StatusOr<DemoResult> Run(const AttentionDemoOptions& o) {
  Matrices matrices;
  if (o.matrices.empty()) {
    matrices = DrawMatrices(o);
  } else {
    WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(o.matrices));
    WEFT_ASSIGN_OR_RETURN(matrices, Annotate(ReadMatrices(json), o.matrices));
    WEFT_RETURN_IF_ERROR(Annotate(CheckShapes(o, matrices), o.matrices));
  }
  WEFT_RETURN_IF_ERROR(CheckFlags(o, matrices));
  Recording recording(o, matrices);
  recording.Backward(recording.Forward());
  return recording.Collect();
}

}  // namespace

Demo AttentionDemo() {
  auto options = std::make_shared<AttentionDemoOptions>();
  return {
      .name = "attention",
      .summary = "computes every matrix of a small attention",
      .about =
          "Prints every matrix of attention on a few tokens, forward and backward. The loss is the sum of the "
          "result, unless a file has its gradient. A file may have the queries, keys and values themselves.",
      .example = "--heads=2 --causal",
      .flags = {{"matrices",
                 "a JSON object with x, wq, wk and wv, or with q, k and v; wo and gradient, that of the result, are "
                 "optional",
                 &options->matrices,
                 {.is_path = true}},
                {"columns", "tokens are columns, here and in the file, so Q = W_Q X", &options->columns},
                {"causal", "hide later tokens from each token", &options->causal},
                {"heads", "number of heads, which must divide the widths", &options->heads, {.low = 1, .high = 16}},
                {"tokens",
                 "number of tokens of random matrices",
                 &options->tokens,
                 {.low = 1, .high = 16, .needs = "no matrices"}},
                {"width", "width of random matrices", &options->width, {.low = 1, .high = 16, .needs = "no matrices"}},
                {"seed", "seed of random matrices", &options->seed, {.needs = "no matrices"}}},
      .run = [options] { return Run(*options); }};
}

}  // namespace weft
