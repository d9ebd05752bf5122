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

struct HandOptions {
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
Matrices DrawMatrices(const HandOptions& o) {
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
absl::Status CheckShapes(const HandOptions& o, const Matrices& matrices) {
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
absl::Status CheckFlags(const HandOptions& o, const Matrices& matrices) {
  const Layout in{o.columns};
  const bool direct = matrices.contains("q");
  for (const char* const key : {direct ? "q" : "wq", direct ? "v" : "wv"}) {
    const int64_t width = in.Turn(ShapeOf(matrices.at(key))).dim(1);
    if (width % o.heads == 0) continue;
    return InvalidArgument("heads: ", o.heads, " heads do not divide the ", width, " ", in.feature(), "s of ", key);
  }
  if (!direct || !o.causal) return absl::OkStatus();
  const int64_t queries = in.Turn(ShapeOf(matrices.at("q"))).dim(0), keys = in.Turn(ShapeOf(matrices.at("k"))).dim(0);
  if (queries == keys) return absl::OkStatus();
  return InvalidArgument("causal: got ", queries, " queries and ", keys, " keys, wanted as many of each");
}

// A matrix with the words of its title: "NAME = FORMULA". For a gradient, `value` is that by which it is taken.
struct Step {
  std::string name, formula;
  Var value;
};

absl::StatusOr<DemoResult> Compute(const HandOptions& o, const Matrices& given) {
  const Layout in{o.columns};
  Tape tape;
  std::vector<FeedPair> feeds;
  std::vector<Step> steps, gradients;  // the gradients in the order of their steps
  std::string head;                    // takes the place of # in names and formulas
  const auto add = [&](const char* name, const std::string& formula, Var value, const std::string& gradient) {
    const auto text = [&](const std::string& words) { return absl::StrReplaceAll(words, {{"#", head}}); };
    if (!formula.empty()) steps.push_back({text(name), text(formula), value});
    if (!gradient.empty()) gradients.push_back({text(absl::StrCat("d", name)), text(gradient), value});
    return value;
  };
  const auto input = [&](const char* key, const char* name, const std::string& gradient) {
    const DemoMatrix& m = given.at(key);
    feeds.emplace_back(tape.Input(absl::StrCat(key, feeds.size()), {kF64, ShapeOf(m)}), m.values);
    return add(name, "", feeds.back().first, gradient);
  };
  const bool one = o.heads == 1, projects = given.contains("wo"), upstream = given.contains("gradient");
  const bool direct = given.contains("q");
  const auto joined = [&](const char* name) {
    return absl::StrCat(name, "_1 to ", name, "_", o.heads, o.columns ? ", one below the other" : ", side by side");
  };

  // Returns the queries, keys or values, which are given or the product of X and a weight. X is an input for each of
  // its uses, so that it gets three gradients.
  const auto project = [&](const char* name, const char* key, const std::string& gradient) {
    if (direct) return input(key, name, gradient);
    const std::string weight = absl::StrCat("W_", name), d = absl::StrCat("d", name);
    const Var x = input("x", absl::StrCat("X_", name).c_str(), in.Product(d, absl::StrCat(weight, "ᵀ")));
    const Var w = input(absl::StrCat("w", key).c_str(), weight.c_str(), in.Product("Xᵀ", d));
    return add(name, in.Product("X", weight), in.Product(x, w), gradient);
  };
  const std::string dq = in.Product("dA#", "K#"), dk = in.Product("dA#ᵀ", "Q#"), dv = in.Product("P#ᵀ", "dY#");
  const Var queries = project("Q", "q", one ? dq : joined("dQ"));
  const Var keys = project("K", "k", one ? dk : joined("dK"));
  const Var values = project("V", "v", one ? dv : joined("dV"));
  VarList results;
  const std::string of_loss = upstream ? "gradient" : "ones, as the loss is the sum";
  const std::string dy = projects ? in.Product("dO", "W_Oᵀ") : of_loss;
  for (int64_t h = 0; h < o.heads; ++h) {
    if (!one) head = absl::StrCat("_", h + 1);
    const auto lines = [&](const char* name, int64_t width) {
      return absl::StrCat(in.feature(), "s ", h * width + 1, " to ", (h + 1) * width, " of ", name);
    };
    const auto part = [&](const char* name, Var all, const std::string& gradient) {
      const int64_t width = all.shape().dim(in.features()) / o.heads;
      const Var of_head = Slice(all, in.features(), h * width, (h + 1) * width);
      return one ? all : add(absl::StrCat(name, "#").c_str(), lines(name, width), of_head, gradient);
    };
    const Var q = part("Q", queries, dq), k = part("K", keys, dk), v = part("V", values, dv);
    const int64_t d_k = q.shape().dim(in.features());
    const Var a = add("A#", in.Product("Q#", "K#ᵀ"), in.Product(q, k, true), absl::StrCat("dS# / √", d_k));
    const Var s = add("S#", absl::StrCat("A# / √", d_k), a / std::sqrt(static_cast<double>(d_k)), "P# ∘ (dP# - r#)");
    Var seen = s;
    if (o.causal) seen = add("M#", "S# with -inf for later tokens", in.Turn(CausalMask(in.Turn(s), kHidden)), "");
    const Var p = add("P#", absl::StrCat("softmax of each ", in.token(), " of ", o.causal ? "M#" : "S#"),
                      in.Turn(Softmax(in.Turn(seen))), in.Product("dY#", "V#ᵀ"));
    results.push_back(
        add("Y#", in.Product("P#", "V#"), in.Product(p, v), one ? dy : lines("dY", v.shape().dim(in.features()))));
  }
  head = "";
  Var out = one ? results[0] : add("Y", joined("Y"), Concat(results, in.features()), dy);
  if (projects) {
    const Var w_o = input("wo", "W_O", in.Product("Yᵀ", "dO"));
    out = add("O", in.Product("Y", "W_O"), in.Product(out, w_o), of_loss);
  }
  std::reverse(gradients.begin(), gradients.end());
  VarList by, fetch;
  for (const Step& gradient : gradients) by.push_back(gradient.value);
  const VarList d = Gradient(Sum(upstream ? out * input("gradient", "", "") : out), by);
  Var dx;
  for (size_t i = 0; i < d.size(); ++i) {
    const std::string& name = gradients[i].name;
    steps.push_back({name, gradients[i].formula, d[i]});
    if (absl::StartsWith(name, "dX")) dx = dx ? dx + d[i] : d[i];
    if (!absl::StartsWith(name, "dP")) continue;
    head = name.substr(2);
    add("r#", absl::StrCat("sum of each ", in.token(), " of P# ∘ dP#"),
        Sum(gradients[i].value * d[i], in.features(), /*keep=*/true), "");
  }
  if (dx) add("dX", "dX_Q + dX_K + dX_V", dx, "");
  for (const Step& step : steps) fetch.push_back(step.value);
  WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, fetch, o.seed, feeds));

  DemoResult result;
  for (const auto& [key, name, part] : kInputs) {
    if (given.contains(key)) result.matrices.push_back(given.at(key));
  }
  std::vector<HeatMap> maps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& [name, formula, value] = steps[i];
    const int64_t rows = value.shape().dim(0), columns = value.shape().dim(1);
    result.matrices.push_back({name, absl::StrCat(name, " = ", formula), rows, columns, v[i]});
    if (name[0] != 'P') continue;
    maps.push_back({name, o.columns ? "key" : "query", o.columns ? "query" : "key", rows, columns, v[i], 0, 1, {}, 1});
  }
  result.picture = DrawHeatMaps("Attention weights of each head", maps);
  return result;
}

absl::StatusOr<DemoResult> Run(const HandOptions& o) {
  Matrices matrices;
  if (o.matrices.empty()) {
    matrices = DrawMatrices(o);
  } else {
    WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(o.matrices));
    WEFT_ASSIGN_OR_RETURN(matrices, Annotate(ReadMatrices(json), o.matrices));
    WEFT_RETURN_IF_ERROR(Annotate(CheckShapes(o, matrices), o.matrices));
  }
  WEFT_RETURN_IF_ERROR(CheckFlags(o, matrices));
  return Compute(o, matrices);
}

}  // namespace

Demo AttentionDemo() {
  auto options = std::make_shared<HandOptions>();
  return {
      .name = "attention",
      .summary = "computes every matrix of a small attention",
      .about =
          "Prints every matrix of attention on a few tokens, forward and backward. The loss is the sum of the "
          "result, unless a file has its gradient. A file may have the queries, keys and values themselves.",
      .example = "--heads=2 --causal",
      .flags = {{"matrices",
                 "a JSON object with the matrices x, wq, wk and wv, or with q, k and v. It may have wo, and the "
                 "result's gradient "
                 "as the key gradient",
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
