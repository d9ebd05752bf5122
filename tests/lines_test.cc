// The common behaviour of commands that process lines of text, from files or from standard input.
#include <filesystem>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class LinesTest : public WeftProgramTest {
 protected:
  void SetUp() override { WriteBert("model"); }

  // `weft COMMAND < input`, where the input is the contents of a file, or a folder.
  CommandResult Piped(const Arguments& command, const std::string& input) const {
    const Arguments shell = {"sh", "-c", "input=$1; shift; \"$@\" <\"$input\"", "sh", Path(input), Program()};
    return RunCommand(shell + command, {.folder = folder_});
  }
  static std::string Program() { return fs::absolute("apps/weft").string(); }

  const std::vector<Arguments> kCommands = {{"tokenize", "--tokenizer=model"},
                                            {"tokenize", "--special", "--tokenizer=model"},
                                            {"embed", "--model=model"},
                                            {"word-vectors", "--model=model", "--word=a"},
                                            {"word-vectors", "--model=model", "--word=a", "--vectors"}};
};

TEST_F(LinesTest, EveryKindOfLineBreakWorks) {
  Write("unix.txt", "a ab\na\na b\n");
  Write("no_newline.txt", "a ab\na\na b");
  Write("windows.txt", "a ab\r\na\r\na b\r\n");
  Write("empty.txt", "");
  ASSERT_EQ(RunCommand({"gzip", "-k", "unix.txt"}, {.folder = folder_}).exit_code, 0);
  for (const Arguments& command : kCommands) {
    SCOPED_TRACE(command[0]);
    const CommandResult wanted = Weft(command + Arguments{"unix.txt"});
    ASSERT_TRUE(Works(wanted));
    for (const char* name : {"unix.txt", "no_newline.txt", "windows.txt"}) {
      EXPECT_EQ(Weft(command + Arguments{name}).out, wanted.out) << name;
      EXPECT_EQ(Piped(command, name).out, wanted.out) << name;
    }
    EXPECT_EQ(Weft(command + Arguments{"unix.txt.gz"}).out, wanted.out);
    const CommandResult nothing = Weft(command + Arguments{"empty.txt"});
    EXPECT_TRUE(Works(nothing));
    EXPECT_EQ(nothing.out, "");
    EXPECT_TRUE(Works(Piped(command, "empty.txt")));
  }
}

TEST_F(LinesTest, AHyphenIsStandardInput) {
  Write("first.txt", "a\n");
  Write("second.txt", "a ab\n");
  for (const Arguments& command : kCommands) {
    SCOPED_TRACE(command[0]);
    EXPECT_EQ(Piped(command + Arguments{"first.txt", "-"}, "second.txt").out,
              Weft(command + Arguments{"first.txt", "second.txt"}).out);
    EXPECT_EQ(Piped(command + Arguments{"-", "second.txt"}, "first.txt").out,
              Weft(command + Arguments{"first.txt", "second.txt"}).out);
  }
  Write("latin1.txt", "caf\xE9\n");
  EXPECT_TRUE(Fails(Piped(kCommands[0] + Arguments{"-"}, "latin1.txt"), 1, "standard input, line 1: not UTF-8"));
  Write("config.json", R"({"widht": 1})");
  EXPECT_TRUE(Fails(Piped({"graph", "--config=-"}, "config.json"), 2, "unknown key 'widht'"));
  EXPECT_TRUE(Fails(Piped({"train", "gpt", "--config=-"}, "config.json"), 2, "unknown key 'widht'"));
  // The estimate reads the options twice: also for the smaller batch that it measures.
  Write("estimate.json", R"({"data": "text.txt", "width": 32, "heads": 2, "layers": 1, "context": 64, "batch": 512})");
  const Arguments pipe = {"sh", "-c", "cat estimate.json | \"$@\"", "sh", Program()};  // it can't be read again
  const CommandResult estimate =
      RunCommand(pipe + Arguments{"estimate", "train", "gpt", "--config=-", "--json", "--measure-seconds=0.01"},
                 {.folder = folder_});
  EXPECT_TRUE(Works(estimate));
  EXPECT_NE(estimate.out.find("\"batch\":512}"), std::string::npos) << estimate.out;
  EXPECT_EQ(estimate.out.find("\"measured_batch\":512"), std::string::npos) << estimate.out;
  EXPECT_TRUE(Works(Piped({"evaluate", "--translations=-", "--references=first.txt"}, "first.txt")));
  EXPECT_TRUE(Fails(Weft({"embed", "--model=-"}), 2, "--model: '-' is standard input or output, wanted MODEL"));
  EXPECT_TRUE(Fails(Weft({"train", "gpt", "--out=-"}), 2, "--out: '-' is standard input or output, wanted FOLDER"));
  EXPECT_TRUE(Fails(Weft({"train", "gpt", "--data=-"}), 2, "--data: '-' is standard input, which a resumed run can't"));
}

