// Reads the help of every command as a user does: it fits a terminal of 80 columns, and its examples work.
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/tests/weft_program.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

#define WEFT_COUNT_COMMAND(group, name, function) +1
constexpr size_t kCommands = WEFT_COMMANDS(WEFT_COUNT_COMMAND);
#undef WEFT_COUNT_COMMAND

class HelpTest : public WeftProgramTest {
 protected:
  // Returns the words of each command in the help of `weft`, such as {"train", "gpt"}.
  std::vector<Arguments> Commands() const {
    std::vector<Arguments> commands;
    std::istringstream help(Weft({"--help"}).out);
    for (std::string line; std::getline(help, line) && line != "First examples:";) {
      if (line.rfind("  ", 0) != 0 || line[2] == ' ') continue;
      std::istringstream words(line.substr(0, line.find("  ", 2)));
      commands.emplace_back();
      for (std::string word; words >> word;) commands.back().push_back(word);
    }
    return commands;
  }
  // Returns the lines of the shell below "Examples:" in `help`, with continued lines joined.
  static std::vector<std::string> Examples(const std::string& help) {
    std::vector<std::string> examples;
    std::istringstream lines(help.substr(help.find("xamples:\n") + 9));
    bool continues = false;
    for (std::string line; std::getline(lines, line) && !line.empty();) {
      if (line.rfind("  #", 0) == 0) continue;
      if (continues) {
        examples.back() += line;
      } else {
        examples.push_back(line);
      }
      continues = line.back() == '\\';
      if (continues) examples.back().pop_back();
    }
    return examples;
  }
  // Writes the files that examples name.
  void WriteFiles() const;
  // Runs a line of bash, with flags that make it quick.
  CommandResult Run(const std::string& example) const;
};

void HelpTest::WriteFiles() const {
  WriteTrainingData();  // a.txt, b.txt, labelled.tsv, pictures.csv
  WriteBert("minilm");
  WriteTransformer("ctranslate2-model");
  std::string book;
  for (int i = 0; i < 200; ++i) book += "In the beginning " + std::to_string(i) + " words and sentences.\n";
  Write("book.txt", book);
  Write("prompts.txt", "In the\nwords\n");
  Write("sentences.txt", "a ab\nab a\n");
  Write("masked.txt", "In the [MASK] was\n");
  fs::rename(Path("a.txt"), Path("en.txt"));
  fs::rename(Path("b.txt"), Path("de.txt"));
  fs::copy_file(Path("de.txt"), Path("output.txt"));
  fs::rename(Path("labelled.tsv"), Path("reviews.tsv"));
  fs::rename(Path("pictures.csv"), Path("digits.csv"));
  if (const char* data = std::getenv("WEFT_DATA"); data != nullptr) {
    const std::string folder = std::string(data) + "/stories260K/";
    fs::copy_file(folder + "checkpoint_legacy.bin", Path("stories260K.bin"));
    fs::copy_file(folder + "tokenizer.bin", Path("tok512.bin"));
  }
}

