// `weft tokenize --out` and `weft train gpt` on its token files, as a user calls them.
#include <csignal>
#include <filesystem>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TokenFilesTest : public WeftProgramTest {
 protected:
  TokenFilesTest() {
    for (int i = 0; i < 400; ++i) {
      text_ += "line " + std::to_string(i * i) + " of the text\n" + (i % 9 == 0 ? "\n" : "");
      other_ += std::to_string(i) + " is a number, as " + std::to_string(3 * i) + " is one.\n";
    }
    Write("a.txt", text_);
    Write("b.txt", other_);
  }

  void Tokenize() const {
    EXPECT_TRUE(Works(Weft(
        {"tokenize", "--out=a", "--vocabulary=300", "--document-end=blank-line", "--shard-tokens=1000", "a.txt"})));
    EXPECT_TRUE(Works(Weft({"tokenize", "--out=b", "--tokenizer=a", "b.txt"})));
  }
  CommandResult TrainOn(const std::string& data, const std::string& out, const Arguments& more = {},
                        CommandOptions options = {}) const {
    return Weft(Arguments{"train", "gpt", "--data=" + data, "--out=" + out, "--steps=20", "--eval-every=10",
                          "--eval-batches=3", "--log-every=1"} +
                    kTinyModel + more,
                options);
  }

  std::string text_, other_;
};

TEST_F(TokenFilesTest, TrainsOnTokenFilesAndGenerates) {
  Tokenize();
  const CommandResult result = TrainOn("a", "run");
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(Contains(result.err, " tokens (300 different)")) << result.err;
  EXPECT_EQ(Read("run/tokenizer.json"), Read("a/tokenizer.json"));
  EXPECT_TRUE(Exists("run/sample.txt"));
  EXPECT_TRUE(Works(Weft({"generate", "--model=run", "--prompt=line 1", "--length=10"})));
}

TEST_F(TokenFilesTest, NeitherThreadsNorAResumeChangeABit) {
  Tokenize();
  for (const std::string data : {"a:0.7,b:0.3", "a"}) {
    const Arguments flags = {data == "a" ? "--documents=separate" : "--documents=across", "--steps=300",
                             "--eval-every=100", "--checkpoint-every=100"};
    ASSERT_TRUE(Works(TrainOn(data, "one", flags + Arguments{"--threads=1"})));
    ASSERT_TRUE(Works(TrainOn(data, "two", flags + Arguments{"--threads=2"})));
    EXPECT_EQ(Differences(Results("one"), Results("two")), "");
    const CommandResult stopped =
        TrainOn(data, "stopped", flags, {.signal_after = "step 7/300  loss", .signal = SIGINT});
    EXPECT_TRUE(Fails(stopped, 1, "continue with --resume --out=stopped"));
    EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=stopped"})));
    EXPECT_EQ(Differences(Results("one"), Results("stopped")), "");
    for (const char* run : {"one", "two", "stopped"}) std::filesystem::remove_all(Path(run));
  }
}

TEST_F(TokenFilesTest, SeparateDocumentsChangeTheLoss) {
  Tokenize();
  ASSERT_TRUE(Works(TrainOn("a", "across")));
  ASSERT_TRUE(Works(TrainOn("a", "separate", {"--documents=separate"})));
  EXPECT_NE(Read("across/metrics.jsonl"), Read("separate/metrics.jsonl"));
  EXPECT_TRUE(Contains(Read("separate/config.json"), "\"documents\": \"separate\""));
  EXPECT_TRUE(Fails(TrainOn("a.txt", "text", {"--documents=separate"}), 2,
                    "--documents: 'separate' needs token files, which know where documents begin"));
}

TEST_F(TokenFilesTest, OneDocumentGivesTheBitsOfTheSameTextInMemory) {
  ASSERT_TRUE(Works(TrainOn("a.txt", "text")));
  ASSERT_TRUE(Works(Weft({"tokenize", "--out=files", "--tokenizer=text", "--shard-tokens=777", "a.txt"})));
  ASSERT_TRUE(Works(TrainOn("files", "run")));
  EXPECT_EQ(Read("run/model.safetensors"), Read("text/model.safetensors"));
  EXPECT_EQ(Read("run/sample.txt"), Read("text/sample.txt"));
}

// Token files are prepared in DIR.tmp, in which a killed writer may have left files.
TEST_F(TokenFilesTest, RemovesOnlyWhatAnEarlierWriterLeft) {
  const Arguments tokenize = {"tokenize", "--out=new", "--vocabulary=300", "a.txt"};
  std::filesystem::create_directory(Path("new.tmp"));
  Write("new.tmp/thesis.txt", "mine");
  Write("new.tmp/index.json", "old");
  EXPECT_TRUE(Fails(Weft(tokenize), 2, "new.tmp, where token files are prepared, has other files"));
  EXPECT_EQ(Read("new.tmp/thesis.txt"), "mine");
  EXPECT_TRUE(Exists("new.tmp/index.json"));
  std::filesystem::remove(Path("new.tmp/thesis.txt"));
  EXPECT_TRUE(Works(Weft(tokenize)));
  EXPECT_FALSE(Exists("new.tmp"));
}

TEST_F(TokenFilesTest, FindsDamageAndOtherData) {
  Tokenize();
  EXPECT_TRUE(Works(Weft({"tokenize", "--check=a"})));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--check=a", "--decode"}), 2, "--check excludes other flags and files"));
  ASSERT_TRUE(Works(TrainOn("a:1,b:1", "run")));
  EXPECT_TRUE(Fails(Weft({"train", "gpt", "--resume", "--out=run", "--data=b", "--steps=30"}), 2,
                    "data: this run began with other data"));
  std::string shard = Read("a/tokens-00001.bin");
  shard[100] = static_cast<char>(shard[100] ^ 4);
  Write("a/tokens-00001.bin", shard);
  EXPECT_TRUE(Fails(Weft({"tokenize", "--check=a"}), 1, "a/tokens-00001.bin: its checksum is "));
  Write("a/tokens-00001.bin", shard + "x");
  EXPECT_TRUE(Fails(TrainOn("a", "run2"), 2, "a/tokens-00001.bin has 2001 bytes, but index.json gives it 2000"));
  EXPECT_TRUE(Fails(TrainOn("b:1,a", "run2"), 2, "either all folders have a weight or none has one"));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--out=b", "--tokenizer=b", "a.txt"}), 2, "b exists"));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--out=c", "missing.txt"}), 2, "missing.txt: No such file"));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--out=c", "--decode", "a.txt"}), 2, "it excludes --special and --decode"));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--out=c", "a.txt", "-"}), 2, "one is learnt from files only"));
}

}  // namespace
}  // namespace weft