TEST_F(LinesTest, AHyphenIsStandardOutput) {
  for (const Arguments& command : {Arguments{"profile"}, Arguments{"report", "--schedule"}}) {
    const CommandResult result = Weft(command + Arguments{"--graph=towers", "--runs=1", "--out=-"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out.front(), command[0] == "profile" ? '{' : '<') << result.out.substr(0, 99);
    EXPECT_EQ(result.err.rfind("towers: ", 0), 0) << result.err;
    EXPECT_FALSE(Exists("-"));
  }
}

TEST_F(LinesTest, LineBreaksAreNoPartOfTheText) {
  Write("tokenizer.json", "{\"type\": \"byte\"}");
  Write("windows.txt", "a\r\n\r\nb\rc\r\n");
  EXPECT_EQ(Weft({"tokenize", "--tokenizer=tokenizer.json", "windows.txt"}).out, "[97]\n[]\n[98,13,99]\n");
}

TEST_F(LinesTest, ByteZeroIsACharacter) {
  Write("tokenizer.json", "{\"type\": \"byte\"}");
  Write("zeros.txt", std::string("a\0b\n\0", 5));
  EXPECT_EQ(Weft({"tokenize", "--tokenizer=tokenizer.json", "zeros.txt"}).out, "[97,0,98]\n[0]\n");
  Write("inside.txt", std::string("a \0 ab\n", 7));  // BERT's normalisation drops it
  Write("without.txt", "a ab\n");
  for (const char* command : {"tokenize --tokenizer", "embed --model"}) {
    const std::string words = command;
    const size_t space = words.find(' ');
    const Arguments arguments = {words.substr(0, space), words.substr(space + 1) + "=model"};
    const CommandResult result = Weft(arguments + Arguments{"inside.txt"});
    EXPECT_TRUE(Works(result));
    EXPECT_EQ(result.out, Weft(arguments + Arguments{"without.txt"}).out);
  }
}

TEST_F(LinesTest, ErrorsNameTheFileAndTheLine) {
  fs::create_directory(Path("folder"));
  Write("good.txt", "a\n");
  Write("latin1.txt", "a\na\na caf\xE9\n");
  Write("cut.txt", "a\na \xE2\x82");  // in the middle of a character
  const Files before = Snapshot(".");
  for (const Arguments& command : kCommands) {
    SCOPED_TRACE(command[0]);
    const auto fails = [&](const Arguments& files, const std::string& message) {
      EXPECT_TRUE(Fails(Weft(command + files), 2, "weft " + command[0] + ": " + message));
    };
    fails({"latin1.txt"}, "latin1.txt, line 3: not UTF-8 at byte 5 (0xE9)");
    fails({"good.txt", "latin1.txt"}, "latin1.txt, line 3: not UTF-8 at byte 5 (0xE9)");
    fails({"cut.txt"}, "cut.txt, line 2: not UTF-8 at byte 2 (0xE2)");
    fails({"missing.txt"}, "cannot open missing.txt: No such file or directory");
    fails({"good.txt", "missing.txt"}, "cannot open missing.txt: No such file or directory");
    fails({"folder"}, "cannot read folder: it is a folder, not a file");
    fails({""}, "cannot open : No such file or directory");
    EXPECT_TRUE(Fails(Piped(command, "latin1.txt"), 1, "standard input, line 3: not UTF-8 at byte 5 (0xE9)"));
    EXPECT_TRUE(Fails(Piped(command, "folder"), 1, "standard input could not be read"));
  }
  EXPECT_EQ(Differences(Snapshot("."), before), "");
}

TEST_F(LinesTest, OfModelsTheVocabularyMustFitTheWeights) {
  Write("good.txt", "a\n");
  const std::string config = Read("model/config.json");
  const auto with_vocabulary = [&](const std::string& size) {
    std::string text = config;
    Write("model/config.json", text.replace(text.find("\"vocab_size\":6"), 14, "\"vocab_size\":" + size));
  };
  const std::vector<Arguments> commands(kCommands.begin() + 2, kCommands.end());
  for (const Arguments& command : commands) {
    SCOPED_TRACE(command[0]);
    const auto fails = [&](const std::string& message) {
      EXPECT_TRUE(Fails(Weft(command + Arguments{"good.txt"}), 2, message));
    };
    for (const std::string size : {"5", "7"}) {
      with_vocabulary(size);
      fails(
          "model/model.safetensors does not fit the model: 'embeddings.word_embeddings.weight' is f32[6,8], wanted "
          "f32[" +
          size);
    }
    with_vocabulary("6");
    const std::string vocabulary = Read("model/vocab.txt");
    Write("model/vocab.txt", vocabulary + "more\n");
    fails("the tokenizer has 7 tokens, but the model's table 6");
    Write("model/vocab.txt", vocabulary);
    EXPECT_TRUE(Works(Weft(command + Arguments{"good.txt"})));
  }
}

}  // namespace
}  // namespace weft
