// Training of low-rank adapters as a user calls it, and the use of the runs.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "weft/core/safetensors.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class LoraTrainingTest : public WeftProgramTest {
 protected:
  LoraTrainingTest() { WriteTrainingData(); }

  static Arguments Small() { return SmallTraining("classify") + Arguments{"--pooling=first"}; }
  // Arguments that train adapters on the labelled texts, from the weights of the run `base`.
  static Arguments Adapters(const std::string& out) {
    return Small() - "--vocabulary=300" +  // the tokenizer is that of `base`
           Arguments{"--init=base", "--lora-rank=2", "--lora-dropout=0.1", "--learning-rate=1e-2", "--out=" + out};
  }
  std::vector<NamedTensor> Tensors(const std::string& path) {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Path(path));
    EXPECT_TRUE(file.ok()) << file.status();
    files_.push_back(*std::move(file));
    return {files_.back().tensors().begin(), files_.back().tensors().end()};
  }
  std::string Classified(const std::string& model) {
    const CommandResult result = Weft({"classify", "--model=" + model, "--scores", "text.txt", "--truncate"});
    EXPECT_TRUE(Works(result));
    return result.out;
  }

 private:
  std::vector<SafetensorsFile> files_;
};

TEST_F(LoraTrainingTest, TrainsAdaptersAndNothingElse) {
  ASSERT_TRUE(Works(Weft(Small() + Arguments{"--out=base"})));
  const CommandResult trained = Weft(Adapters("run"));
  ASSERT_TRUE(Works(trained));
  EXPECT_TRUE(absl::StrContains(trained.err, " of the weights are trained: ")) << trained.err;
  std::map<std::string, std::string> before;
  for (const auto& [name, tensor] : Tensors("base/model.safetensors")) {
    before[name] = std::string(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
  }
  int adapters = 0, heads = 0;
  for (const auto& [name, tensor] : Tensors("run/model.safetensors")) {
    const std::string bytes(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
    const bool head = absl::StartsWith(name, "classifier.") || absl::StartsWith(name, "pooler.");
    if (absl::StrContains(name, ".lora_")) {
      ++adapters;
      EXPECT_NE(bytes, std::string(bytes.size(), '\0')) << name;
    } else {
      heads += head ? 1 : 0;
      EXPECT_EQ(bytes != before.at(name), head) << name;
    }
  }
  EXPECT_EQ(adapters, 4);  // A and B of a block's queries and values
  EXPECT_EQ(heads, 4);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(Path("run/checkpoints"))) {
    if (entry.path().filename() != "state.safetensors") continue;
    for (const auto& [name, tensor] : Tensors(fs::relative(entry.path(), Path("")).string())) {
      if (!absl::StartsWith(name, "adamw.m.")) continue;
      EXPECT_TRUE(absl::StrContains(name, ".lora_") || absl::StrContains(name, "classifier.") ||
                  absl::StrContains(name, "pooler."))
          << name;
    }
  }
}

TEST_F(LoraTrainingTest, TheAdapterFilesAreThoseOfPeft) {
  ASSERT_TRUE(Works(Weft(Small() + Arguments{"--out=base"})));
  ASSERT_TRUE(Works(Weft(Adapters("run"))));
  const Json config = Json::parse(Read("run/adapter_config.json"));
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "SEQ_CLS");
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 16);
  EXPECT_EQ(config["base_model_name_or_path"], Path("base"));
  EXPECT_EQ(config["target_modules"],
            Json({"bert.encoder.layer.0.attention.self.query", "bert.encoder.layer.0.attention.self.value"}));
  EXPECT_EQ(config["modules_to_save"], Json({"bert.pooler.dense", "classifier"}));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : Tensors("run/adapter_model.safetensors")) names.push_back(name);
  EXPECT_EQ(names.size(), 8);
  EXPECT_EQ(std::count(names.begin(), names.end(),
                       "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight"),
            1);

  // A run, its adapter alone, the merged export, and a run without model.safetensors are the same classifier.
  const std::string wanted = Classified("run");
  EXPECT_NE(wanted, Classified("base"));
  fs::create_directories(Path("adapter"));
  for (const char* const file : {"/adapter_config.json", "/adapter_model.safetensors"}) {
    fs::copy(Path("run") + file, Path("adapter") + file);
  }
  EXPECT_EQ(Classified("adapter"), wanted);
  ASSERT_TRUE(Works(Weft({"export", "--model=run", "--layout=huggingface", "--out=merged"})));
  EXPECT_EQ(Classified("merged"), wanted);
  ASSERT_TRUE(Works(Weft({"export", "--model=adapter", "--layout=huggingface", "--out=merged_adapter"})));
  EXPECT_EQ(Classified("merged_adapter"), wanted);
  fs::remove(Path("run/model.safetensors"));
  EXPECT_EQ(Classified("run"), wanted);
}

