// The folders of tests/peers/peft hold models and adapters that PEFT wrote, and the logits that PEFT computed.
#include "weft/formats/adapters.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/safetensors.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/lora.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPeft[] = "tests/peers/peft/";

Var RecordLogits(const PublishedModel& model, Var tokens) {
  if (const auto* const gpt = std::get_if<PublishedGpt>(&model)) return Gpt(gpt->config).Logits(tokens);
  const Bert bert(std::get<PublishedBert>(model).config);
  return bert.Classify(bert.Pool(bert.Encode(tokens)), 3);
}

// Compares the logits of the model with PEFT's for `adapter`. With `lora`, the model has adapters; `tensors` are its
// weights.
void CheckLogits(const std::string& adapter, const PublishedModel& model, const LoraOptions& lora,
                 absl::Span<const NamedTensor> tensors) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(absl::StrCat(adapter, "/logits.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  Tape tape;
  const Var tokens = tape.Input("tokens", file->Find("tokens")->tensor.type, {.below = 29});
  Var logits;
  {
    const LoraScope scope(&tape, lora);
    logits = RecordLogits(model, tokens);
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const absl::Status set = parameters.Set(adapter, tensors);
  ASSERT_TRUE(set.ok()) << set;
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, file->Find("tokens")->tensor}});
  ASSERT_TRUE(out.ok()) << out.status();
  const absl::Span<const float> got = (*out)[logits].span<const float>();
  const Tensor wanted = file->Find("logits")->tensor;
  ASSERT_EQ(static_cast<int64_t>(got.size()), wanted.type.shape.elements());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted.as<float>()[i], 1e-5) << i;
}

TEST(AdaptersTest, MergedAdaptersGivePeftsLogits) {
  for (const char* const name :
       {"bert_adapter", "gpt2_adapter", "gpt2_embedding", "gpt2_head", "gpt2_saved_embedding", "gpt2_saved_head",
        "gpt2_saved_both", "gpt2_still_tied", "gpt2_saved_layer", "gpt2_patterns", "gpt2_all_biases",
        "gpt2_lora_biases", "gpt2_orthogonal", "bert_embedding", "bert_saved_pooler"}) {
    SCOPED_TRACE(name);
    const std::string folder = absl::StrCat(kPeft, name);
    const absl::StatusOr<PublishedModel> model = ReadModel(folder);
    ASSERT_TRUE(model.ok()) << model.status();
    CheckLogits(folder, *model, {}, WeightsOf(*model).tensors());
  }
}

// Layers of GPT-J have other names in Hugging Face than in Weft, and PEFT knows the former.
TEST(AdaptersTest, AdaptersHaveTheNamesOfTheirBase) {
  const std::string base = "tests/published/gptj", folder = absl::StrCat(testing::TempDir(), "/gptj_adapter");
  const absl::StatusOr<PublishedGpt> before = ReadModelOf<PublishedGpt>(base);
  ASSERT_TRUE(before.ok()) << before.status();
  const LoraOptions lora = {.rank = 2, .targets = "*.o_proj,*.up_proj"};
  Tape tape;
  Var logits;
  {
    const LoraScope scope(&tape, lora);
    logits = Gpt(before->config).Logits(tape.Input("tokens", {kI32, {1, 8}}, {.below = before->config.vocabulary}));
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  const Runner runner(*graph, &parameters);
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    for (float& value : parameters.Find(name)->span<float>()) value = 0.25f;
  }
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteAdapter(folder, {.lora = lora, .base = base, .model_type = "gptj"}, parameters).ok());
  const absl::StatusOr<Weights> written = Weights::Read(folder + "/adapter_model.safetensors");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_NE(written->Find("base_model.model.transformer.h.1.attn.out_proj.lora_A.weight"), nullptr);
  EXPECT_NE(written->Find("base_model.model.transformer.h.0.mlp.fc_in.lora_B.weight"), nullptr);
  const absl::StatusOr<PublishedGpt> merged = ReadModelOf<PublishedGpt>(folder);
  ASSERT_TRUE(merged.ok()) << merged.status();
  // alpha / rank · B·A is 16 / 2 · 2 · 0.25 · 0.25 = 1 everywhere.
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  EXPECT_FLOAT_EQ(merged->weights.Find(name)->as<float>()[5], before->weights.Find(name)->as<float>()[5] + 1);
}

