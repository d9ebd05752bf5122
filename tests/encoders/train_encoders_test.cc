// Trains a classifier, adapters and a guesser of masked tokens from each of the tiny encoders that draw.py wrote, as a
// user does. The exported config.json must name the class that Hugging Face has for the encoder's type.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class TrainEncodersTest : public WeftProgramTest {
 protected:
  TrainEncodersTest() {
    std::string labelled, text;
    for (int i = 0; i < 12; ++i) {
      absl::StrAppend(&labelled, i % 2 == 0 ? "the cat sat\tLABEL_0\n" : "a small dog\tLABEL_1\n");
    }
    for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "the cat sat on the mat and a small dog saw the cat\n");
    Write("labelled.tsv", labelled);
    Write("words.txt", text);
    Write("line.txt", "the small cat\n");
  }

  // Returns the names of the folders of models.
  static std::vector<std::string> Models() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator("tests/encoders")) {
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    EXPECT_GE(names.size(), 4u);
    return names;
  }
  static Arguments From(const std::string& name) {
    return {absl::StrCat("--init=", fs::absolute("tests/encoders/" + name).string()), "--steps=2", "--out=" + name};
  }
  // Returns the only class of the exported run `name`, without the name of its type.
  std::string ClassOf(const std::string& name) {
    const CommandResult result = Weft({"export", "--model=" + name, "--out=" + name + "_out", "--layout=huggingface"});
    EXPECT_TRUE(Works(result)) << name;
    const Json config = Json::parse(Read(name + "_out/config.json"), nullptr, /*allow_exceptions=*/false);
    if (!config.is_object() || !config.contains("architectures")) return "";
    const std::string of_class = config["architectures"][0];
    return of_class.substr(of_class.find("For"));
  }
};

TEST_F(TrainEncodersTest, AClassifierIsOfItsTypesClass) {
  for (const std::string& name : Models()) {
    const Arguments train = Arguments{"train", "classify", "--data=labelled.tsv"} + From(name);
    ASSERT_TRUE(Works(Weft(train))) << name;
    const CommandResult before = Weft({"classify", "--model=" + name, "--scores", "line.txt"});
    EXPECT_TRUE(Works(before)) << name;
    EXPECT_EQ(ClassOf(name), "ForSequenceClassification") << name;
    const CommandResult exported = Weft({"classify", "--model=" + name + "_out", "--scores", "line.txt"});
    EXPECT_EQ(before.out, exported.out) << name;
  }
}

TEST_F(TrainEncodersTest, AdaptersAreReadBack) {
  for (const std::string& name : Models()) {
    const std::string pooling = name == "modernbert_pairs" ? "mean" : "first";  // that of the base model
    const Arguments more = {"--lora-rank=2", "--learning-rate=1e-2", "--activation-dropout=0.2",
                            "--pooling=" + pooling};
    ASSERT_TRUE(Works(Weft(Arguments{"train", "classify", "--data=labelled.tsv"} + From(name) + more))) << name;
    const CommandResult run = Weft({"classify", "--model=" + name, "--scores", "line.txt"});
    EXPECT_TRUE(Works(run)) << name;
    fs::create_directory(Path(name + "_adapter"));
    for (const char* const file : {"/adapter_config.json", "/adapter_model.safetensors"}) {
      Write(name + "_adapter" + file, Read(name + file));
    }
    const CommandResult adapter = Weft({"classify", "--model=" + name + "_adapter", "--scores", "line.txt"});
    EXPECT_TRUE(Works(adapter)) << name;
    EXPECT_EQ(run.out, adapter.out) << name;
  }
}

TEST_F(TrainEncodersTest, AGuesserOfMaskedTokensIsOfItsTypesClass) {
  for (const std::string& name : Models()) {
    if (absl::StartsWith(name, "roberta") || absl::StartsWith(name, "mpnet")) continue;  // their files name no [CLS]
    ASSERT_TRUE(Works(Weft(Arguments{"train", "bert", "--data=words.txt", "--batch=2"} + From(name)))) << name;
    EXPECT_EQ(ClassOf(name), "ForMaskedLM") << name;
  }
}

}  // namespace
}  // namespace weft
