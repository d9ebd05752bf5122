#include "weft/train/jobs/run_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/base/checksum.h"
#include "weft/train/jobs/job.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class RunConfigTest : public testing::Test {
 protected:
  RunConfigTest() : folder_(testing::TempDir() + "/run_config_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/model");
    fs::create_directories(folder_ + "/run");
    Write("a.txt", "a");
    Write("b.txt", "b");
    Write("model/vocab.txt", "a\nb\n");
    Write("model/model.safetensors", "weights");
    Write("run/tokenizer.json", "{}");
    data_ = folder_ + "/a.txt";
    tokenizer_ = folder_ + "/model";
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  Json Config() {
    const Hyperparameters table = {{"data", "", &data_, {.is_path = true}},
                                   {"tokenizer", "", &tokenizer_, {.is_path = true}},
                                   {"name", "", &name_}};
    Json json = ToJson(table);
    json[kFilesKey] = FileChecksums(table, folder_ + "/run");
    return json;
  }

  std::string folder_, data_, tokenizer_, name_ = "x";
};

TEST_F(RunConfigTest, AreThoseOfPathsAndTheRunsTokenizer) {
  const Json files = Config()[kFilesKey];
  EXPECT_EQ(files.size(), 3);
  EXPECT_EQ(files["data"], Checksum("a"));
  EXPECT_EQ(files["tokenizer.json"], Checksum("{}"));
  EXPECT_EQ(files["tokenizer"].get<std::string>().size(), 16);
  data_ = "/dev/null";
  tokenizer_ = folder_ + "/missing";
  EXPECT_EQ(Config()[kFilesKey].size(), 1);
}

TEST_F(RunConfigTest, NamesWhatChanged) {
  const Json before = Config();
  EXPECT_EQ(ChangedFiles(before, Config()), "");
  Write("model/model.safetensors", "other weights");
  fs::copy_file(folder_ + "/a.txt", folder_ + "/copy.txt");
  data_ = folder_ + "/copy.txt";
  EXPECT_EQ(ChangedFiles(before, Config()), "") << "weights are no data, and a file may move";
  data_ = folder_ + "/b.txt";
  EXPECT_EQ(ChangedFiles(before, Config()), "data: " + folder_ + "/b.txt differs from " + folder_ + "/a.txt as it was");
  data_ = folder_ + "/a.txt";
  Write("a.txt", "other");
  Write("model/vocab.txt", "a\n");
  Write("run/tokenizer.json", "[]");
  EXPECT_EQ(ChangedFiles(before, Config()), "data: " + folder_ + "/a.txt has changed; tokenizer: " + folder_ +
                                                "/model has changed; tokenizer.json has changed");
  EXPECT_EQ(ChangedFiles(Json::object(), Config()), "") << "Weft 0.1.0 began runs without checksums";
}

}  // namespace
}  // namespace weft
