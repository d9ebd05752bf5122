// `weft quantize` as a user calls it. What the commands print for a quantized folder must be what they print for the
// original with --weights, since both hold the same bytes.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

class QuantizeTest : public WeftProgramTest {
 protected:
  CommandResult Quantize(const std::string& model, const std::string& out, const Arguments& more = {}) const {
    return Weft(Arguments{"quantize", model, "--out=" + out} + more);
  }
  // Quantizes `model` in each format. Expects that `command` prints the same with the folder as with the original.
  void ExpectSame(const std::string& model, const Arguments& command, const Arguments& how = {}) const {
    std::string f32, outputs;
    for (const std::string format : {"f32", "bf16", "f16", "q8_0", "q4_0", "q4_1", "q4_k"}) {
      const std::string folder = absl::StrCat(absl::StrReplaceAll(model, {{"@", "_"}}), "-", format),
                        weights = "--weights=" + format;
      ASSERT_TRUE(Works(Quantize(model, folder, Arguments{weights} + how)));
      const CommandResult original = Weft(command + Arguments{"--model=" + model, weights});
      const CommandResult quantized = Weft(command + Arguments{"--model=" + folder});
      EXPECT_TRUE(Works(original));
      EXPECT_TRUE(Works(quantized));
      EXPECT_EQ(original.out, quantized.out) << folder;
      (format == "f32" ? f32 : outputs) += original.out;
    }
    EXPECT_NE(outputs, f32 + f32 + f32) << "no format changes anything, so nothing is quantized";
  }
};

const Arguments kWide = {"--width=64", "--heads=2", "--feed-forward=64"};

TEST_F(QuantizeTest, AGptWithUnusualOptions) {
  MakeRun("run", kWide + Arguments{"--gated", "--norm=rms-norm", "--rotary=pairs", "--bias=false"});
  ExpectSame("run", {"generate", "--prompt=a", "--length=5", "--json", "--logprobs=1"});
  const Json config = Json::parse(Read("run-q8_0/config.json"));
  EXPECT_EQ(config["format"], "weft");
  EXPECT_EQ(config["weights"], "q8_0");
  const absl::StatusOr<PublishedModel> model = ReadModel(Path("run-q8_0"));
  ASSERT_TRUE(model.ok()) << model.status();
  const Weights& weights = std::get<PublishedGpt>(*model).weights;
  EXPECT_EQ(weights.Find("h.0.attn.c_attn.weight")->type.dtype, kQ8_0);
  EXPECT_EQ(weights.Find("h.0.ln_1.weight")->type.dtype, kF32);
  // A folder that is quantized again keeps its bytes, and one in f32 is read in any format.
  ASSERT_TRUE(Works(Quantize("run-q8_0", "again")));
  EXPECT_EQ(Snapshot("again"), Snapshot("run-q8_0"));
  const Arguments generate = {"generate", "--prompt=a", "--length=5", "--json", "--logprobs=1", "--weights=q4_0"};
  EXPECT_EQ(Weft(generate + Arguments{"--model=run-f32"}).out, Weft(generate + Arguments{"--model=run"}).out);
}

TEST_F(QuantizeTest, RowsThatAreNoBlocksOf256) {
  MakeRun("run", {"--width=64", "--heads=2", "--feed-forward=256", "--layers=1"});
  for (const auto& [wanted, other, dtype] : {std::tuple{"q4_k", "q5_0", kQ4_K}, {"q6_k", "q8_0", kQ6_K}}) {
    const CommandResult quantized = Quantize("run", wanted, {absl::StrCat("--weights=", wanted)});
    EXPECT_THAT(quantized.out, HasSubstr(absl::StrCat("h.0.attn.c_attn.weight: ", other,
                                                      ", because its rows are no multiple of 256\n")));
    EXPECT_THAT(quantized.out, Not(HasSubstr("mlp.c_proj")));
    const absl::StatusOr<PublishedModel> model = ReadModel(Path(wanted));
    ASSERT_TRUE(model.ok()) << model.status();
    const Weights& weights = std::get<PublishedGpt>(*model).weights;
    EXPECT_EQ(weights.Find("h.0.mlp.c_proj.weight")->type.dtype, dtype);
    EXPECT_EQ(Name(weights.Find("h.0.attn.c_attn.weight")->type.dtype), other);
  }
}