CommandResult HelpTest::Run(const std::string& example) const {
  // The function `weft` of the shell appends flags, of which the last wins.
  const std::string quick =
      "train() {\n"  // writes a run to the folder $1
      "  \"$program\" train gpt --out=\"$1\" --overwrite --steps=1 --sample-length=0 --layers=1 --width=16 --heads=2 "
      "--context=32 --batch=2 --eval-batches=2 >&2\n"
      "}\n"
      "weft() {\n"
      "  case \"$*\" in\n"
      "    *--init*) set -- \"$@\" --steps=2 ;;\n"
      "    'train gpt'*) set -- \"$@\" --steps=2 --layers=1 --width=16 --heads=2 --context=32 --batch=2 "
      "--sample-length=9 ;;\n"
      "    'train translate'*) set -- \"$@\" --steps=2 --vocabulary=300 --encoder-layers=1 --decoder-layers=1\n"
      "      set -- \"$@\" --width=32 --heads=2 --feed-forward=64 ;;\n"
      "    'train vit'*) set -- \"$@\" --steps=2 --patch-size=2 --layers=1 --width=32 --heads=2 ;;\n"
      "    train*) set -- \"$@\" --steps=2 --vocabulary=300 --layers=1 --width=32 --heads=2 --feed-forward=64\n"
      "      set -- \"$@\" --context=24 ;;\n"
      "    estimate*translate*|estimate*classify*) set -- \"$@\" --vocabulary=300 --measure-seconds=0.1 ;;\n"
      "    estimate*) set -- \"$@\" --measure-seconds=0.1 ;;\n"
      "    export*gguf*) rm -rf gpt; \"$program\" train gpt --data=book.txt --tokenizer=bpe --vocabulary=300 --out=gpt "
      "--steps=1 --layers=1 --width=32 --heads=2 --context=32 --batch=2 --sample-length=0 >&2 ;;\n"
      "    summary*runs*|report*follow*) train runs/gpt-1 ;;\n"
      "    report*runs*) train runs/gpt-1; train runs/gpt-2 ;;\n"
      // The costs of ops take a minute to measure, so apps/inspect/scheduling_test.cc alone measures them.
      "    calibrate) set -- \"$@\" --threads=1 ;;\n"
      "    profile*|report*|simulate*) set -- \"$@\" --graph=towers --runs=1 ;;\n"
      // A server runs until a signal ends it. Its log is there, and empty, before the loop reads it.
      "    serve*) : > serve.log; \"$program\" \"$@\" --port=0 2>> serve.log &\n"
      "      while ! grep -q http: serve.log && kill -0 $!; do sleep 0.01; done\n"
      "      kill $!; wait $!; return ;;\n"
      "    word-vectors*) set -- \"$@\" --word=a ;;\n"
      "    'graph --format'*) set -- \"$@\" --layers=1 --width=16 --heads=2 --context=8 --batch=2 ;;\n"
      "  esac\n"
      "  \"$program\" \"$@\"\n"
      "}\n";
  return RunCommand({"bash", "-c", "program=$1\n" + quick + example, "bash", fs::absolute("apps/weft").string()},
                    {.folder = folder_});
}

TEST_F(HelpTest, AllCommandsAreListed) { EXPECT_EQ(Commands().size(), kCommands); }

TEST_F(HelpTest, LinesFitATerminal) {
  std::vector<Arguments> commands = Commands();
  commands.push_back({});
  commands.push_back({"train"});
  for (const Arguments& command : commands) {
    const std::string help = Weft(Arguments{"help"} + command).out;
    EXPECT_EQ(help, Weft(command + Arguments{"--help"}).out);
    EXPECT_NE(help.find("Usage: weft "), std::string::npos) << help;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(CountCharacters(line), 80) << line;
      EXPECT_TRUE(line.empty() || !std::isspace(static_cast<unsigned char>(line.back()))) << line;
    }
  }
}

TEST_F(HelpTest, HelpOfAnUnknownCommand) {
  EXPECT_TRUE(Fails(Weft({"help", "trian"}), 2, "weft: unknown command 'trian', did you mean 'train'?"));
  EXPECT_TRUE(Fails(Weft({"help", "train", "gtp"}), 2, "unknown command 'gtp', did you mean 'gpt'?"));
  EXPECT_TRUE(Fails(Weft({"help", "embed", "gpt"}), 2, "unknown command 'gpt'"));
  EXPECT_TRUE(Fails(Weft({"hepl"}), 2, "did you mean 'help'?"));
}

TEST_F(HelpTest, ExamplesWork) {
  WriteFiles();
  size_t count = 0;
  std::vector<Arguments> commands = Commands();
  commands.insert(commands.begin(), Arguments());
  for (const Arguments& command : commands) {
    const std::vector<std::string> examples = Examples(Weft(command + Arguments{"--help"}).out);
    EXPECT_GE(examples.size(), 2) << (command.empty() ? "weft" : command.back());
    for (const std::string& example : examples) {
      if (example.find("stories260K") != std::string::npos && std::getenv("WEFT_DATA") == nullptr) continue;
      EXPECT_TRUE(Works(Run(example))) << example;
      ++count;
    }
  }
  EXPECT_GE(count, 2 * kCommands);
}

}  // namespace
}  // namespace weft
