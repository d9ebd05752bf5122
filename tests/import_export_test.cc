// `weft import` and `weft export` as a user calls them.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "weft/formats/weights.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class ImportExportTest : public WeftProgramTest {
 protected:
  CommandResult Import(const std::string& model, const std::string& out, const Arguments& more = {}) const {
    return Weft(Arguments{"import", "--model=" + model, "--out=" + out} + more);
  }
  CommandResult Export(const std::string& model, const std::string& out, const std::string& layout,
                       const Arguments& more = {}) const {
    return Weft(Arguments{"export", "--model=" + model, "--out=" + out, "--layout=" + layout} + more);
  }
  // A Llama as Hugging Face has them, whose weights are 0.
  void WriteLlama(const std::string& folder) const {
    const GptConfig config = {.vocabulary = 7,
                              .context = 6,
                              .layers = 1,
                              .heads = 2,
                              .width = 8,
                              .feed_forward = 12,
                              .activation = Activation::kSilu,
                              .bias = false,
                              .norm = {.kind = NormKind::kRmsNorm},
                              .gated = true,
                              .attention = {.rotary = RotaryLayout::kHalves},
                              .names = GptConfig::Names::kLlama};
    Weights weights;
    for (const ParameterSpec& spec : ParametersOf(PublishedGpt{config}))
      ASSERT_TRUE(weights.Add(spec.name, spec.type).ok());
    fs::create_directories(Path(folder));
    const absl::Status status = WriteModel(Path(folder), PublishedGpt{config, std::move(weights)});
    ASSERT_TRUE(status.ok()) << status;
  }
  // Names, types and bytes of a folder's tensors.
  std::map<std::string, std::string> Tensors(const std::string& folder) const {
    const absl::StatusOr<Weights> weights =
        Weights::Read((folder[0] == '/' ? folder : Path(folder)) + "/model.safetensors");
    EXPECT_TRUE(weights.ok()) << weights.status();
    std::map<std::string, std::string> tensors;
    for (const auto& [name, tensor] : weights->tensors()) {
      tensors[absl::StrCat(name, " ", ToString(tensor.type))] =
          std::string(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
    }
    return tensors;
  }
};

TEST_F(ImportExportTest, ARunBecomesAFolderAndNanoGpts) {
  MakeRun("run", {"--activation=gelu"});
  ASSERT_TRUE(Works(Export("run", "gpt2", "huggingface")));
  EXPECT_EQ(Json::parse(Read("gpt2/config.json"))["model_type"], "gpt2");
  // transformers can't read the run's own tokenizer of characters.
  EXPECT_EQ(Json::parse(Read("run/tokenizer.json"))["type"], "character");
  EXPECT_EQ(Json::parse(Read("gpt2/tokenizer.json"))["model"]["type"], "WordLevel");
  EXPECT_EQ(Json::parse(Read("gpt2/tokenizer_config.json"))["tokenizer_class"], "PreTrainedTokenizerFast");
  ASSERT_TRUE(Works(Export("gpt2", "nanogpt", "nanogpt")));
  ASSERT_TRUE(Works(Import("nanogpt", "again")));
  EXPECT_EQ(Read("again/config.json"), Read("gpt2/config.json"));
  EXPECT_TRUE(Tensors("again") == Tensors("gpt2"));
  EXPECT_EQ(Tensors("nanogpt").count("transformer.h.0.attn.c_attn.weight f32[48,16]"), 1u);
  EXPECT_EQ(Tensors("gpt2").count("transformer.h.0.attn.c_attn.weight f32[16,48]"), 1u);

  EXPECT_TRUE(Fails(Export("run", "bin", "llama2.c"), 2, "llama2.c cannot say that the model is GPT-2's"));
  EXPECT_FALSE(Exists("bin"));
  EXPECT_TRUE(Fails(Export("run", "ct2", "ctranslate2"), 2,
                    "a GPT can't be written as ctranslate2; possible: gguf, huggingface, nanogpt"));
  MakeRun("post", {"--pre-norm=false"});
  EXPECT_TRUE(Fails(Export("post", "out", "huggingface"), 2, "gpt2 cannot say that pre_norm is false"));
  ASSERT_TRUE(Works(Export("post", "post_onnx", "onnx")));
  EXPECT_TRUE(Exists("post_onnx/model.onnx"));
  EXPECT_FALSE(Exists("post_onnx/config.json")) << "transformers does not have the model";
  ASSERT_TRUE(Works(Export("gpt2", "onnx", "onnx")));
  EXPECT_EQ(Read("onnx/config.json"), Read("gpt2/config.json"));
  EXPECT_FALSE(Exists("onnx/model.safetensors"));
  EXPECT_TRUE(Exists("onnx/model.onnx") && Exists("onnx/tokenizer.json"));
  MakeRun("tanh");
  EXPECT_TRUE(Fails(Export("tanh", "out", "nanogpt"), 2, "the activation is another than the exact gelu"));
}

