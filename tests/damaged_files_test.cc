// Tests what `weft` does with damaged and hostile files, and on full disks: it names the file, and neither crashes nor
// prints garbage.
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "weft/base/checksum.h"
#include "weft/core/safetensors.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DamagedFilesTest : public WeftProgramTest {
 protected:
  // Runs `weft ARGUMENTS` in a shell, after the commands `before` and with the redirection `redirect`.
  CommandResult Shell(const std::string& before, const Arguments& arguments, const std::string& redirect = "") const {
    const Arguments shell = {"sh", "-c", before + "; \"$@\" " + redirect, "sh", fs::absolute("apps/weft").string()};
    return RunCommand(shell + arguments, {.folder = folder_});
  }
  // Flips a bit of the byte before the end of `name`.
  void Damage(const std::string& name) const {
    std::string bytes = Read(name);
    bytes[bytes.size() - 2] ^= 1;
    Write(name, bytes);
  }
  // Replaces the first element of the last tensor of a safetensors file by NaN, with a fitting checksum.
  void PutNaN(const std::string& name) const {
    std::string bytes = Read(name);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + bytes.size() - sizeof nan, &nan, sizeof nan);
    const std::string key = "\"checksum\":\"";
    bytes.replace(bytes.find(key) + key.size(), kNoChecksum.size(), std::string(kNoChecksum));
    PutChecksum(&bytes);
    Write(name, bytes);
  }
};

// Whatever is damaged in the newest checkpoint, the run continues from the one before, to the same weights.
TEST_F(DamagedFilesTest, AResumeTakesTheCheckpointBefore) {
  MakeRun("whole", {"--steps=30", "--checkpoint-every=10"});
  const std::string info = "run/checkpoints/20/checkpoint.json", state = "run/checkpoints/20/state.safetensors";
  for (const char* damage : {"state", "data", "seed", "parameters_step"}) {
    fs::remove_all(Path("run"));
    MakeRun("run", {"--steps=20", "--checkpoint-every=10"});
    if (std::string(damage) == "state") {
      Damage(state);
    } else {
      std::string text = Read(info);
      text[text.find(':', text.find("\"" + std::string(damage) + "\"")) + 3] ^= 1;
      Write(info, text);
    }
    const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=run", "--steps=30"});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(Contains(resumed.err, "passing over the checkpoint of step 20: ")) << resumed.err;
    EXPECT_TRUE(Contains(resumed.err, std::string(damage) == "state" ? state : info)) << resumed.err;
    EXPECT_TRUE(Contains(resumed.err, "resumed after step 10")) << resumed.err;
  }
}

TEST_F(DamagedFilesTest, AResumeTellsOfDamagedMetrics) {
  MakeRun("run", {"--steps=20", "--checkpoint-every=10"});
  const std::string metrics = Read("run/metrics.jsonl");
  Write("run/metrics.jsonl", "#" + metrics + "#");  // the first line is damaged, the last line was cut off
  const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=run", "--steps=30"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(WithoutProgress(resumed.err), "weft: warning: removed damaged lines from run/metrics.jsonl: 1\n");
}

// checkpoint_test flips every bit of small files; these are as large as a tiny model's.
TEST_F(DamagedFilesTest, FlippedBitsInLargeFilesAreFound) {
  MakeRun("run");
  std::mt19937 random(1);
  for (const char* name : {"run/model.safetensors", "run/checkpoints/20/state.safetensors"}) {
    const std::string whole = Read(name);
    EXPECT_GT(whole.size(), 4096);
    for (int i = 0; i < 1000; ++i) {
      std::string flipped = whole;
      const size_t byte = random() % flipped.size();
      flipped[byte] ^= static_cast<char>(1 << random() % 8);
      Write("flipped", flipped);
      const auto file = SafetensorsFile::Open(Path("flipped"), WantedChecksum::kOfRun);
      EXPECT_FALSE(file.ok()) << name << ", byte " << byte;
      EXPECT_TRUE(Contains(std::string(file.status().message()), Path("flipped"))) << file.status();
    }
    Write("flipped", whole);
    EXPECT_TRUE(SafetensorsFile::Open(Path("flipped"), WantedChecksum::kOfRun).ok());
  }
}

TEST_F(DamagedFilesTest, ADamagedModelIsNamed) {
  MakeRun("run");
  Damage("run/model.safetensors");
  EXPECT_TRUE(Fails(Weft({"generate", "--model=run", "--prompt=a"}), 1, "run/model.safetensors: it is damaged: "));
}

