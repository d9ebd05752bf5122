#include "weft/core/parameters.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/safetensors.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::vector<ParameterSpec> Specs() {
  return {{"mlp.weight", {kF32, {4, 3}}, Gaussian(1)},
          {"mlp.bias", {kF32, {4}}, Zeros()},
          {"adamw.m.mlp.bias", {kF32, {4}}, Zeros(), ParameterKind::kState}};
}

// Caches are neither counted nor saved, and a file without caches is complete.
TEST(ParametersTest, CachesAreNotSaved) {
  Parameters with, without;
  std::vector<ParameterSpec> specs = {{"w", {kF32, {4}}, Gaussian(1)},
                                      {"m", {kF32, {4}}, Zeros(), ParameterKind::kState}};
  ASSERT_TRUE(without.Create(specs).ok());
  specs.push_back({"cache", {kF32, {1000}}, Zeros(), ParameterKind::kCache});
  ASSERT_TRUE(with.Create(specs).ok());
  EXPECT_EQ(with.ElementCount(Parameters::kAll), 8);
  const std::string path = Path("without_caches.safetensors");
  ASSERT_TRUE(with.Save(path, Parameters::kAll).ok());
  EXPECT_TRUE(without.Load(path, Parameters::kAll).ok());
  EXPECT_TRUE(with.Load(path, Parameters::kAll).ok());
  EXPECT_TRUE(with.Find("cache").ok());
  specs.back().kind = ParameterKind::kState;
  EXPECT_EQ(with.Create(specs).message(), "parameter 'cache' is a cache here, but the graph wants a state");
}

TEST(ParametersTest, FrozenWeightsAreWeightsButNotTrained) {
  Parameters parameters;
  const std::vector<ParameterSpec> specs = {{"base", {kF32, {4}}, Gaussian(1), ParameterKind::kFrozen},
                                            {"m", {kF32, {2}}, Zeros(), ParameterKind::kState},
                                            {"w", {kF32, {2}}, Gaussian(1)}};
  ASSERT_TRUE(parameters.Create(specs).ok());
  EXPECT_THAT(parameters.Names(Parameters::kTrained), ElementsAre("w"));
  EXPECT_THAT(parameters.Names(Parameters::kWeights), ElementsAre("base", "w"));
  EXPECT_EQ(parameters.ElementCount(Parameters::kTrained), 2);
  EXPECT_EQ(parameters.ElementCount(Parameters::kAll), 8);
  std::vector<ParameterSpec> trained = {specs[0]};
  trained[0].kind = ParameterKind::kWeight;
  EXPECT_EQ(parameters.Create(trained).message(),
            "parameter 'base' is a frozen weight here, but the graph wants a weight");
}

std::vector<float> Values(const Parameters& parameters, absl::string_view name) {
  const absl::StatusOr<Tensor> tensor = parameters.Find(name);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  const auto span = tensor->span<float>();
  return {span.begin(), span.end()};
}

TEST(ParametersTest, CreatesOnceFromSeedAndName) {
  Parameters a({.seed = 1}), b({.seed = 1}), other({.seed = 2});
  ASSERT_TRUE(a.Create(Specs()).ok());
  std::vector<ParameterSpec> reversed = Specs();
  std::reverse(reversed.begin(), reversed.end());
  ASSERT_TRUE(b.Create(reversed).ok());
  ASSERT_TRUE(other.Create(Specs()).ok());
  EXPECT_EQ(Values(a, "mlp.weight"), Values(b, "mlp.weight"));
  EXPECT_NE(Values(a, "mlp.weight"), Values(other, "mlp.weight"));

  a.Find("mlp.bias")->as<float>()[0] = 7;
  ASSERT_TRUE(a.Create(Specs()).ok());
  EXPECT_EQ(Values(a, "mlp.bias")[0], 7);  // an existing parameter keeps its values
}

TEST(ParametersTest, NamesAndCounts) {
  Parameters parameters;
  ASSERT_TRUE(parameters.Create(Specs()).ok());
  EXPECT_THAT(parameters.Names(), ElementsAre("adamw.m.mlp.bias", "mlp.bias", "mlp.weight"));
  EXPECT_THAT(parameters.Names(Parameters::kWeights), ElementsAre("mlp.bias", "mlp.weight"));
  EXPECT_EQ(parameters.ElementCount(), 16);
  EXPECT_EQ(parameters.ElementCount(Parameters::kAll), 20);
}

