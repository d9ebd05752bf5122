// Tests the Vision Transformer: its names and errors, and its values and gradients against PyTorch's in f64.
// tests/peers/pytorch_vit.py computed PyTorch's numbers and describes them.
#include "weft/models/vit.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/safetensors.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

std::string ErrorOf(const VitConfig& config, TensorType images = {kF32, {2, 224, 224, 3}}) {
  Tape tape;
  Vit(config).Logits(tape.Input("images", images));
  return std::string(tape.status().message());
}

TEST(VitTest, TheBaseModelHas86MillionParameters) {
  Tape tape;
  const Var logits = Vit(VitConfig{}).Logits(tape.Input("images", {kF32, {2, 224, 224, 3}}));
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(ToString(logits.type()), "f32[2,1000]");
  int64_t count = 0;
  for (const Var weight : tape.Weights()) count += weight.shape().elements();
  EXPECT_EQ(count, 86567656);  // as torchvision's vit_b_16
}

TEST(VitTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf({}), "");
  EXPECT_THAT(ErrorOf({.patch_size = 15}),
              HasSubstr("an image of height 224 and width 224 can't be cut into patches of patch_size 15"));
  EXPECT_THAT(ErrorOf({.image_width = 200}), HasSubstr("width 200 can't be cut into patches of patch_size 16"));
  EXPECT_THAT(ErrorOf({.patch_size = 0}), HasSubstr("patch_size is 0, but must be at least 1"));
  EXPECT_THAT(ErrorOf({.classes = 0}), HasSubstr("classes is 0, but must be at least 1"));
  EXPECT_THAT(ErrorOf({.heads = 5}), HasSubstr("width 768 is not a multiple of heads 5"));
  EXPECT_THAT(ErrorOf({.dropout = 1}), HasSubstr("dropout is 1, but must be in [0, 1)"));
  EXPECT_THAT(ErrorOf({}, {kF32, {2, 3, 224, 224}}),
              HasSubstr("vit: images must be f32 or f64 [B,224,224,3]: height, width, channels; "
                        "inputs f32[2,3,224,224]; at vit"));
  EXPECT_THAT(ErrorOf({}, {kF32, {224, 224, 3}}), HasSubstr("images must be f32 or f64 [B,224,224,3]"));
  EXPECT_THAT(ErrorOf({}, {kF32, {}}), HasSubstr("images must be f32 or f64 [B,224,224,3]"));
  EXPECT_THAT(ErrorOf({}, {kBF16, {2, 224, 224, 3}}), HasSubstr("images must be f32 or f64 [B,224,224,3]"));
}

// Element i of the script's array 1.
std::vector<double> LossWeights(int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1 + 0.9 + 0.61 * static_cast<double>(i));
  return values;
}