TEST_F(DamagedFilesTest, AModelWithNaNIsNotUsed) {
  MakeRun("gpt");
  WriteBert("bert");
  WriteTrainingData();
  for (const char* name : {"classify", "translate", "vit"}) {
    ASSERT_TRUE(Works(Weft(SmallTraining(name) + Arguments{"--steps=2", std::string("--out=") + name})));
  }
  const Arguments kCommands[] = {
      {"generate", "--model=gpt", "--prompt=a"},   {"evaluate", "--model=gpt", "text.txt"},
      {"embed", "--model=bert", "text.txt"},       {"classify", "--model=classify", "text.txt"},
      {"classify", "--model=vit", "pictures.csv"}, {"translate", "--model=translate", "a.txt"}};
  for (const char* model : {"gpt", "bert", "classify", "translate", "vit"}) {
    PutNaN(std::string(model) + "/model.safetensors");
  }
  for (const Arguments& command : kCommands) {
    const CommandResult result = Weft(command);
    EXPECT_TRUE(Fails(result, 1, " is NaN")) << command[0];
    EXPECT_EQ(result.out, "") << command[0];
  }
}

TEST_F(DamagedFilesTest, AFileSizeLimitIsAnErrorEverywhere) {
  MakeRun("run");
  WriteBert("bert");
  const std::string limit = "ulimit -f 0";
  EXPECT_TRUE(Fails(Shell(limit, {"import", "--model=bert", "--out=imported"}), 1, "File too large"));
  EXPECT_TRUE(
      Fails(Shell(limit, {"export", "--model=run", "--layout=huggingface", "--out=exported"}), 1, "File too large"));
  EXPECT_TRUE(
      Fails(Shell(limit, Arguments{"train", "gpt", "--data=text.txt", "--out=new"} + kTinyModel), 1, "File too large"));
  for (const char* name : {"imported", "exported"}) EXPECT_FALSE(Exists(name)) << name;
  MakeRun("new");  // the folder is not refused
}

TEST_F(DamagedFilesTest, EndlessAndHugeInputsHaveABound) {
  WriteBert("bert");
  const std::string limit = "--max-bytes=1M";
  EXPECT_TRUE(Fails(Train({limit, "--out=run", "--data=/dev/zero"}), 1, "/dev/zero: it has more than 1000000 bytes"));
  EXPECT_TRUE(Fails(Weft({"embed", limit, "--model=bert", "/dev/zero"}), 1, "/dev/zero: it has more than"));
  EXPECT_TRUE(Fails(Shell(":", {"embed", limit, "--model=bert"}, "</dev/zero"), 1, "standard input, line 1: it has"));
  EXPECT_TRUE(Fails(Weft({"embed", "--max-bytes=many", "--model=bert"}), 2, "--max-bytes: 'many' is not a number of"));
  ASSERT_EQ(RunCommand({"sh", "-c", "head -c 3000000 /dev/zero | gzip >bomb.gz"}, {.folder = folder_}).exit_code, 0);
  EXPECT_TRUE(Fails(Train({limit, "--out=run", "--data=bomb.gz"}), 2, "bomb.gz: can't decompress it"));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(DamagedFilesTest, MessagesAreSafeForTheTerminalAndShort) {
  Write("config.json", "{\"\\u001b]0;owned\\u0007\\u009b2J\": 1}");
  const CommandResult result = Weft({"train", "gpt", "--config=config.json"});
  EXPECT_TRUE(Fails(result, 2, R"(unknown key '\x1b]0;owned\x07\xc2\x9b2J')"));
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
  Write("config.json", "{\"" + std::string(3'000'000, 'a') + "\": 1}");
  EXPECT_LT(Weft({"train", "gpt", "--config=config.json"}).err.size(), 5000);
}

TEST_F(DamagedFilesTest, SmallMistakesHaveTheRightExitCodes) {
  fs::create_symlink("loop", Path("loop"));
  EXPECT_TRUE(Fails(Train({"--out=run", "--data=loop"}), 2, "loop: Too many levels of symbolic links"));
  EXPECT_TRUE(Fails(Weft({"generate", "--model=loop"}), 2, "loop: Too many levels of symbolic links"));
  EXPECT_TRUE(Fails(Train({"--out=run", "--memory-budget=1"}), 2, "memory_budget is 1 bytes"));
  EXPECT_TRUE(Fails(Weft({"generate", "--model=loop", "--temperature=0x10"}), 2, "'0x10' is not a number"));
  for (const Arguments& command : {Arguments{"--help"}, Arguments{"train", "gpt", "--help"}, Arguments{"--version"}}) {
    EXPECT_TRUE(Fails(Shell(":", command, ">/dev/full"), 1, "standard output could not be written")) << command[0];
  }
  EXPECT_FALSE(Exists("run"));
}

}  // namespace
}  // namespace weft