TEST(ParametersTest, RefusesAnotherTypeAndCreatesNothing) {
  Parameters parameters;
  ASSERT_TRUE(parameters.Create(Specs()).ok());
  const std::vector<ParameterSpec> specs = {{"new", {kF32, {}}, Zeros()}, {"mlp.bias", {kF64, {4}}, Zeros()}};
  const absl::Status status = parameters.Create(specs);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'mlp.bias' is f32[4] here, but the graph wants f64[4]"));
  EXPECT_EQ(parameters.Find("new").status().code(), absl::StatusCode::kNotFound);
}

TEST(ParametersTest, FindSuggestsANearName) {
  Parameters parameters;
  ASSERT_TRUE(parameters.Create(Specs()).ok());
  EXPECT_THAT(std::string(parameters.Find("mlp.wieght").status().message()), HasSubstr("did you mean 'mlp.weight'?"));
}

TEST(ParametersTest, SavesAndLoads) {
  for (const auto selection : {Parameters::kWeights, Parameters::kAll}) {
    Parameters saved({.seed = 1}), loaded({.seed = 2});
    ASSERT_TRUE(saved.Create(Specs()).ok());
    ASSERT_TRUE(loaded.Create(Specs()).ok());
    saved.Find("adamw.m.mlp.bias")->as<float>()[1] = 5;
    const std::string path = Path("saved.safetensors");
    ASSERT_TRUE(saved.Save(path, selection).ok());
    ASSERT_TRUE(loaded.Load(path, selection).ok());
    EXPECT_EQ(Values(saved, "mlp.weight"), Values(loaded, "mlp.weight"));
    EXPECT_EQ(Values(loaded, "adamw.m.mlp.bias")[1], selection == Parameters::kAll ? 5 : 0);
    EXPECT_EQ(saved.Save(Path("no/folder/x"), selection).code(), absl::StatusCode::kNotFound);
  }
}

TEST(ParametersTest, LoadListsWhatDoesNotFitAndChangesNothing) {
  Parameters file, parameters({.seed = 3});
  ASSERT_TRUE(file.Create({{"mlp.weight", {kF32, {4, 3}}, Zeros()},
                           {"extra", {kF32, {2}}, Zeros()},
                           {"mlp.bias", {kF32, {5}}, Zeros()}})
                  .ok());
  const std::string path = Path("unfit.safetensors");
  ASSERT_TRUE(file.Save(path).ok());
  std::vector<ParameterSpec> specs = Specs();
  specs.push_back({"head", {kF32, {}}, Zeros()});
  ASSERT_TRUE(parameters.Create(specs).ok());
  const std::vector<float> before = Values(parameters, "mlp.weight");
  const absl::Status status = parameters.Load(path);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr(path));
  EXPECT_THAT(message, HasSubstr("missing 'head' f32[]"));
  EXPECT_THAT(message, HasSubstr("unexpected 'extra' f32[2]"));
  EXPECT_THAT(message, HasSubstr("'mlp.bias' is f32[5], wanted f32[4]"));
  EXPECT_EQ(Values(parameters, "mlp.weight"), before);
}

TEST(ParametersTest, WhatWouldBeDrawnIsZeroWhereValuesFollow) {
  Parameters parameters({.seed = 3, .draw = false});
  ASSERT_TRUE(parameters.Create({{"a", {kF32, {3}}, Gaussian(1)}, {"b", {kF32, {2}}, Ones()}}).ok());
  EXPECT_EQ(Values(parameters, "a"), std::vector<float>(3, 0));
  EXPECT_EQ(Values(parameters, "b"), std::vector<float>(2, 1));
}