// Weft trains with GPT-2's names and one layer of queries, keys and values.
TEST_F(ImportExportTest, AModernRunBecomesALlama) {
  for (const std::string rotary : {"halves", "pairs"}) {
    MakeRun("run_" + rotary, {"--norm=rms-norm", "--gated=true", "--activation=silu", "--bias=false", "--heads=4",
                              "--key-value-heads=2", "--rotary=" + rotary});
    ASSERT_TRUE(Works(Export("run_" + rotary, "llama_" + rotary, "huggingface")));
    const Json config = Json::parse(Read("llama_" + rotary + "/config.json"));
    EXPECT_EQ(config["architectures"], Json({"LlamaForCausalLM"}));
    EXPECT_EQ(config["num_key_value_heads"], 2);
    ASSERT_TRUE(Works(Import("llama_" + rotary, "again_" + rotary)));
    EXPECT_EQ(Read("again_" + rotary + "/config.json"), Read("llama_" + rotary + "/config.json"));
    EXPECT_TRUE(Tensors("again_" + rotary) == Tensors("llama_" + rotary));
    const auto generated = [&](const std::string& model) {
      const CommandResult result = Weft({"generate", "--model=" + model, "--length=6", "--seed=3", "--prompt=a"});
      EXPECT_TRUE(Works(result));
      return result.out;
    };
    EXPECT_EQ(generated("llama_" + rotary), generated("run_" + rotary));
  }
}

TEST_F(ImportExportTest, RunsOfOtherTrainings) {
  std::string labelled, source, target;
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&labelled, i % 2 == 0 ? "a good day\tgood\n" : "the bad night\tbad\n");
    absl::StrAppend(&source, "eins zwei drei\n");
    absl::StrAppend(&target, "one two three\n");
  }
  Write("labelled.txt", labelled);
  Write("source.txt", source);
  Write("target.txt", target);
  const Arguments small = {"--steps=2", "--width=8", "--heads=2", "--feed-forward=8", "--vocabulary=300", "--batch=4"};
  ASSERT_TRUE(
      Works(Weft(Arguments{"train", "classify", "--data=labelled.txt", "--out=classify", "--layers=1"} + small)));
  ASSERT_TRUE(Works(Export("classify", "bert", "huggingface")));
  const Json config = Json::parse(Read("bert/config.json"));
  EXPECT_EQ(config["architectures"][0], "BertForSequenceClassification");
  EXPECT_EQ(config["id2label"].size(), 2u);
  EXPECT_TRUE(Works(Import("bert", "again")));
  EXPECT_EQ(Read("again/config.json"), Read("bert/config.json"));

  ASSERT_TRUE(Works(Weft(Arguments{"train", "translate", "--source=source.txt", "--target=target.txt",
                                   "--out=translate", "--encoder-layers=1", "--decoder-layers=1"} +
                         small)));
  ASSERT_TRUE(Works(Export("translate", "transformer", "huggingface")));
  EXPECT_EQ(Json::parse(Read("transformer/config.json"))["model_type"], "pegasus");
  EXPECT_TRUE(Works(Import("transformer", "transformer2")));
  EXPECT_TRUE(Tensors("transformer2") == Tensors("transformer"));
  ASSERT_TRUE(Works(Export("translate", "ct2", "ctranslate2")));
  EXPECT_TRUE(Exists("ct2/model.bin"));
  const Json tokens = Json::parse(Read("ct2/shared_vocabulary.json"));
  const Json tokenizer = Json::parse(Read("translate/tokenizer.json"));
  EXPECT_EQ(tokens.size(), tokenizer["model"]["vocab"].size());
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) EXPECT_EQ(tokens[id.get<size_t>()], token);
  EXPECT_EQ(Json::parse(Read("ct2/config.json"))["add_source_eos"], true);
  // An exported folder translates as the run does. AutoTokenizer adds the end token, which the run's file leaves out.
  Write("lines.txt", "eins zwei drei\n");
  EXPECT_EQ(Weft({"translate", "--scores", "--model=transformer", "lines.txt"}).out,
            Weft({"translate", "--scores", "--model=transformer2", "lines.txt"}).out);
  const Json post = Json::parse(Read("transformer/tokenizer.json"))["post_processor"];
  EXPECT_EQ(post["single"][1]["SpecialToken"]["id"], "</s>");
  EXPECT_EQ(Json::parse(Read("transformer/tokenizer_config.json"))["eos_token"], "</s>");

  ASSERT_TRUE(Works(Weft(Arguments{"train", "translate", "--source=source.txt", "--target=target.txt", "--out=memory",
                                   "--encoder-layers=1", "--decoder-layers=1", "--memory=same-layer"} +
                         small)));
  EXPECT_TRUE(Fails(Export("memory", "out", "huggingface"), 2, "not pegasus, because memory is same-layer"));
  EXPECT_FALSE(Exists("out"));
  EXPECT_TRUE(Works(Import("memory", "own")));
  EXPECT_EQ(Json::parse(Read("own/config.json"))["model_type"], "transformer");
}

