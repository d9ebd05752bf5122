// Compares every optimizer with PyTorch's over 50 steps, in f64, and the moving averages of weights with those of
// PyTorch's AveragedModel. tests/pytorch/draw_steps.py computed the weights.
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/cases/case_file.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-9, kAbsolute = 1e-11;
// Rounding to bf16 moves these weights by up to 0.005. optimizer_test tests the dtype of products.
constexpr double kAbsoluteBf16 = 0.01;
constexpr int64_t kSteps = 50, kEach = 10;  // draw_steps.py has the weights after every tenth step

OptimizerSettings SettingsOf(const nlohmann::json& json) {
  const auto number = [&](const char* name) {
    return json.contains(name) ? std::optional<double>(json.at(name)) : std::nullopt;
  };
  OptimizerSettings settings = {.momentum = number("momentum"),
                                .beta2 = number("beta2"),
                                .weight_decay = number("weight_decay"),
                                .rate_decay = number("rate_decay"),
                                .beta2_decay = number("beta2_decay"),
                                .adamw_rate = number("adamw_rate")};
  if (json.contains("nesterov")) settings.nesterov = json.at("nesterov") != 0;
  return settings;
}

// Returns row i of a tensor.
Tensor RowOf(const Tensor& tensor, int64_t i) {
  Tensor row = {{tensor.type.dtype, Shape(tensor.type.shape.dims().subspan(1))}, nullptr};
  row.data = tensor.data + i * static_cast<int64_t>(row.type.bytes());
  return row;
}

void Check(const Case& of) {
  const OptimizerRow* const row = FindOptimizer(std::string(of.attributes.at("optimizer")));
  ASSERT_NE(row, nullptr);
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}});
  VarList weights, gradients;
  std::vector<NamedTensor> values;
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("w", i);
    weights.push_back(tape.Parameter(name, of.inputs[i]->type, Zeros()));
    gradients.push_back(tape.Input(absl::StrCat("g", i), of.inputs[i]->type));
    values.push_back({name, *of.inputs[i]});
  }
  const Optimizer optimizer(*row, SettingsOf(of.attributes.at("settings")));
  const bool bf16 = of.attributes.at("bf16");
  const double relative = bf16 ? 0 : kRelative, absolute = bf16 ? kAbsoluteBf16 : kAbsolute;
  const Minimized step = optimizer.Update(
      weights, gradients, rate, {.average_decay = of.attributes.at("average_decay"), .precision = bf16 ? kBF16 : kF32});
  const absl::StatusOr<Graph> graph = Compile(tape, {.update = {step}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 2});
  ASSERT_TRUE(parameters.Set(of.name, values).ok());
  for (int64_t s = 0; s < kSteps; ++s) {
    const absl::StatusOr<Outputs> out = runner.Run({{rate, float{of.attributes.at("rate")}},
                                                    {gradients[0], RowOf(*of.inputs[2], s)},
                                                    {gradients[1], RowOf(*of.inputs[3], s)}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t i = 0; i < 2 && s % kEach == kEach - 1; ++i) {
      EXPECT_EQ(Difference(*parameters.Find(values[i].name), RowOf(*of.outputs[i], s / kEach), relative, absolute), "")
          << values[i].name << " after step " << s + 1;
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("ema.", values[i].name);
    EXPECT_EQ(Difference(*parameters.Find(name), *of.outputs[2 + i], relative, absolute), "") << name;
  }
}

TEST(PytorchOptimizersTest, FiftySteps) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/pytorch/steps.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  std::set<std::string> names;
  for (const Case& of : file->cases()) {
    if (of.op != "optimizer") continue;
    SCOPED_TRACE(of.name);
    Check(of);
    names.insert(of.attributes.at("optimizer"));
  }
  for (const OptimizerRow& row : Optimizers()) EXPECT_TRUE(names.contains(std::string(row.name))) << row.name;
}

}  // namespace
}  // namespace weft