void Check(const SafetensorsFile& file, int number) {
  SCOPED_TRACE(absl::StrCat("configuration ", number));
  const auto theirs = [&](const std::string& name) { return file.Find(absl::StrCat(number, ".", name))->tensor; };
  const absl::Span<const int32_t> c = theirs("config").span<const int32_t>();
  const int64_t batch = c[0];
  const VitConfig config = {.image_height = c[1],
                            .image_width = c[2],
                            .channels = c[3],
                            .patch_size = c[4],
                            .classes = c[5],
                            .layers = c[6],
                            .heads = c[7],
                            .width = c[8],
                            .feed_forward = c[9]};
  Tape tape;
  const Vit vit(config);
  const Var images = tape.Input("images", {kF64, {batch, config.image_height, config.image_width, config.channels}});
  const Var weights = tape.Input("weights", {kF64, {batch, config.classes}});
  const Var hidden = vit.Encode(images), logits = vit.Classify(hidden);
  std::vector<std::pair<std::string, Var>> compared = {{"hidden", hidden}, {"logits", logits}};
  VarList wrt = tape.Weights();
  std::vector<std::string> names;
  for (const Var weight : wrt) names.push_back(tape.ParameterName(weight));
  wrt.push_back(images);
  const VarList gradients = Gradient(Sum(logits * weights), wrt);
  for (size_t i = 0; i < names.size(); ++i) compared.emplace_back("gradient." + names[i], gradients[i]);
  compared.emplace_back("gradient.images", gradients.back());
  VarList fetch;
  for (const auto& [name, value] : compared) fetch.push_back(value);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
  ASSERT_TRUE(graph.ok()) << graph.status();

  // The script's weights have our names and shapes; otherwise Set would refuse them.
  std::vector<NamedTensor> published;
  std::vector<std::string> published_names;
  for (const NamedTensor& named : file.tensors()) {
    const std::string prefix = absl::StrCat(number, ".");
    if (!absl::StartsWith(named.name, prefix)) continue;
    const std::string name = named.name.substr(prefix.size());
    if (!absl::StartsWith(name, "vit.") && !absl::StartsWith(name, "classifier.")) continue;
    published.push_back({name, named.tensor});
    published_names.push_back(name);
  }
  EXPECT_THAT(names, UnorderedElementsAreArray(published_names));
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::Status set = parameters.Set("pytorch_vit.safetensors", published);
  ASSERT_TRUE(set.ok()) << set;

  const std::vector<double> loss_weights = LossWeights(batch * config.classes);
  const absl::StatusOr<Outputs> out = runner.Run({{images, theirs("images")}, {weights, loss_weights}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (const auto& [name, value] : compared) {
    const Tensor wanted = theirs(name);
    ASSERT_EQ(ToString(value.type()), ToString(wanted.type)) << name;
    const absl::Span<const double> got = (*out)[value].span<const double>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted.as<double>()[i], 1e-9) << name << " " << i;
  }
}

TEST(VitTest, ValuesAndGradientsArePyTorchs) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open("tests/peers/pytorch_vit.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  for (int number = 0; number < 2 && !HasFatalFailure(); ++number) Check(*file, number);
}

// tests/peers/vit_masked.py computed these numbers with ViTForMaskedImageModeling.
TEST(VitTest, TheMaskedTaskIsHuggingFaces) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open("tests/peers/vit_masked.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto theirs = [&](const std::string& name) { return file->Find(name)->tensor; };
  const VitConfig config = {.image_height = 6,
                            .image_width = 6,
                            .channels = 2,
                            .patch_size = 2,
                            .layers = 2,
                            .heads = 2,
                            .width = 8,
                            .feed_forward = 12};
  const Vit vit(config);
  Tape tape;
  const Var images = tape.Input("images", theirs("images").type), mask = tape.Input("mask", theirs("mask").type);
  const Var predicted = vit.Reconstruct(vit.Encode(images, {.mask = mask}));
  const Var loss = vit.ReconstructionLoss(predicted, images, mask);
  const VarList weights = tape.Weights(), gradients = Gradient(loss, weights);
  // [B, N, Ch·P·P] to [B, height, width, Ch]
  const Var pixels = Reshape(Permute(Reshape(predicted, {3, 3, 3, 2, 2, 2}), {0, 1, 4, 2, 5, 3}), {3, 6, 6, 2});
  std::vector<std::pair<std::string, Var>> compared = {{"loss", Reshape(loss, {1})}, {"pixels", pixels}};
  std::vector<NamedTensor> published;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string name = tape.ParameterName(weights[i]);
    ASSERT_TRUE(file->Find(name) != nullptr) << name;
    published.push_back({name, theirs(name)});
    compared.emplace_back("gradient." + name, gradients[i]);
  }
  EXPECT_EQ(file->tensors().size(), 4 + 2 * weights.size());  // they have no other weight
  VarList fetch;
  for (const auto& [name, value] : compared) fetch.push_back(value);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::Status set = parameters.Set("vit_masked.safetensors", published);
  ASSERT_TRUE(set.ok()) << set;
  const absl::StatusOr<Outputs> out = runner.Run({{images, theirs("images")}, {mask, theirs("mask")}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (const auto& [name, value] : compared) {
    const Tensor wanted = theirs(name);
    ASSERT_EQ(ToString(value.type()), ToString(wanted.type)) << name;
    const absl::Span<const double> got = (*out)[value].span<const double>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted.as<double>()[i], 1e-9) << name << " " << i;
  }
}

TEST(VitTest, WithoutPlacesTheOrderOfThePatchesDoesNotMatter) {
  const VitConfig config = {
      .image_height = 2, .image_width = 4, .channels = 1, .patch_size = 2, .layers = 1, .heads = 2, .width = 8};
  Tape tape;
  const Var images = tape.Input("images", {kF64, {2, 2, 4, 1}});
  const Var logits = Vit(config).Predict(VitTask::kOrder, images);
  EXPECT_EQ(ToString(logits.type()), "f64[2,2,2]");
  for (const Var weight : tape.Weights()) EXPECT_THAT(tape.ParameterName(weight), Not(HasSubstr("position")));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  // The second picture has the patches of the first one in the other order.
  const std::vector<double> pixels = {1, 2, 5, 6, 3, 4, 7, 8, 5, 6, 1, 2, 7, 8, 3, 4};
  const absl::StatusOr<Outputs> out = runner.Run({{images, pixels}});
  ASSERT_TRUE(out.ok()) << out.status();
  const absl::Span<const double> got = (*out)[logits].span<const double>();
  for (size_t place = 0; place < 2; ++place) {
    EXPECT_NEAR(got[place], got[6 + place], 1e-12);
    EXPECT_NEAR(got[2 + place], got[4 + place], 1e-12);
  }
}

TEST(VitTest, SaysWhichMaskDoesNotFit) {
  Tape tape;
  const Var images = tape.Input("images", {kF32, {2, 224, 224, 3}});
  Vit({}).Encode(images, {.mask = tape.Input("mask", {kF32, {2, 195}})});
  EXPECT_THAT(std::string(tape.status().message()), HasSubstr("the mask must be [B,N] of the images' dtype"));
}

}  // namespace
}  // namespace weft
