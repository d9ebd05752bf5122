// Tests `weft train gpt` as a user calls it: every run gives the same bits, a run can be stopped and resumed, and no
// error loses data.
#include <csignal>
#include <filesystem>
#include <regex>

#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TrainingTest : public WeftProgramTest {
 protected:
  // Expects `run` to equal a run with these flags that was not stopped.
  void ExpectLikeUnstopped(const std::string& run, const Arguments& flags) const {
    MakeRun("unstopped", flags + Arguments{"--overwrite"});
    const Files files = Results(run);
    EXPECT_EQ(Differences(files, Results("unstopped")), "");
  }
};

TEST_F(TrainingTest, MakesARun) {
  const CommandResult result = Train({"--out=run"});
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(std::regex_search(
      result.err, std::regex("^training a GPT of 3[0-9]{3} parameters on [0-9]+ characters \\([0-9]+ different\\) in "
                             "run\n(?:runs on .*\n)?step 0/20  validation loss [0-9.]+ .*\n")))
      << result.err;
  EXPECT_TRUE(Contains(result.err, "step 20/20  loss ")) << result.err;
  EXPECT_TRUE(Contains(result.err, "\nsaved run/model.safetensors\n")) << result.err;
  EXPECT_EQ(result.out, "sample:\n" + Read("run/sample.txt"));  // progress is no result
  const Files files = Snapshot("run");
  for (const char* name : {"config.json", "metrics.jsonl", "model.safetensors", "sample.txt", "tokenizer.json",
                           "checkpoints/20/state.safetensors", "checkpoints/20/checkpoint.json"}) {
    EXPECT_EQ(files.count(name), 1) << name;
  }
  EXPECT_EQ(files.size(), 9);  // and the two folders
  const std::string metrics = files.at("metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 21);
  EXPECT_TRUE(std::regex_search(
      metrics, std::regex("\n\\{\"step\":10,\"tokens\":160,\"seconds\":[^,]+,\"train_loss\":[^,]+,\"val_loss\":[^,]+,"
                          "\"val_bits_per_byte\":[^,]+,\"learning_rate\":[^,]+,\"grad_norm\":[^,]+,\"tokens_per_"
                          "second\":[^,]+,\"memory\":[1-9][0-9]+\\}\n")))
      << metrics;
}

TEST_F(TrainingTest, LossFalls) {
  const CommandResult result = Train({"--out=run", "--steps=300", "--eval-every=300", "--learning-rate=1e-2"});
  EXPECT_TRUE(Works(result));
  std::smatch losses;
  ASSERT_TRUE(
      std::regex_search(result.err, losses,
                        std::regex("step 0/300  validation loss ([0-9.]+)[^]*step 300/300  validation loss ([0-9.]+)")))
      << result.err;
  EXPECT_LT(std::stod(losses[2]), 0.8 * std::stod(losses[1]));
}

// Large enough for its products to be cut into tiles, with dropout.
TEST_F(TrainingTest, TheNumberOfThreadsDoesNotChangeABit) {
  const Arguments model = {"--layers=2", "--width=128",   "--heads=4", "--context=64",
                           "--batch=12", "--dropout=0.1", "--steps=8", "--eval-every=4"};
  Write("text.txt", Read("text.txt") + Read("text.txt"));
  for (const char* threads : {"1", "2", "4"}) {
    MakeRun(threads, model + Arguments{std::string("--threads=") + threads});
  }
  EXPECT_EQ(Differences(Results("1"), Results("2")), "");
  EXPECT_EQ(Differences(Results("1"), Results("4")), "");
  MakeRun("again", model + Arguments{"--threads=4"});
  EXPECT_EQ(Differences(Results("4"), Results("again")), "");
}

TEST_F(TrainingTest, AnotherSeedGivesAnotherRun) {
  MakeRun("one");
  MakeRun("two", {"--seed=2"});
  const std::string different = Differences(Results("one"), Results("two"));
  for (const char* name : {"metrics.jsonl\n", "model.safetensors\n", "sample.txt\n"}) {
    EXPECT_TRUE(Contains(different, name)) << different;
  }
}

TEST_F(TrainingTest, InterruptedItSavesAndCanBeResumed) {
  for (const int signal : {SIGINT, SIGTERM}) {
    // A line has about 60 bytes, so the signal arrives before step 300.
    const Arguments flags = {"--steps=600", "--log-every=1", "--eval-every=100", "--dropout=0.1"};
    const std::string run = signal == SIGINT ? "interrupted" : "terminated";
    const CommandResult result =
        Train(flags + Arguments{"--out=" + run}, {.signal_after = "step 5/600  loss", .signal = signal});
    EXPECT_TRUE(Fails(result, 1, "interrupted after step "));
    std::smatch step;
    ASSERT_TRUE(std::regex_search(result.err, step, std::regex("step ([0-9]+) and saved; continue with (.*)\n")));
    EXPECT_EQ(step[2], "--resume --out=" + run);
    EXPECT_TRUE(Exists(run + "/checkpoints/" + step[1].str() + "/state.safetensors"));
    EXPECT_TRUE(Works(Weft({"generate", "--model=" + run, "--length=5"})));

    const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=" + run});
    EXPECT_TRUE(Works(resumed));
    EXPECT_TRUE(Contains(resumed.err, "resumed after step " + step[1].str() + "\n")) << resumed.err;
    ExpectLikeUnstopped(run, flags);
  }
}

TEST_F(TrainingTest, InBF16AResumedRunEndsTheSame) {
  const Arguments flags = {"--precision=bf16", "--steps=600", "--log-every=1", "--eval-every=100"};
  const CommandResult result =
      Train(flags + Arguments{"--out=run"}, {.signal_after = "step 5/600  loss", .signal = SIGINT});
  EXPECT_TRUE(Fails(result, 1, "interrupted after step "));
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=run"})));
  EXPECT_TRUE(Contains(Read("run/config.json"), "\"precision\": \"bf16\""));
  ExpectLikeUnstopped("run", flags);
}

TEST_F(TrainingTest, KilledItGoesOnFromTheLastCheckpoint) {
  const Arguments flags = {"--steps=600", "--log-every=1", "--eval-every=100", "--checkpoint-every=50"};
  const CommandResult result =
      Train(flags + Arguments{"--out=run"}, {.signal_after = "step 120/600  loss", .signal = SIGKILL});
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_FALSE(Exists("run/sample.txt"));
  const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=run"});
  EXPECT_TRUE(Works(resumed));
  EXPECT_TRUE(std::regex_search(resumed.err, std::regex("resumed after step [1-5][05]0\n"))) << resumed.err;
  ExpectLikeUnstopped("run", flags);
}

TEST_F(TrainingTest, MoreStepsContinueARun) {
  const Arguments flags = {"--learning-rate=1e-3", "--min-learning-rate=1e-3", "--warmup-steps=0"};
  MakeRun("run", flags + Arguments{"--steps=10"});
  const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=run", "--steps=20"});
  EXPECT_TRUE(Works(resumed));
  EXPECT_TRUE(Contains(resumed.err, "resumed after step 10\n")) << resumed.err;
  MakeRun("unstopped", flags + Arguments{"--checkpoint-every=10"});
  EXPECT_EQ(Differences(Results("run"), Results("unstopped")), "");
  EXPECT_TRUE(Contains(Read("run/config.json"), "\"steps\": 20"));
}

TEST_F(TrainingTest, ResumingAFinishedRunChangesNothing) {
  MakeRun("run");
  const Files before = Snapshot("run");
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=run"})));
  EXPECT_EQ(Differences(Snapshot("run"), before), "");
}

TEST_F(TrainingTest, ResumingARunThatSavedNothingStartsAtStepZero) {
  MakeRun("run");
  fs::remove_all(Path("run/checkpoints"));
  fs::remove(Path("run/model.safetensors"));
  const CommandResult result = Train({"--out=run", "--resume"});
  EXPECT_TRUE(Contains(result.err, "nothing was saved yet to resume from: starting at step 0\n")) << result.err;
  ExpectLikeUnstopped("run", {});
}

TEST_F(TrainingTest, WeightsWithoutACheckpointAreNotReplaced) {
  MakeRun("run");
  fs::remove_all(Path("run/checkpoints"));
  const Files before = Snapshot("run");
  EXPECT_TRUE(Fails(Train({"--out=run", "--resume"}), 2, "run has a model.safetensors, but no checkpoint to continue"));
  Write("run/checkpoints", "no folder");
  EXPECT_TRUE(Fails(Train({"--out=run", "--resume"}), 2, "cannot read run/checkpoints: Not a directory"));
  fs::remove(Path("run/checkpoints"));
  EXPECT_EQ(Differences(Snapshot("run"), before), "");
}

TEST_F(TrainingTest, WhatAKilledSaveLeftIsPutInOrder) {
  MakeRun("run");
  fs::rename(Path("run/checkpoints/20"), Path("run/checkpoints/.replaced-20"));
  fs::create_directory(Path("run/checkpoints/.writing-20"));
  EXPECT_TRUE(Contains(Train({"--out=run", "--resume"}).err, "resumed after step 20\n"));
  EXPECT_FALSE(Exists("run/checkpoints/.writing-20"));
  ExpectLikeUnstopped("run", {});
}

TEST_F(TrainingTest, ATextMayMove) {
  MakeRun("run");
  fs::rename(Path("text.txt"), Path("moved.txt"));
  const CommandResult result = Weft({"train", "gpt", "--resume", "--out=run", "--data=moved.txt"});
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(Contains(Read("run/config.json"), "/moved.txt\"")) << Read("run/config.json");
}

TEST_F(TrainingTest, AnotherSeedInTheConfigurationIsRefused) {
  MakeRun("run");
  Write("run/config.json", std::regex_replace(Read("run/config.json"), std::regex("\"seed\": 1"), "\"seed\": 5"));
  EXPECT_TRUE(Fails(Weft({"train", "gpt", "--resume", "--out=run"}), 2,
                    "seed: it is 5, but the checkpoint of step 20 is of a run with seed 1"));
}

TEST_F(TrainingTest, AnotherBinaryIsWarnedOf) {
  MakeRun("run");
  std::string info = Read("run/checkpoints/20/checkpoint.json");
  info = std::regex_replace(info, std::regex("\"version\": \"[^\"]*\""), "\"version\": \"0.0.1, g++ 3\"");
  info = std::regex_replace(info, std::regex("\"checksum\": \"[^\"]*\""),
                            "\"checksum\": \"" + std::string(kNoChecksum) + "\"");
  PutChecksum(&info);
  Write("run/checkpoints/20/checkpoint.json", info);
  const CommandResult result = Weft({"train", "gpt", "--resume", "--out=run"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(
      Contains(result.err, "weft: warning: the checkpoint of step 20 was written by Weft 0.0.1, g++ 3 on a CPU"))
      << result.err;
}

TEST_F(TrainingTest, ARunIsTrainedByOneProcessAtATime) {
  MakeRun("run");
  const auto lock = LockFolder(Path("run"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  for (const char* how : {"--resume", "--overwrite"}) {
    EXPECT_TRUE(Fails(Train({"--out=run", how}), 2, "run is in use by another process"));
  }
}

TEST_F(TrainingTest, OutputThatNobodyReadsIsAnError) {
  const CommandResult full =
      RunCommand({"sh", "-c", fs::absolute("apps/weft").string() + " graph --layers=1 >/dev/full"});
  EXPECT_TRUE(Fails(full, 1, "weft graph: standard output could not be written"));
  // Training continues if the reader of its output ends, and nothing is written to files in place of closed streams.
  const std::string train = fs::absolute("apps/weft").string() + " train gpt --data=" + Path("text.txt") +
                            " --layers=1 --width=16 --heads=2 --context=8 --batch=2 --steps=200 --log-every=1";
  RunCommand({"sh", "-c", train + " --out=" + Path("left") + " | head -n 1"});
  EXPECT_TRUE(Exists("left/model.safetensors"));
  RunCommand({"sh", "-c", train + " --out=" + Path("closed") + " >&- 2>&-"});
  EXPECT_EQ(Differences(Results("left"), Results("closed")), "");
}

TEST_F(TrainingTest, WithoutAFolderRunsAreNumbered) {
  EXPECT_TRUE(Works(Train({})));
  EXPECT_TRUE(Works(Train({"--seed=2", "--steps=10"})));
  EXPECT_TRUE(Exists("runs/gpt-1/model.safetensors"));
  const std::string first = Read("runs/gpt-1/metrics.jsonl");
  const CommandResult resumed = Train({"--resume", "--seed=2"});
  EXPECT_TRUE(Works(resumed));
  EXPECT_TRUE(Contains(resumed.err, "in runs/gpt-2\nresumed after step 10\n")) << resumed.err;
  EXPECT_EQ(Read("runs/gpt-1/metrics.jsonl"), first);
  EXPECT_FALSE(Exists("runs/gpt-3"));
}

TEST_F(TrainingTest, ARefusalLeavesTheOldRunAsItWas) {
  MakeRun("run", {"--steps=10"});
  Write("other.txt", Read("text.txt") + "more");
  const Files before = Snapshot("run");
  const struct {
    Arguments flags;
    std::string message;
  } rows[] = {
      {{}, "run holds a run: pass --resume to continue it, --overwrite to replace it, or another --out"},
      {{"--overwrite", "--resume"}, "--resume: it excludes overwrite"},
      {{"--overwrite", "--data=missing.txt"}, "missing.txt"},
      {{"--overwrite", "--heads=3"}, "not a multiple of heads 3"},
      {{"--overwrite", "--widht=3"}, "unknown flag"},
      {{"--overwrite", "--config=missing.json"}, "missing.json"},
      {{"--resume", "--width=32"}, "a resumed run can't change width: it has '16', asked for is '32'"},
      {{"--resume", "--precision=bf16"}, "a resumed run can't change precision: it has 'f32', asked for is 'bf16'"},
      {{"--resume", "--seed=2"}, "a resumed run can't change seed"},
      {{"--resume", "--tokenizer=bytes"}, "a resumed run can't change tokenizer: it has '', asked for is 'bytes'"},
      {{"--resume", "--data=other.txt"}, "this run began with other data"},
      {{"--resume", "--steps=5"}, "the run has made 10 steps already, more than the 5"},
  };
  for (const auto& [flags, message] : rows) {
    EXPECT_TRUE(Fails(Train(Arguments{"--out=run"} + flags), 2, message));
    EXPECT_EQ(Differences(Snapshot("run"), before), "") << message;
  }
  fs::rename(Path("other.txt"), Path("text.txt"));
  EXPECT_TRUE(Fails(Train({"--out=run", "--resume"}), 2, "this run began with other data"));
  EXPECT_EQ(Differences(Snapshot("run"), before), "");
}

TEST_F(TrainingTest, OverwriteReplacesARun) {
  MakeRun("run", {"--seed=2", "--steps=30", "--checkpoint-every=15", "--save-best", "--ema=0.9", "--tensorboard"});
  Write("run/notes.txt", "mine");
  EXPECT_TRUE(Works(Train({"--out=run", "--overwrite"})));
  EXPECT_EQ(Read("run/notes.txt"), "mine");
  fs::remove(Path("run/notes.txt"));
  ExpectLikeUnstopped("run", {});
}

TEST_F(TrainingTest, FoldersThatCannotHoldTheRun) {
  fs::create_directory(Path("mine"));
  Write("mine/letter.txt", "dear");
  const struct {
    std::string out;
    int exit_code;
    std::string message;
  } rows[] = {
      {"mine", 2, "mine is not empty and holds no run of train gpt"},
      {"text.txt", 2, "text.txt is not a folder"},
      {"text.txt/run", 2, "text.txt/run: "},
      {"/proc/run", 2, "/proc/run: "},
  };
  const Files before = Snapshot(".");
  for (const auto& [out, exit_code, message] : rows) {
    for (const char* how : {"--steps=20", "--overwrite", "--resume"}) {
      EXPECT_TRUE(Fails(Train({"--out=" + out, how}), exit_code, message)) << how;
      EXPECT_EQ(Differences(Snapshot("."), before), "") << out << " " << how;
    }
  }
}

TEST_F(TrainingTest, ADamagedCheckpointIsPassedOver) {
  const Arguments flags = {"--checkpoint-every=10"};
  MakeRun("run", flags);
  fs::resize_file(Path("run/checkpoints/20/state.safetensors"), 1000);
  const CommandResult result = Train({"--out=run", "--resume", "--checkpoint-every=10"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(Contains(result.err, "weft: warning: passing over the checkpoint of step 20: ")) << result.err;
  EXPECT_TRUE(Contains(result.err, "resumed after step 10\n")) << result.err;
  ExpectLikeUnstopped("run", flags);

  Write("run/checkpoints/10/checkpoint.json", "{");
  Write("run/checkpoints/20/state.safetensors", "");
  const Files before = Snapshot("run");
  const CommandResult refused = Train({"--out=run", "--resume"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(Contains(refused.err, "no checkpoint can be read")) << refused.err;
  EXPECT_EQ(Differences(Snapshot("run"), before), "");
}

TEST_F(TrainingTest, ANanNamesTheStepAndTheOp) {
  const CommandResult result = Train({"--out=run", "--learning-rate=1e30", "--min-learning-rate=0", "--warmup-steps=0",
                                      "--clip=0", "--checkpoint-every=1", "--max-skipped=0"});
  EXPECT_TRUE(Fails(result, 1, "loss nan, gradient norm nan at step 2; the first op to make a NaN was "));
  EXPECT_TRUE(std::regex_search(result.err, std::regex("NaN was [a-z_]+ f32\\[[0-9,]*\\] at gpt/[^ ]+; no weight "
                                                       "became infinite or NaN; the last checkpoint is of step 1\n")))
      << result.err;
  const std::string metrics = Read("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);  // before the first step, and after it
  EXPECT_TRUE(Exists("run/checkpoints/1/state.safetensors"));
  EXPECT_FALSE(Exists("run/sample.txt"));
}

TEST_F(TrainingTest, WeightsThatAreNotFiniteAreNotSaved) {
  const struct {
    Arguments flags;
    std::string message;
  } rows[] = {
      {{"--steps=1", "--learning-rate=1e300", "--warmup-steps=0"},
       "adamw made 'h.0.attn.c_attn.bias' infinite or NaN at step 1"},
      {{"--epsilon=0", "--tied-head=false", "--eval-every=0"}, "adamw made "},
  };
  for (const auto& [flags, message] : rows) {
    EXPECT_TRUE(Fails(Train(flags + Arguments{"--out=run", "--overwrite", "--checkpoint-every=1"}), 1, message));
    EXPECT_FALSE(Exists("run/model.safetensors"));
    EXPECT_FALSE(Exists("run/checkpoints/1"));
  }
}

}  // namespace
}  // namespace weft
