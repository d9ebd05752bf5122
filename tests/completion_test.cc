// Completes lines of `weft` in bash, with the script that `weft completion bash` prints.
#include <sstream>
#include <string>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class CompletionTest : public WeftProgramTest {
 protected:
  void SetUp() override {
    const CommandResult script = Weft({"completion", "bash"});
    ASSERT_TRUE(Works(script));
    Write("weft.bash", script.out);
  }
  // Returns the completions of the last of `words`, in order. bash splits `--flag=value` into three words.
  std::string Complete(const Arguments& words) const {
    const std::string bash =
        "source weft.bash\n"
        "COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n"
        "_weft && printf '%s\\n' \"${COMPREPLY[@]}\" | sort | tr '\\n' ' '\n";
    const CommandResult result = RunCommand(Arguments{"bash", "-c", bash, "bash"} + words, {.folder = folder_});
    EXPECT_TRUE(Works(result));
    return result.out;
  }
};

TEST_F(CompletionTest, BashCompletesCommandsFlagsAndChoices) {
  const struct {
    Arguments words;
    const char* completions;
  } rows[] = {
      {{"weft", "gen"}, "generate "},
      {{"weft", "train", "g"}, "gpt "},
      {{"weft", "help", "train", "tr"}, "translate "},
      {{"weft", "help", "em"}, "embed "},
      {{"weft", "--v"}, "--version "},
      {{"weft", "train", "gpt", "--sample-"}, "--sample-length= --sample-temperature= "},
      {{"weft", "train", "gpt", "--over"}, "--overwrite "},
      {{"weft", "train", "gpt", "--precision", "=", "b"}, "bf16 "},
      {{"weft", "train", "gpt", "--precision", "="}, "bf16 f32 "},
      {{"weft", "train", "gpt", "--precision", "f"}, "f32 "},
      {{"weft", "train", "gpt", "--steps", "=", ""}, " "},
      {{"weft", "graph", "--mode=eval", "--format", "h"}, "html "},
      {{"weft", "train", "gpt", "--data", "=", "te"}, "text.txt "},
      {{"weft", "embed", "te"}, "text.txt "},
      {{"weft", "completion", ""}, "bash zsh "},
      {{"weft", "train", "nosuch", "--"}, "--help "},
      {{"weft", "train", "gpt", "--pre"}, "--pre-norm --precision= "},
  };
  for (const auto& [words, completions] : rows) {
    EXPECT_EQ(Complete(words), completions) << testing::PrintToString(words);
  }
}

TEST_F(CompletionTest, BashAsksTheFunction) {
  const CommandResult result = RunCommand({"bash", "-c", "source weft.bash; complete -p weft"}, {.folder = folder_});
  EXPECT_EQ(result.out, "complete -F _weft weft\n");
}

TEST_F(CompletionTest, EveryFlagOfACommandIsKnown) {
  std::istringstream help(Weft({"train", "bert", "--help"}).out);
  int flags = 0;
  for (std::string line; std::getline(help, line);) {
    if (line.rfind("  --", 0) != 0) continue;
    const std::string flag = line.substr(2, line.find_first_of(" \n", 2) - 2);
    EXPECT_NE((" " + Complete({"weft", "train", "bert", flag})).find(" " + flag), std::string::npos) << flag;
    if (++flags == 20) break;  // each runs bash
  }
  EXPECT_EQ(flags, 20);
}

TEST_F(CompletionTest, ZshCanReadItsScript) {
  Write("_weft", Weft({"completion", "zsh"}).out);
  if (RunCommand({"zsh", "--version"}).exit_code == 127) GTEST_SKIP() << "zsh is not installed";
  const CommandResult result =
      RunCommand({"zsh", "-f", "-c", "autoload -U compinit; compinit -D; source ./_weft; print $_comps[weft]"},
                 {.folder = folder_});
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "_weft\n");
}

TEST_F(CompletionTest, TheShellMustBeKnown) {
  EXPECT_TRUE(Fails(Weft({"completion"}), 2, "weft completion: name the shell: bash or zsh"));
  EXPECT_TRUE(Fails(Weft({"completion", "fish"}), 2, "the shell is 'fish', wanted bash or zsh"));
}

}  // namespace
}  // namespace weft
