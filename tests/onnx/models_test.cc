// Imports the models that PyTorch exported (draw.py), and compares outputs and gradients with PyTorch's.
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/formats/onnx/onnx_model.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/cases/case_file.h"

namespace weft {
namespace {

// Differences that f32 sums in another order make. Those of a gradient are in proportion to its largest element, plus
// a part of the largest element of all gradients: the gradient of a key's bias is 0, except for rounding.
constexpr double kOutput = 1e-5, kGradient = 1e-4, kOfAll = 1e-6;

double Largest(const Tensor& tensor) {
  double largest = 0;
  for (double each : Doubles(tensor)) largest = std::max(largest, std::abs(each));
  return largest;
}

void CheckModel(const CaseFile& file, const Case& exported) {
  SCOPED_TRACE(exported.name);
  const absl::StatusOr<OnnxModel> model = OnnxModel::Parse(exported.model, "");
  ASSERT_TRUE(model.ok()) << model.status();
  Tape tape;
  std::vector<OnnxInput> inputs;
  std::vector<FeedPair> feeds;
  for (size_t i = 0; i < exported.inputs.size(); ++i) {
    const Var x = tape.Input(absl::StrCat("x", i), exported.inputs[i]->type);
    inputs.push_back({absl::StrCat("x", i), x});
    feeds.push_back({x, *exported.inputs[i]});
  }
  const absl::StatusOr<VarList> y = model->Record(&tape, inputs);
  ASSERT_TRUE(y.ok()) << y.status();
  const nlohmann::json& gradients = exported.attributes.at("gradients");
  VarList weights;
  for (const auto& [name, unused] : gradients.items()) weights.push_back(tape.FindParameter(name));
  VarList fetch = Gradient(Mean(Square((*y)[0])), weights);
  fetch.push_back((*y)[0]);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {fetch.begin(), fetch.end()}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  model->Provide(&parameters);
  Runner runner(*graph, &parameters, {.threads = 2});
  const absl::StatusOr<Outputs> run = runner.Run(feeds);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(Difference((*run)[fetch.back()], *exported.outputs[0], kOutput, kOutput), "");
  double worst = 0, all = 0;
  for (const auto& [name, entry] : gradients.items()) all = std::max(all, Largest(file.TensorAt(entry)));
  size_t i = 0;
  for (const auto& [name, entry] : gradients.items()) {
    const Tensor wanted = file.TensorAt(entry), got = (*run)[fetch[i++]];
    EXPECT_EQ(Difference(got, wanted, 0, kGradient * Largest(wanted) + kOfAll * all), "") << name;
    const std::vector<double> a = Doubles(got), b = Doubles(wanted);
    for (size_t k = 0; k < a.size(); ++k) worst = std::max(worst, std::abs(a[k] - b[k]) / all);
  }
  EXPECT_GE(gradients.size(), 3u);
  std::printf("%s: %zu gradients, which differ by at most %.1e of the largest\n", exported.name.c_str(),
              gradients.size(), worst);
}

TEST(ModelsTest, OutputsAndGradientsArePyTorchs) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/onnx/models.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_GE(file->cases().size(), 16u);
  for (const Case& exported : file->cases()) CheckModel(*file, exported);
}

}  // namespace
}  // namespace weft