TEST(ParametersTest, PiecesHaveTheRowsOfTheWholeWeight) {
  for (const Initializer& initializer : {Gaussian(1), XavierUniform(), Orthogonal(2), Constant(3)}) {
    const std::vector<ParameterSpec> specs = {{"w", {kF32, {6, 2, 4}}, initializer}, {"b", {kF32, {5}}, Zeros()}};
    Parameters whole({.seed = 7}), pieces({.seed = 7});
    ASSERT_TRUE(whole.Create(specs).ok());
    ASSERT_TRUE(pieces.Create({&specs[1], 1}).ok());
    EXPECT_FALSE(pieces.divided());
    ASSERT_TRUE(pieces.CreatePieces(specs[0], {{"w[2:5]", 2, 5}, {"w[11:12]", 11, 12}}).ok());
    EXPECT_TRUE(pieces.divided());
    const std::vector<float> all = Values(whole, "w");
    EXPECT_EQ(Values(pieces, "w[2:5]"), std::vector<float>(all.begin() + 8, all.begin() + 20));
    EXPECT_EQ(Values(pieces, "w[11:12]"), std::vector<float>(all.begin() + 44, all.end()));
    EXPECT_EQ(pieces.ElementCount(), 53);
    EXPECT_EQ(pieces.Find("w[2:5]")->type, (TensorType{kF32, {3, 4}}));
    EXPECT_THAT(std::string(pieces.Create(specs).message()), HasSubstr("the ranks have divided the weight 'w'"));
    EXPECT_THAT(std::string(whole.CreatePieces(specs[0], {}).message()), HasSubstr("'w' exists as a whole"));
  }
  Parameters parameters;
  EXPECT_EQ(parameters.CreatePieces({"w", {kF32, {6, 4}}, Zeros()}, {{"w[4:7]", 4, 7}}).message(),
            "'w[4:7]', rows 4 to 7, is no new piece of 'w' f32[6,4]");
}

TEST(ParametersTest, ProvidedTensorsAreUsedWithoutACopyOrConverted) {
  auto values = std::make_shared<std::vector<float>>(2 * 50, 0.5f);
  const Tensor tensor = {{kF32, {2, 50}}, reinterpret_cast<std::byte*>(values->data())};
  Parameters parameters;
  parameters.Provide({{"same", tensor}, {"stored", tensor}, {"other", tensor}}, values);
  EXPECT_EQ(parameters.Find("same")->data, tensor.data);
  EXPECT_TRUE(parameters.Names().empty());
  ASSERT_TRUE(parameters.Create({{{"same", {kF32, {2, 50}}}, {"stored", {kQ8_0, {2, 50}}}}}).ok());
  EXPECT_EQ(parameters.Find("same")->data, tensor.data);
  EXPECT_EQ(parameters.Find("stored")->type.dtype, kQ8_0);
  EXPECT_NE(parameters.Find("stored")->data, tensor.data);
  parameters.Provide({{"decoded", *parameters.Find("stored")}}, values);
  ASSERT_TRUE(parameters.Create({{{"decoded", {kF32, {2, 50}}}}}).ok());
  EXPECT_NEAR(parameters.Find("decoded")->as<float>()[70], 0.5, 1e-3);
  EXPECT_THAT(parameters.Names(), ElementsAre("decoded", "same", "stored"));
  const absl::Status status = parameters.Create({{{"new", {kF32, {3}}}, {"other", {kF32, {3}}}}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("'other' is given as f32[2,50], but the graph wants f32[3]"));
  EXPECT_FALSE(parameters.Find("new").ok());
  const std::weak_ptr<std::vector<float>> kept = values;
  values.reset();
  EXPECT_FALSE(kept.expired());
}

TEST(ParametersTest, OneRunnerAtATime) {
  Parameters parameters;
  EXPECT_TRUE(parameters.TryLock());
  EXPECT_FALSE(parameters.TryLock());
  parameters.Unlock();
  EXPECT_TRUE(parameters.TryLock());
}

TEST(ParametersTest, IsNeitherSavedNorLoadedWhileARunHasNotEnded) {
  Parameters parameters;
  ASSERT_TRUE(parameters.Create({{"w", {kF32, {2}}, Ones()}}).ok());
  const std::string path = testing::TempDir() + "/busy.safetensors";
  ASSERT_TRUE(parameters.Save(path).ok());
  ASSERT_TRUE(parameters.TryLock());
  EXPECT_EQ(parameters.Save(path).message(),
            "cannot save " + path + ": these parameters are in use: a call of Run, Save or Load has not ended");
  EXPECT_EQ(parameters.Load(path).message(),
            "cannot load " + path + ": these parameters are in use: a call of Run, Save or Load has not ended");
  parameters.Unlock();
  EXPECT_TRUE(parameters.Load(path).ok());
}

}  // namespace
}  // namespace weft