TEST_F(ImportExportTest, BertAndWhatLiesBesideIt) {
  WriteBert("bert");
  fs::create_directories(Path("bert/1_Pooling"));
  Write("bert/modules.json", "[]");
  Write("bert/1_Pooling/config.json", "{}");
  ASSERT_TRUE(Works(Import("bert", "out")));
  EXPECT_TRUE(Tensors("out") == Tensors("bert"));
  for (const char* name : {"vocab.txt", "modules.json", "1_Pooling/config.json"}) {
    EXPECT_EQ(Read(std::string("out/") + name), Read(std::string("bert/") + name));
  }
  Write("bert/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\nc\n");
  EXPECT_TRUE(Fails(Import("bert", "more"), 2, "the tokenizer has 7 tokens, but the model's table 6"));
  EXPECT_FALSE(Exists("more"));
}

// In sentence-transformers, the file with max_seq_length has had a name for each kind of encoder.
TEST_F(ImportExportTest, EveryNameOfSentenceSettingsIsReadAndCopied) {
  WriteBert("bert");
  Write("bert/modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  int64_t length = 3;  // differs between the files, so that one of an earlier conversion is noticed
  for (const std::string kind : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const std::string name = "/sentence_" + kind + "_config.json";
    Write("bert" + name, absl::StrCat(R"({"max_seq_length":)", ++length, "}"));
    ASSERT_TRUE(Works(Import("bert", "out", {"--overwrite"}))) << kind;
    for (const char* const model : {"bert", "out"}) {
      const absl::StatusOr<SentenceFormat> format = ReadSentenceFormat(Path(model), {.context = 20, .width = 8});
      ASSERT_TRUE(format.ok()) << format.status();
      EXPECT_EQ(format->max_length, length) << model << name;
    }
    fs::remove(Path("bert" + name));
  }
}

TEST_F(ImportExportTest, NothingIsWrittenOver) {
  WriteBert("bert");
  fs::create_directories(Path("empty"));
  EXPECT_TRUE(Works(Import("bert", "empty")));
  const Files before = Snapshot("empty");
  EXPECT_TRUE(Fails(Import("bert", "empty"), 2, "empty is not empty: set overwrite to replace the files of a model"));
  EXPECT_TRUE(Fails(Import("bert", "text.txt"), 2, "text.txt exists, and is not a folder"));
  EXPECT_TRUE(Fails(Import("bert", "bert", {"--overwrite"}), 2, "out is the model's own folder"));
  EXPECT_EQ(Differences(before, Snapshot("empty")), "");
  Write("empty/config.json", "old");
  Write("empty/notes.txt", "kept");
  fs::create_directories(Path("empty/1_Pooling"));
  for (const char* name : {"tokenizer.json", "modules.json", "1_Pooling/config.json", "model.bin"}) {
    Write(std::string("empty/") + name, "of another model");
  }
  EXPECT_TRUE(Works(Import("bert", "empty", {"--overwrite"})));
  fs::remove(Path("empty/1_Pooling"));
  EXPECT_EQ(Differences(before, Snapshot("empty")), "notes.txt\n");
}

// The same if the model is a file in the folder, or the folder is a run.
TEST_F(ImportExportTest, ASourceAndARunAreNotWrittenOver) {
  WriteLlama("llama");
  ASSERT_TRUE(Works(Export("llama", "s", "llama2.c")));
  MakeRun("run");
  const Files source = Snapshot("s"), run = Snapshot("run");
  EXPECT_TRUE(Fails(Import("s/model.bin", "s", {"--overwrite"}), 2, "out is the model's own folder, s"));
  fs::create_symlink("s/model.bin", Path("m.bin"));
  EXPECT_TRUE(Fails(Import("m.bin", "s", {"--overwrite"}), 2, "out is the model's own folder, s"));
  EXPECT_EQ(Differences(source, Snapshot("s")), "");
  EXPECT_TRUE(Fails(Import("llama", "run", {"--overwrite"}), 2, "out: run is the folder of a training run"));
  EXPECT_EQ(Differences(run, Snapshot("run")), "");
  EXPECT_TRUE(Works(Import("llama", "s", {"--overwrite"})));
  EXPECT_FALSE(Exists("s/model.bin")) << "a file of another layout";
}

TEST_F(ImportExportTest, ATokenizerAndWhatLiesInTheModelAreNotWrittenOver) {
  WriteBert("bert");
  fs::create_directories(Path("bert/1_Pooling"));
  Write("bert/1_Pooling/config.json", "{}");
  fs::create_directories(Path("tok"));
  Write("tok/letters.txt", Read("bert/vocab.txt"));
  Write("tok/vocab.txt", "other");
  Write("tok/tokenizer.model", "other");
  const Files model = Snapshot("bert"), tokenizer = Snapshot("tok");
  EXPECT_TRUE(Fails(Import("bert", "bert/1_Pooling", {"--overwrite"}), 2,
                    "out, bert/1_Pooling, is the folder of bert/1_Pooling/config.json"));
  EXPECT_TRUE(Fails(Import("bert", "tok", {"--overwrite", "--tokenizer=tok/letters.txt"}), 2,
                    "out, tok, is the folder of tok/letters.txt"));
  EXPECT_EQ(Differences(model, Snapshot("bert")), "");
  EXPECT_EQ(Differences(tokenizer, Snapshot("tok")), "");
  EXPECT_TRUE(Works(Import("bert", "out", {"--tokenizer=tok/letters.txt"})));
}

TEST_F(ImportExportTest, AFailureLeavesNothingHalf) {
  WriteBert("bert");
  fs::create_directories(Path("old/model.safetensors"));
  Write("old/config.json", "old");
  EXPECT_EQ(Import("bert", "old", {"--overwrite"}).exit_code, 1);
  EXPECT_EQ(Read("old/config.json"), "old") << "no new configuration beside other weights";
  fs::create_directories(Path("half/vocab.txt"));
  Write("half/config.json", "old");
  const Files before = Snapshot("half");
  EXPECT_TRUE(Fails(Import("bert", "half", {"--overwrite"}), 1, "cannot write half/vocab.txt: Is a directory"));
  EXPECT_EQ(Differences(before, Snapshot("half")), "");
  Write("bert/spiece.model", std::string(1 << 20, 'x'));  // more than the shell below lets a file have
  const std::string script =
      "trap '' XFSZ; ulimit -f 400; exec " + fs::absolute("apps/weft").string() + " import --model=bert --out=new/made";
  fs::create_directories(Path("new"));
  EXPECT_TRUE(Fails(RunCommand({"sh", "-c", script}, {.folder = folder_}), 1, "spiece.model"));
  EXPECT_FALSE(Exists("new/made"));
}

// A Vision Transformer becomes a folder with the same weights, whose pictures get the same labels.
TEST_F(ImportExportTest, AVisionTransformersRunIsExported) {
  WriteTrainingData();
  ASSERT_TRUE(Works(Weft(SmallTraining("vit") + Arguments{"--steps=2", "--out=run"})));
  ASSERT_TRUE(Works(Export("run", "vit", "huggingface")));
  EXPECT_EQ(Json::parse(Read("vit/config.json"))["model_type"], "vit");
  EXPECT_TRUE(Tensors("vit") == Tensors("run"));
  ASSERT_TRUE(Works(Import("vit", "again")));
  EXPECT_EQ(Read("again/config.json"), Read("vit/config.json"));
  const CommandResult by_run = Weft({"classify", "--scores", "--model=run", "pictures.csv"});
  ASSERT_TRUE(Works(by_run));
  EXPECT_EQ(Weft({"classify", "--scores", "--model=again", "pictures.csv"}).out, by_run.out);
  EXPECT_TRUE(
      Fails(Export("run", "out", "nanogpt"), 2, "a ViT can't be written as nanogpt; possible: huggingface, onnx"));
}

TEST_F(ImportExportTest, AClassifierOfTheMeanIsRefused) {
  WriteTrainingData();
  ASSERT_TRUE(Works(Weft(SmallTraining("classify") + Arguments{"--steps=2", "--out=mean"})));
  EXPECT_TRUE(Fails(Export("mean", "out", "huggingface"), 2, "classifier_pooling is mean"));
  EXPECT_FALSE(Exists("out"));
}

TEST_F(ImportExportTest, ValuesOfTheWrongKindAreNamed) {
  WriteBert("bert");
  fs::create_directories(Path("run"));
  for (const char* model : {"5", "null", "[]", "{}", "{\"model_type\": 5}", "{\"model_type\": null}"}) {
    Write("run/config.json", absl::StrCat("{\"command\": \"train bert\", \"model\": ", model, "}"));
    EXPECT_TRUE(
        Fails(Import("run", "out"), 2, "run/config.json: the run is of \"train bert\", and model.model_type is "));
  }
  Write("bert/config.json", "{\"model_type\": null}");
  EXPECT_TRUE(Fails(Import("bert", "out"), 2, "bert/config.json: it is of no model that is known"));
  Write("bert/config.json", "{\"model_type\": 5}");
  EXPECT_TRUE(Fails(Import("bert", "out"), 2, "bert/config.json: model_type is 5"));
}

TEST_F(ImportExportTest, SaysWhatIsWrong) {
  WriteBert("bert");
  EXPECT_TRUE(Fails(Weft({"import", "--out=out"}), 2, "--model=MODEL is missing"));
  EXPECT_TRUE(Fails(Weft({"import", "--model=bert"}), 2, "--out=FOLDER is missing"));
  EXPECT_TRUE(Fails(Import("nowhere", "out"), 2, "nowhere"));
  EXPECT_TRUE(Fails(Export("bert", "out", "nanogpt"), 2,
                    "a BERT can't be written as nanogpt; possible: gguf, huggingface, onnx"));
  EXPECT_TRUE(Fails(Export("bert", "out", "pickle"), 2, "pickle"));
  Write("bert/config.json",
        "{\"model_type\":\"bert\",\"vocab_size\":6,\"max_position_embeddings\":20,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"hidden_size\":8,"
        "\"intermediate_size\":13}");
  EXPECT_TRUE(Fails(Import("bert", "out"), 2, "bert/model.safetensors does not fit the model: "));
  EXPECT_TRUE(Fails(Import("bert", "out"), 2, "intermediate.dense.weight' is f32[12,8], wanted f32[13,8]"));
  EXPECT_TRUE(Fails(Import("bert", "out"), 2, "unexpected 'encoder.layer.1."));
  EXPECT_FALSE(Exists("out"));
}

TEST_F(ImportExportTest, PublishedModelsAreThemselvesAgain) {
  const char* const data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string stories = absl::StrCat(data, "/stories260K/");
  ASSERT_TRUE(Works(Import(stories + "checkpoint_v1.bin", "stories")));
  ASSERT_TRUE(Works(Export("stories", "llama2c", "llama2.c", {"--file-version=1"})));
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_TRUE(Read("llama2c/model.bin") == read(stories + "checkpoint_v1.bin"));
  EXPECT_TRUE(Read("llama2c/tokenizer.bin") == read(stories + "tokenizer.bin"));
  ASSERT_TRUE(Works(Export("llama2c/model.bin", "legacy", "llama2.c")));
  EXPECT_EQ(Read("legacy/model.bin").size(), read(stories + "checkpoint_legacy.bin").size());

  const std::string aren = absl::StrCat(data, "/aren-transliteration");
  ASSERT_TRUE(Works(Import(aren, "aren")));
  ASSERT_TRUE(Works(Export("aren", "ctranslate2", "ctranslate2")));
  EXPECT_TRUE(Tensors("ctranslate2") == Tensors(aren));
  EXPECT_EQ(Read("ctranslate2/source_vocabulary.txt"), read(aren + "/source_vocabulary.txt"));
}

}  // namespace
}  // namespace weft
