#include "weft/models/gpt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "weft/core/safetensors.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const GptConfig& config, TensorType tokens = {kI32, {2, 8}}) {
  Tape tape;
  const int64_t below = tokens.dtype == kI32 ? std::max<int64_t>(config.vocabulary, 1) : 0;
  Gpt(config).Logits(tape.Input("tokens", tokens, {.below = below}));
  return std::string(tape.status().message());
}

TEST(GptTest, HasGpt2sParameterNames) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {2, 8}}, {.below = 5});
  const Var logits = Gpt({.vocabulary = 5, .context = 8, .layers = 1, .heads = 2, .width = 4}).Logits(tokens);
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(ToString(logits.type()), "f32[2,8,5]");
  std::vector<std::string> names;
  for (const ParameterSpec& spec : tape.program().parameters)
    names.push_back(spec.name + " " + ToString(spec.type.shape));
  EXPECT_THAT(names,
              ElementsAre("wte.weight [5,4]", "wpe.weight [8,4]", "h.0.ln_1.weight [4]", "h.0.ln_1.bias [4]",
                          "h.0.attn.c_attn.weight [12,4]", "h.0.attn.c_attn.bias [12]", "h.0.attn.c_proj.weight [4,4]",
                          "h.0.attn.c_proj.bias [4]", "h.0.ln_2.weight [4]", "h.0.ln_2.bias [4]",
                          "h.0.mlp.c_fc.weight [16,4]", "h.0.mlp.c_fc.bias [16]", "h.0.mlp.c_proj.weight [4,16]",
                          "h.0.mlp.c_proj.bias [4]", "ln_f.weight [4]", "ln_f.bias [4]"));
}

TEST(GptTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf({.heads = 3, .width = 100}), HasSubstr("width 100 is not a multiple of heads 3"));
  EXPECT_THAT(ErrorOf({.layers = 0}), HasSubstr("layers is 0, but must be at least 1"));
  EXPECT_THAT(ErrorOf({.dropout = 1}), HasSubstr("dropout is 1, but must be in [0, 1)"));
  EXPECT_THAT(ErrorOf({.context = 4}), HasSubstr("T at most the context 4; inputs i32[2,8]; at gpt"));
  EXPECT_THAT(ErrorOf({}, {kF32, {2, 8}}), HasSubstr("tokens must be i32[B,T]"));
  EXPECT_THAT(ErrorOf({}, {kI32, {}}), HasSubstr("tokens must be i32[B,T]"));
}

// The array "data" of a tensor of partials.json: base64 of little-endian f32.
std::vector<float> Decode(const nlohmann::json& tensor) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(tensor["data"].get<std::string>(), &bytes));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// A minGPT that others trained to sort six digits: its logits on the three inputs that its authors published.
TEST(GptTest, GivesTheLogitsOfATrainedModel) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string folder = absl::StrCat(data, "/gpt-nano-sort/");
  const nlohmann::json partials = nlohmann::json::parse(std::ifstream(folder + "gpt-nano-sort-t0-partials.json"));

  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {3, 11}}, {.below = 3});
  const Gpt gpt({.vocabulary = 3, .context = 11, .layers = 3, .heads = 3, .width = 48, .tied_head = false});
  const Var logits = gpt.Logits(tokens);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(folder + "model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  for (const NamedTensor& weight : file->tensors()) {
    const absl::StatusOr<Tensor> mine = parameters.Find(absl::StripPrefix(weight.name, "transformer."));
    ASSERT_TRUE(mine.ok()) << mine.status();
    ASSERT_EQ(mine->type, weight.tensor.type) << weight.name;
    std::memcpy(mine->data, weight.tensor.data, weight.tensor.type.bytes());
  }

  // The biases of c_attn are in its authors' own file only.
  const nlohmann::json model = nlohmann::json::parse(std::ifstream(folder + "gpt-nano-sort-model.json"));
  for (int i = 0; i < 3; ++i) {
    const std::string name = absl::StrCat("h.", i, ".attn.c_attn.bias");
    const std::vector<float> bias = Decode(model["transformer." + name]);
    const absl::Span<float> mine = parameters.Find(name)->span<float>();
    ASSERT_EQ(mine.size(), bias.size());
    std::copy(bias.begin(), bias.end(), mine.begin());
  }

  std::vector<int32_t> ids;
  for (float id : Decode(partials["idx"])) ids.push_back(static_cast<int32_t>(id));
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[logits].span<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-4f), Decode(partials["lm_head"])));
}

}  // namespace
}  // namespace weft