// Returns the adapter's tensors with this project's names. `prefix`: of the layers' names in Hugging Face.
std::vector<NamedTensor> Adapter(const Weights& file, absl::string_view prefix) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : file.tensors()) {
    absl::string_view own = absl::StripPrefix(name, "base_model.model.");
    absl::ConsumePrefix(&own, prefix);
    tensors.push_back({std::string(own), tensor});
  }
  return tensors;
}

void CheckSeparate(const std::string& name, absl::string_view prefix, const LoraOptions& lora) {
  SCOPED_TRACE(name);
  const std::string folder = absl::StrCat(kPeft, name, "_adapter");
  const absl::StatusOr<PublishedModel> base = ReadModel(kPeft + name);
  ASSERT_TRUE(base.ok()) << base.status();
  const absl::StatusOr<Weights> file = Weights::Read(absl::StrCat(folder, "/", kAdapterWeights));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<NamedTensor> tensors = Adapter(*file, prefix);
  for (const NamedTensor& named : WeightsOf(*base).tensors()) {
    if (named.name.rfind("classifier.", 0) != 0) tensors.push_back(named);  // the adapter has a classifier
  }
  CheckLogits(folder, *base, lora, tensors);
}

TEST(AdaptersTest, SeparateAdaptersGivePeftsLogits) {
  CheckSeparate("bert", "bert.", {.rank = 3, .alpha = 5, .dropout = 0.1, .targets = "*.query,encoder.*.dense"});
  CheckSeparate("gpt2", "transformer.", {.rank = 2, .alpha = 6, .targets = "*.c_attn,*.c_proj"});
}

class AdapterFilesTest : public ::testing::Test {
 protected:
  // Returns the message of reading an adapter with this configuration.
  std::string Error(const std::string& config) {
    const std::string folder = ::testing::TempDir() + "/adapter";
    std::filesystem::create_directories(folder);
    EXPECT_TRUE(WriteFile(absl::StrCat(folder, "/", kAdapterConfig), {config}).ok());
    return std::string(ReadModel(folder).status().message());
  }
};

TEST_F(AdapterFilesTest, RefusesWhatIsNotPlainLora) {
  EXPECT_THAT(Error(R"({"peft_type": "IA3"})"), HasSubstr("adapter_config.json: peft_type is \"IA3\", which is not"));
  for (const auto& [key, value] : {std::pair{"use_dora", "true"},
                                   {"rank_pattern", R"({"a.*": 1})"},
                                   {"alpha_pattern", R"({"a": 0})"},
                                   {"init_lora_weights", R"("pissa_niter_4")"},
                                   {"init_lora_weights", R"("corda")"},
                                   {"init_lora_weights", R"("loftq")"},
                                   {"lora_bias", "true"},
                                   {"trainable_token_indices", "[1]"},
                                   {"layer_replication", "[[0,1]]"},
                                   {"use_bdlora", R"({"nblocks": 2})"},
                                   {"kasa_config", R"({"beta": 1})"},
                                   {"use_rslora", "1"},
                                   {"modules_to_save", "[1]"}}) {
    EXPECT_THAT(Error(absl::StrCat(R"({"peft_type": "LORA", "r": 2, ")", key, "\": ", value, "}")),
                HasSubstr(absl::StrCat(key, " is ")));
  }
  EXPECT_THAT(Error(R"({"peft_type": "LORA", "use_new": 1})"), HasSubstr("'use_new' is 1, but no key that is known"));
  EXPECT_THAT(Error(R"({"peft_type": "LORA", "r": 0, "lora_alpha": 4})"), HasSubstr("r is 0, which is not supported"));
  const std::string lora = R"("peft_type": "LORA", "r": 2, "lora_alpha": 4)";
  EXPECT_THAT(Error("{" + lora + R"(, "base_model_name_or_path": "none"})"),
              HasSubstr("base_model_name_or_path is \"none\", wanted the path of the base model's folder"));
  EXPECT_THAT(Error("{" + lora + R"(, "base_model_name_or_path": "../adapter"})"), HasSubstr("is an adapter, too"));
  EXPECT_THAT(std::string(FindFamily(::testing::TempDir() + "/adapter").status().message()),
              HasSubstr("is an adapter, too"));
}