TEST_F(LoraTrainingTest, AResumedRunIsTheSame) {
  ASSERT_TRUE(Works(Weft(Small() + Arguments{"--out=base"})));
  ASSERT_TRUE(Works(Weft(Adapters("whole") + Arguments{"--steps=6"})));
  ASSERT_TRUE(Works(Weft(Adapters("half") + Arguments{"--steps=6", "--checkpoint-every=3"})));
  fs::remove_all(Path("half/checkpoints/6"));
  fs::remove(Path("half/model.safetensors"));
  ASSERT_TRUE(Works(Weft({"train", "classify", "--resume", "--out=half"})));
  EXPECT_EQ(Read("half/model.safetensors"), Read("whole/model.safetensors"));
  EXPECT_EQ(Read("half/adapter_model.safetensors"), Read("whole/adapter_model.safetensors"));
}

TEST_F(LoraTrainingTest, EveryTrainingTrainsAdaptersAndResumes) {
  for (const char* const name : {"gpt", "bert", "translate", "vit", "classify"}) {
    SCOPED_TRACE(name);
    const std::string whole = absl::StrCat(name, "_whole"), half = absl::StrCat(name, "_half");
    const auto train = [&](const std::string& out, const Arguments& more) {
      const Arguments lora = Arguments{"--steps=4", "--lora-rank=2", "--lora-dropout=0.1", "--out=" + out} + more;
      if (name == std::string("gpt")) return Train(lora);
      // The files of adapters can't express the pooling "mean".
      const Arguments pooling = name == std::string("classify") ? Arguments{"--pooling=first"} : Arguments{};
      return Weft(SmallTraining(name) + pooling + lora);
    };
    const CommandResult trained = train(whole, {});
    ASSERT_TRUE(Works(trained));
    EXPECT_TRUE(absl::StrContains(trained.err, " of the weights are trained: ")) << trained.err;
    ASSERT_TRUE(Works(train(half, {"--checkpoint-every=2"})));
    fs::remove_all(Path(half + "/checkpoints/4"));
    fs::remove(Path(half + "/model.safetensors"));
    ASSERT_TRUE(Works(Weft({"train", name, "--resume", "--out=" + half})));
    for (const char* const file : {"/model.safetensors", "/adapter_model.safetensors"}) {
      EXPECT_EQ(Read(half + file), Read(whole + file)) << file;
    }
    EXPECT_TRUE(Exists(whole + "/adapter_config.json"));
    if (name != std::string("vit")) continue;
    ASSERT_TRUE(Works(Weft({"classify", "--model=" + whole, "pictures.csv"})));
  }
  EXPECT_EQ(Read("gpt_half/sample.txt"), Read("gpt_whole/sample.txt"));
  ASSERT_TRUE(Works(Weft({"generate", "--model=gpt_whole", "--length=5", "--prompt=a"})));
}

TEST_F(LoraTrainingTest, NamesAPatternWithoutALayer) {
  EXPECT_TRUE(Fails(Weft(Small() + Arguments{"--lora-rank=2", "--lora-targets=*.c_attn"}), 2,
                    "lora: no layer matches '*.c_attn'; the first layers are encoder.layer.0.attention.self.query"));
}

}  // namespace
}  // namespace weft
