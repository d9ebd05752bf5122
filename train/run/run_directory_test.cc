#include "weft/train/run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const nlohmann::ordered_json kConfig = {{"command", "train gpt"}, {"width", 8}};

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() : folder_(fs::path(testing::TempDir()) / "run_directory_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  void Touch(const std::string& path) { std::ofstream(folder_ / path) << "x"; }

  // Makes a run with all its files at `out`.
  void MakeRun(const std::string& out) {
    absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = out});
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(run->Begin(kConfig).ok());
    fs::create_directories(run->File("checkpoints/5"));
    for (const char* name : {"metrics.jsonl", "model.safetensors", "tokenizer.json", "sample.txt"}) {
      std::ofstream(run->File(name)) << name;
    }
  }

  fs::path folder_;
};

TEST_F(RunDirectoryTest, TakesTheNextFreeNumber) {
  for (int i : {1, 2}) {
    absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt"});
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE(run->Begin(kConfig).ok());
    EXPECT_EQ(run->path(), "runs/gpt-" + std::to_string(i));
    EXPECT_TRUE(fs::exists(run->File("config.json")));
  }
  fs::create_directories("runs/gpt-9");
  fs::create_directories("runs/bert-12");
  fs::create_directories("runs/gpt-old");
  fs::create_directories("runs/gpt-9223372036854775807");  // has no successor
  absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt"});
  ASSERT_TRUE(run->Begin(kConfig).ok());
  EXPECT_EQ(run->path(), "runs/gpt-10");
}

TEST_F(RunDirectoryTest, ResumesTheNewestRun) {
  MakeRun("runs/gpt-2");
  MakeRun("runs/gpt-10");
  const absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .resume = true});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->path(), "runs/gpt-10");
  EXPECT_EQ(run->config()["width"], 8);
}

TEST_F(RunDirectoryTest, ThereMustBeARunToResume) {
  fs::create_directories("empty");
  for (const char* out : {"", "missing", "empty"}) {
    const absl::Status refused = RunDirectory::Find({.name = "gpt", .out = out, .resume = true}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(": no run to resume"));
  }
  EXPECT_FALSE(fs::exists("missing"));
}

TEST_F(RunDirectoryTest, IsHeldByOneAtATime) {
  MakeRun("mine");
  {
    const absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true});
    ASSERT_TRUE(run.ok()) << run.status();
    for (const bool resume : {true, false}) {
      const RunDirectoryOptions options = {.name = "gpt", .out = "mine", .resume = resume, .overwrite = !resume};
      EXPECT_EQ(RunDirectory::Find(options).status().message(), "mine is in use by another process");
    }
  }
  EXPECT_TRUE(RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true}).ok());
}

TEST_F(RunDirectoryTest, ANewFolderIsLockedAndMustStillBeFree) {
  absl::StatusOr<RunDirectory> first = RunDirectory::Find({.name = "gpt", .out = "mine"});
  absl::StatusOr<RunDirectory> second = RunDirectory::Find({.name = "gpt", .out = "mine"});
  ASSERT_TRUE(first->Begin(kConfig).ok());
  EXPECT_EQ(second->Begin(kConfig).message(), "mine is in use by another process");
  first = absl::CancelledError();
  EXPECT_EQ(second->Begin(kConfig).message(), "mine holds another run by now");
}

TEST_F(RunDirectoryTest, RemovesWhatAKilledRunLeftHalfWritten) {
  MakeRun("mine");
  Touch("mine/model.safetensors.123.tmp");
  absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(fs::exists("mine/model.safetensors.123.tmp"));
  ASSERT_TRUE(run->Begin(kConfig).ok());
  EXPECT_FALSE(fs::exists("mine/model.safetensors.123.tmp"));
  EXPECT_TRUE(fs::exists("mine/model.safetensors"));
}

TEST_F(RunDirectoryTest, AFolderOfTemporaryFilesIsEmpty) {
  fs::create_directories("mine");
  Touch("mine/config.json.123.tmp");
  EXPECT_EQ(RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true}).status().message(),
            "mine: no run to resume");
  for (const bool overwrite : {false, true}) {
    Touch("mine/config.json.123.tmp");
    fs::remove("mine/config.json");
    absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine", .overwrite = overwrite});
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(run->Begin(kConfig).ok());
    EXPECT_FALSE(fs::exists("mine/config.json.123.tmp"));
    EXPECT_TRUE(fs::exists("mine/config.json"));
  }
  fs::create_directories("notes");
  Touch("notes/thesis.tmp");  // not a name that WriteFile gives
  EXPECT_THAT(std::string(RunDirectory::Find({.name = "gpt", .out = "notes"}).status().message()),
              HasSubstr("is not empty"));
}