// Without one of these keys, an adapter of PEFT would give other logits.
TEST_F(AdapterFilesTest, TheTensorsMustBeThoseOfTheKeys) {
  const std::string from = absl::StrCat(kPeft, "gpt2_saved_embedding/");
  const std::string base = std::filesystem::absolute(absl::StrCat(kPeft, "gpt2")).string();
  const std::string folder = ::testing::TempDir() + "/adapter";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(from + kAdapterWeights, absl::StrCat(folder, "/", kAdapterWeights),
                             std::filesystem::copy_options::overwrite_existing);
  const auto error = [&](const std::string& keys) {
    return Error(R"({"peft_type": "LORA", "base_model_name_or_path": ")" + base + "\", " + keys + "}");
  };
  EXPECT_EQ(error(R"("r": 2, "modules_to_save": ["wte"])"), "");
  EXPECT_THAT(error(R"("r": 4, "modules_to_save": ["wte"])"),
              HasSubstr("'transformer.h.0.attn.c_attn.lora_A.weight' is f32[2,8], but the rank is 4"));
  EXPECT_THAT(error(R"("r": 2, "rank_pattern": {"c_attn": 1}, "modules_to_save": ["wte"])"),
              HasSubstr("but the rank is 1"));
  // PEFT would leave the tensors of layers out that these keys do not name.
  const std::string saved = R"("r": 2, "modules_to_save": ["wte"], )", other = "is of no layer that target_modules";
  for (const char* const right :
       {R"("target_modules": ["c_attn"])", R"("target_modules": "all-linear")",
        R"("target_modules": ["c_attn", "c_fc"], "layers_to_transform": [1, 0])",
        R"("target_modules": ["c_attn"], "layers_to_transform": [0, 1], "layers_pattern": "h")",
        R"("target_modules": ["attn.c_attn"], "exclude_modules": ["c_fc"])"}) {
    EXPECT_EQ(error(saved + right), "") << right;
  }
  for (const char* const wrong :
       {R"("target_modules": ["c_fc", "attn"])", R"("target_modules": ["c_attn"], "layers_to_transform": 0)",
        R"("target_modules": ["c_attn"], "layers_to_transform": [0], "layers_pattern": ["layers"])",
        R"("target_modules": ["c_attn"], "exclude_modules": ["c_attn"])"}) {
    EXPECT_THAT(error(saved + wrong), HasSubstr(other)) << wrong;
  }
  EXPECT_THAT(error(saved + R"("target_modules": [1])"), HasSubstr("target_modules is [1], which is not supported"));

  // With bias "all", PEFT also writes the biases of both copies of a saved layer, and reads neither.
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(from + kAdapterWeights);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<NamedTensor> tensors(file->tensors().begin(), file->tensors().end());
  for (const char* const copy : {"modules_to_save.bias", "original_module.bias", "other.bias"}) {
    tensors.push_back({absl::StrCat("base_model.model.transformer.wte.", copy), tensors[0].tensor});
    ASSERT_TRUE(WriteSafetensors(absl::StrCat(folder, "/", kAdapterWeights), tensors).ok());
    const bool skipped = copy != absl::string_view("other.bias");
    EXPECT_EQ(error(R"("r": 2, "modules_to_save": ["wte"])").empty(), skipped) << copy;
  }
}

TEST(AdaptersTest, SaysWhatDoesNotFit) {
  std::vector<float> values(12);
  const auto tensor = [&](std::string name, Shape shape) {
    return NamedTensor{std::move(name), {{kF32, shape}, reinterpret_cast<std::byte*>(values.data())}};
  };
  Arena arena;
  EXPECT_EQ(
      MergeAdapters({tensor("a.weight", {3, 4}), tensor("a.lora_A.weight", {2, 4})}, 1, &arena).status().message(),
      "'a.lora_A.weight' is only one of the adapter's tensors; wanted both lora_A.weight and lora_B.weight");
  EXPECT_EQ(
      MergeAdapters({tensor("a.weight", {3, 4}), tensor("a.lora_A.weight", {2, 4}), tensor("a.lora_B.weight", {4, 2})},
                    1, &arena)
          .status()
          .message(),
      "the adapter of 'a.weight' f32[3,4] has A f32[2,4] and B f32[4,2]; wanted f32 [rank, in] and [out, rank]");
}

}  // namespace
}  // namespace weft