// 100 columns are no whole blocks of 32.
TEST_F(QuantizeTest, AnyWidth) {
  MakeRun("run", {"--width=100", "--heads=2", "--feed-forward=400", "--layers=2", "--steps=30"});
  ExpectSame("run", {"generate", "--prompt=a", "--length=5", "--json", "--logprobs=1"});
  const CommandResult quantized = Quantize("run", "small");
  EXPECT_THAT(quantized.out, Not(HasSubstr("c_attn")));
  EXPECT_THAT(quantized.out, HasSubstr("wte.weight: f32, because it has fewer than 64 rows or columns\n"));
  EXPECT_THAT(quantized.out, HasSubstr("vectors: f32, because they are no matrices\n"));
  const absl::StatusOr<Weights> weights = Weights::ReadStored(Path("small/model.safetensors"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->Find("h.0.attn.c_attn.weight")->type, (TensorType{kQ8_0, {300, 100}}));
  EXPECT_EQ(weights->Find("h.0.attn.c_attn.weight")->type.bytes(), 300 * 4 * 34);
  // The weights that the file has, in f32, give the same tokens.
  ASSERT_TRUE(Works(Weft({"export", "--model=small", "--out=decoded", "--layout=huggingface"})));
  const Arguments generate = {"generate", "--prompt=a", "--length=7", "--temperature=0"};  // 8 positions
  const CommandResult text = Weft(generate + Arguments{"--model=small"});
  ASSERT_TRUE(Works(text));
  EXPECT_EQ(text.out, Weft(generate + Arguments{"--model=decoded"}).out);
}

TEST_F(QuantizeTest, OtherFamilies) {
  WriteTrainingData();
  const Arguments small = {"--width=100", "--heads=2", "--feed-forward=64"};
  // These folders have the names of commands, which an argument after the first command may have.
  ASSERT_TRUE(Works(Weft(SmallTraining("translate") + small + Arguments{"--out=translate", "--steps=20"})));
  ExpectSame("translate", {"translate", "--scores", "a.txt"});
  ASSERT_TRUE(Works(Weft(SmallTraining("classify") + small + Arguments{"--out=classify", "--steps=20"})));
  ExpectSame("classify", {"classify", "--scores", "a.txt"});
  ExpectSame("classify", {"evaluate", "--json", "labelled.tsv"}, {"--overwrite"});
  ASSERT_TRUE(Works(Weft({"tokenizer", "train", "--kind=wordpiece", "--vocabulary=100", "--out=pieces", "text.txt"})));
  ASSERT_TRUE(Works(Weft(SmallTraining("bert") - "--vocabulary=300" + Arguments{"--tokenizer=pieces"} + small +
                         Arguments{"--out=bert", "--steps=5"})));
  ExpectSame("bert", {"embed", "a.txt"});
  ExpectSame("bert", {"word-vectors", "--word=line", "text.txt"}, {"--overwrite"});
  Write("masked.txt", "line [MASK] of a text\n");
  ExpectSame("bert", {"fill-mask", "masked.txt"}, {"--overwrite"});
  EXPECT_TRUE(Works(Weft({"attention", "--model=bert-q8_0", "line", "of"})));
  const Arguments page = {"attention", "--model=bert-q8_0", "--out=attention.html", "line", "of"};
  EXPECT_TRUE(Works(Weft(page)));
  EXPECT_THAT(Weft(page).err, HasSubstr("--out: attention.html is there: --overwrite replaces it"));
  EXPECT_EQ(Weft({"attention", "--model=bert-q8_0", "--out=-", "line", "of"}).err, "");
  EXPECT_TRUE(Works(Weft({"summary", "bert-q8_0"})));
  // A training may begin with quantized weights.
  EXPECT_TRUE(Works(Weft(SmallTraining("classify") - "--vocabulary=300" + small +
                         Arguments{"--init=bert-q8_0", "--out=tuned", "--steps=2"})));
  ASSERT_TRUE(Works(Weft(SmallTraining("vit") + small + Arguments{"--out=vit", "--steps=20"})));
  ExpectSame("vit", {"classify", "--scores", "pictures.csv"});
}

// Weights of a run that are no plain file: adapters, which are merged, and means of checkpoints.
TEST_F(QuantizeTest, WeightsThatAreMadeFromSeveral) {
  MakeRun("base", kWide);
  MakeRun("adapted", kWide + Arguments{"--init=base", "--lora-rank=2"});
  ExpectSame("adapted", {"generate", "--prompt=a", "--length=5", "--json", "--logprobs=1"});
  MakeRun("run", kWide + Arguments{"--checkpoint-every=10", "--save-best", "--ema=0.5"});
  for (const std::string weights : {"best", "ema", "mean", "10"}) {
    ExpectSame("run@" + weights, {"generate", "--prompt=a", "--length=5", "--json", "--logprobs=1"});
  }
}

TEST_F(QuantizeTest, PublishedModels) {
  const GptConfig config = {.vocabulary = 27,
                            .context = 16,
                            .layers = 1,
                            .heads = 2,
                            .width = 64,
                            .feed_forward = 96,
                            .activation = Activation::kSilu,
                            .tied_head = false,
                            .bias = false,
                            .norm = {.kind = NormKind::kRmsNorm},
                            .gated = true,
                            .attention = {.rotary = RotaryLayout::kPairs},
                            .names = GptConfig::Names::kLlama};
  // Rotary positions in pairs are those of llama2.c, which no configuration of Hugging Face has.
  PublishedGpt llama = {config, {}};
  for (const ParameterSpec& spec : ParametersOf(llama)) {
    const absl::StatusOr<Tensor> tensor = llama.weights.Add(spec.name, spec.type);
    ASSERT_TRUE(tensor.ok());
    for (int64_t i = 0; i < spec.type.shape.elements(); ++i) tensor->as<float>()[i] = static_cast<float>(i % 7) - 3;
  }
  ASSERT_TRUE(WriteModel(Path("."), llama, "llama2.c").ok());
  ASSERT_TRUE(Works(Quantize("model.bin", "llama")));
  const absl::StatusOr<PublishedModel> read = ReadModel(Path("llama"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::get<PublishedGpt>(*read).config.attention.rotary, RotaryLayout::kPairs);
  ASSERT_TRUE(Works(Weft({"export", "--model=llama", "--out=halves", "--layout=huggingface"})));
  const absl::StatusOr<Weights> halves = Weights::ReadStored(Path("halves/model.safetensors"));
  ASSERT_TRUE(halves.ok()) << halves.status();
  for (const NamedTensor& each : halves->tensors()) EXPECT_EQ(each.tensor.type.dtype, kF32) << each.name;

  WriteBert("bert");
  ASSERT_TRUE(Works(Quantize("bert", "quantized")));
  Write("lines.txt", "a b\nb\n");
  EXPECT_EQ(Weft({"embed", "--model=bert", "lines.txt"}).out, Weft({"embed", "--model=quantized", "lines.txt"}).out);
}

TEST_F(QuantizeTest, BadFilesAndFlags) {
  MakeRun("run", kWide);
  ASSERT_TRUE(Works(Quantize("run", "small")));
  const Arguments generate = {"generate", "--model=small", "--prompt=a", "--length=1"};
  const std::string weights = Read("small/model.safetensors"), config = Read("small/config.json");
  Write("small/model.safetensors", weights.substr(0, weights.size() - 100));
  EXPECT_TRUE(Fails(Weft(generate), 2, "run past the end of the file"));
  std::string changed = weights;
  changed[changed.size() - 1] ^= 1;
  Write("small/model.safetensors", changed);
  EXPECT_TRUE(Fails(Weft(generate), 1, "damaged"));
  Write("small/model.safetensors", weights);
  Json other = Json::parse(config);
  other["version"] = 2;
  Write("small/config.json", other.dump());
  EXPECT_TRUE(Fails(Weft(generate), 2, "version is 2, but this program reads version 1"));
  other["version"] = 1;
  other["model"]["n_embd"] = 128;
  Write("small/config.json", other.dump());
  EXPECT_TRUE(Fails(Weft(generate), 2, "wanted f32[27,128]"));
  other["model"]["model_type"] = "gpt9";
  Write("small/config.json", other.dump());
  EXPECT_TRUE(Fails(Weft(generate), 2, "model.model_type is \"gpt9\""));

  EXPECT_TRUE(Fails(Weft({"quantize", "--out=out"}), 2, "the model is missing"));
  EXPECT_TRUE(Fails(Weft({"quantize", "run"}), 2, "--out"));
  EXPECT_TRUE(Fails(Quantize("run", "out", {"--model=run"}), 2, "exclude each other"));
  EXPECT_TRUE(Fails(Quantize("run", "out", {"--weights=q3_k"}), 2, "not one of f32, bf16, f16, q8_0, q4_0"));
  EXPECT_TRUE(Fails(Quantize("run", "small"), 2, "not empty"));
  EXPECT_TRUE(Fails(Quantize("run", "run", {"--overwrite"}), 2, "the model's own folder"));
  EXPECT_TRUE(Fails(Quantize("nothing", "out"), 2, "nothing"));
  EXPECT_FALSE(Exists("out"));
}

}  // namespace
}  // namespace weft