TEST_F(RunDirectoryTest, RestoresFilesThatWereRemoved) {
  absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine"});
  ASSERT_TRUE(run->Begin(kConfig).ok());
  ASSERT_TRUE(run->WriteKept("tokenizer.json", "{}").ok());
  EXPECT_THAT(*run->RestoreFiles(), testing::IsEmpty());
  const std::string config = *ReadFile("mine/config.json");
  fs::remove("mine/config.json");
  fs::remove("mine/tokenizer.json");
  EXPECT_THAT(*run->RestoreFiles(), testing::ElementsAre("config.json", "tokenizer.json"));
  EXPECT_EQ(*ReadFile("mine/config.json"), config);
  EXPECT_EQ(*ReadFile("mine/tokenizer.json"), "{}");
  fs::remove_all("mine");
  EXPECT_FALSE(run->RestoreFiles().ok());
}

TEST_F(RunDirectoryTest, NoticesThatTheFolderIsGone) {
  absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine"});
  ASSERT_TRUE(run->Begin(kConfig).ok());
  EXPECT_TRUE(run->CheckStillThere().ok());
  fs::rename("mine", "moved");
  EXPECT_EQ(run->CheckStillThere().message(), "mine: the run's folder was removed or renamed");
  MakeRun("mine");
  EXPECT_EQ(run->CheckStillThere().message(),
            "mine: another folder has this name now; the run's folder was removed or renamed");
  fs::remove_all("mine");
  fs::rename("moved", "mine");
  EXPECT_TRUE(run->CheckStillThere().ok());
}

TEST_F(RunDirectoryTest, SaysWhyAConfigurationCannotBeRead) {
  MakeRun("mine");
  std::ofstream("mine/config.json") << "{\"command\": ";
  EXPECT_THAT(std::string(RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true}).status().message()),
              HasSubstr("mine/config.json: it is not JSON: line 1, column "));
}

TEST_F(RunDirectoryTest, RefusesARunUnlessToldWhatToDo) {
  MakeRun("mine");
  const absl::Status refused = RunDirectory::Find({.name = "gpt", .out = "mine"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mine holds a run"));
  EXPECT_FALSE(RunDirectory::Find({.name = "gpt", .out = "mine", .resume = true, .overwrite = true}).ok());
  EXPECT_EQ(RunDirectory::Find({.name = "gpt", .overwrite = true}).status().message(),
            "overwrite: it needs out, the folder of the run to replace");
}

TEST_F(RunDirectoryTest, OverwritesOnlyWhatARunWrites) {
  MakeRun("mine");
  Touch("mine/notes.txt");
  for (const char* const name : {"events.out.tfevents.weft", "generation_config.json", "puzzles.png"}) {
    Touch(std::string("mine/") + name);
  }
  absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "gpt", .out = "mine", .overwrite = true});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(fs::exists("mine/metrics.jsonl")) << "Find touches nothing";
  ASSERT_TRUE(run->Begin(kConfig).ok());
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator("mine")) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, testing::UnorderedElementsAre("config.json", "notes.txt"));
}

TEST_F(RunDirectoryTest, NeverTouchesAFolderThatIsNoRun) {
  fs::create_directories("photos");
  Touch("photos/holiday.jpg");
  fs::create_directories("published");  // another program's model
  std::ofstream("published/config.json") << R"({"model_type": "gpt2"})";
  fs::create_directories("other");
  std::ofstream("other/config.json") << R"({"command": "train bert"})";
  for (const char* out : {"photos", "published", "other"}) {
    for (const RunDirectoryOptions& options : {RunDirectoryOptions{.name = "gpt", .out = out},
                                               RunDirectoryOptions{.name = "gpt", .out = out, .resume = true},
                                               RunDirectoryOptions{.name = "gpt", .out = out, .overwrite = true}}) {
      const absl::Status refused = RunDirectory::Find(options).status();
      EXPECT_THAT(std::string(refused.message()), HasSubstr("is not empty and holds no run of train gpt"));
    }
  }
}

TEST_F(RunDirectoryTest, TellsWhatCannotBeWritten) {
  Touch("file");
  EXPECT_EQ(RunDirectory::Find({.name = "gpt", .out = "file"}).status().message(), "file is not a folder");
  absl::StatusOr<RunDirectory> inside = RunDirectory::Find({.name = "gpt", .out = "file/inside"});
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_EQ(inside->Begin(kConfig).message(), "cannot create file/inside: Not a directory");
}

}  // namespace
}  // namespace weft
