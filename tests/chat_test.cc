// `weft chat` through a pipe, and as a person uses it at a terminal.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class ChatTest : public WeftProgramTest {
 protected:
  void SetUp() override { MakeRun("run", {"--context=64"}); }
  CommandResult Chat(const std::string& typed, const Arguments& more = {}) const {
    Write("typed.txt", typed);
    const Arguments shell = {"/bin/sh", "-c", "exec \"$0\" \"$@\" < typed.txt", Program()};
    return RunCommand(shell + Arguments{"chat", "--model=run", "--length=12"} + more, {.folder = Path("")});
  }
  static std::string Program() { return std::filesystem::absolute("apps/weft").string(); }
};

TEST_F(ChatTest, EachLineIsAnsweredFromTheWholeConversation) {
  const CommandResult result = Chat("line one\nline two\n/text\n");
  ASSERT_TRUE(Works(result));
  const std::string text = "line one\n" + result.out.substr(0, result.out.find('\n')) + "\nline two\n";
  EXPECT_TRUE(absl::StrContains(result.out, text)) << result.out;
  // An answer is what `weft generate` adds to the same text.
  const std::string generated =
      Weft({"generate", "--model=run", "--length=12", "--prompt=line one\n", "--stop=\n", "--truncate"}).out;
  EXPECT_EQ("line one\n" + result.out.substr(0, result.out.find('\n') + 1), generated);
  const CommandResult again = Chat("line one\n/clear\nline one\n");
  const size_t half = again.out.size() / 2;
  EXPECT_EQ(again.out.substr(0, half), again.out.substr(half));
  const std::string twice = Chat("line one\nline one\n").out;
  EXPECT_NE(twice.substr(0, twice.find('\n') + 1), twice.substr(twice.find('\n') + 1))
      << "the first turn has no influence";
}

// The file of SmolLM2 (tools/fetch_smollm) has a chat template in its metadata.
TEST_F(ChatTest, APublishedModelAnswersByItsTemplate) {
  const char* const smollm = std::getenv("WEFT_SMOLLM");
  if (smollm == nullptr) GTEST_SKIP() << "WEFT_SMOLLM is not set";
  const CommandResult result = Chat("What is the capital of Germany?\n/text\n",
                                    {std::string("--model=") + smollm, "--temperature=0", "--length=20"});
  ASSERT_TRUE(Works(result));
  EXPECT_TRUE(absl::StrContains(result.out.substr(0, result.out.find('\n')), "Berlin")) << result.out;
  EXPECT_TRUE(absl::StrContains(result.out, "<|im_start|>user\nWhat is the capital of Germany?<|im_end|>\n"))
      << result.out;
}

TEST_F(ChatTest, TurnsAndBeginnings) {
  const CommandResult result = Chat("a\n/text\n", {"--turn=\\nline {} one ", "--beginning=line 1\\n"});
  ASSERT_TRUE(Works(result));
  EXPECT_TRUE(absl::StrContains(result.out, "line 1\n\nline a one ")) << result.out;
  EXPECT_TRUE(Fails(Chat("a\n", {"--turn=nothing"}), 2, "--turn: 'nothing' must have one {}"));
  EXPECT_TRUE(Fails(Chat("a\n", {"--turn={}b"}), 2, "and a text before it"));
  EXPECT_TRUE(Fails(Weft({"chat"}), 2, "--model=MODEL is missing"));
  // A conversation that outgrows the context of 64 tokens goes on.
  EXPECT_TRUE(Works(Chat("line\nline\nline\nline\nline\nline\nline\nline\n")));
  EXPECT_TRUE(Fails(Chat("line\n\n@\n"), 1, "line 3: "));
  EXPECT_TRUE(Fails(Chat("a\n", {"--beginning=" + std::string(33, 'a')}), 2,
                    "beginning: it has 33 tokens, but may fill only half of the context, 32"));
  // The error of a line tells the place in the line.
  EXPECT_TRUE(Fails(Chat("line\nli@\n"), 1, "at byte 2"));
}

// The context has 64 tokens. If a turn leaves fewer than 12 of them for its answer, the model forgets older turns. It
// stops forgetting when the text has at most 32 tokens.
TEST_F(ChatTest, TheOldestTurnsAreForgottenButNotTheBeginning) {
  std::string typed;
  for (int turn = 0; turn < 12; ++turn) typed += "line\n";
  const CommandResult result = Chat(typed + "/text\n", {"--beginning=one "});
  ASSERT_TRUE(Works(result));
  const std::string beginning = "one ", between = "\nline\n";
  const std::string text = result.out.substr(result.out.find(beginning + between));
  std::vector<std::string> answers = absl::StrSplit(text.substr(beginning.size() + between.size()), between);
  ASSERT_EQ(answers.size(), 12) << text;
  answers.back().pop_back();     // the line end of /text
  std::string seen = beginning;  // what the model sees before its answer
  size_t first = 0;
  for (size_t turn = 0; turn < answers.size(); ++turn) {
    const auto see = [&] {
      seen = beginning;
      for (size_t i = first; i <= turn; ++i) seen += between + (i < turn ? answers[i] : "");
    };
    see();
    if (seen.size() > 64 - 12) {
      for (; seen.size() > 32 && first < turn; see()) ++first;
    }
    const std::string generated = Weft({"generate", "--model=run", "--length=12", "--prompt=" + seen, "--stop=\n"}).out;
    EXPECT_EQ(generated, seen + answers[turn] + "\n") << turn;
  }
  EXPECT_GT(first, 3);
}

// A model whose folder has a chat template reads the conversation in the template's form.
TEST_F(ChatTest, AModelsTemplateGivesTheForm) {
  Write("run/chat_template.jinja",
        "{% for m in messages %}{% if m.role == 'system' and loop.index > 1 %}{{ raise_exception('order') }}{% endif %}"
        "{% if 'two' in m.content and m.role == 'user' %}{{ raise_exception('no two') }}{% endif %}"
        "line {{ 'r' if m.role == 'user' else m.role | first }} {{ m.content }}\n{% endfor %}{% if "
        "add_generation_prompt %}line a {% endif %}");
  const CommandResult result = Chat("one\nline\n/text\n", {"--system=on\\nne"});
  ASSERT_TRUE(Works(result));
  const std::vector<std::string> parts = absl::StrSplit(result.out, "line s on\nne\nline r one\nline a ");
  ASSERT_EQ(parts.size(), 2) << result.out;
  // An answer is what `weft generate` adds to the text of the template.
  const std::string prompt = "line s on\nne\nline r one\nline a ";
  const std::string generated =
      Weft({"generate", "--model=run", "--length=12", "--prompt=" + prompt, "--truncate"}).out;
  const std::string answer = generated.substr(prompt.size(), generated.size() - prompt.size() - 1);
  EXPECT_TRUE(absl::StartsWith(parts[0], answer + "\n")) << generated << "\n" << result.out;
  EXPECT_TRUE(absl::StartsWith(parts[1], answer + "\nline r line\nline a ")) << result.out;
  // --turn and --beginning take the place of the template.
  EXPECT_TRUE(absl::StrContains(Chat("a\n/text\n", {"--turn=\\none {} "}).out, "\none a "));
  EXPECT_TRUE(absl::StrContains(Chat("a\n/text\n", {"--beginning=line"}).out, "\nline\na\n"));
  EXPECT_TRUE(Fails(Chat("a\n", {"--beginning=a", "--system=b"}), 2, "--system and --beginning exclude each other"));
  EXPECT_TRUE(Fails(Chat("one\ntwo\n"), 1, "line 2: run/chat_template.jinja: line 1: the template says: no two"));
  // The oldest turns are forgotten, but not the message of the system.
  EXPECT_TRUE(Works(Chat("line\nline\nline\nline\nline\nline\nline\n", {"--system=on"})));
  Write("run/chat_template.jinja", "\n{% include 'x' %}");
  EXPECT_TRUE(Fails(Chat("a\n"), 2, "run/chat_template.jinja: line 2: the tag 'include' is not supported here"));
  std::filesystem::remove(Path("run/chat_template.jinja"));
  EXPECT_TRUE(Fails(Chat("a\n", {"--system=b"}), 2, "--system: it needs a model with a chat template"));
}

// Types at a terminal: the file descriptor of its other end.
class Terminal {
 public:
  Terminal(const std::string& folder, const std::string& program, const Arguments& arguments) {
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    setenv("LC_ALL", "C", 1);  // lines are UTF-8 whatever the locale
    std::vector<std::string> words = Arguments{program} + arguments;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  ~Terminal() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    close(fd_);
  }

  void Type(const std::string& keys) const {
    EXPECT_EQ(write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // Returns what the program has shown since the last call, up to the first `wanted`.
  std::string Await(const std::string& wanted) {
    constexpr int kPatience = 20'000;  // milliseconds
    while (!absl::StrContains(shown_, wanted)) {
      pollfd ready = {.fd = fd_, .events = POLLIN};
      char bytes[4096];
      const ssize_t count = poll(&ready, 1, kPatience) == 1 ? read(fd_, bytes, sizeof(bytes)) : 0;
      if (count <= 0) {
        ADD_FAILURE() << "'" << wanted << "' was not shown, but '" << shown_ << "'";
        return "";
      }
      shown_.append(bytes, static_cast<size_t>(count));
    }
    const size_t end = shown_.find(wanted) + wanted.size();
    std::string before = shown_.substr(0, end);
    shown_.erase(0, end);
    return before;
  }
  int ExitCode() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int fd_ = -1;
  pid_t pid_ = 0;
  std::string shown_;
};

TEST_F(ChatTest, KeysAtATerminal) {
  const std::string never = "line one line one line one line one ";  // a text before {} at which no answer ends
  const Arguments endless = {"chat", "--model=run", "--length=100000000", "--turn=" + never + "{}\n",
                             "--history=lines.txt"};
  Terminal terminal(Path(""), Program(), endless);
  terminal.Await("> ");
  terminal.Type("forgotten\x03");  // Ctrl-C clears the line
  terminal.Type("a\n");
  terminal.Await("a\r\n");
  terminal.Await("e");  // the answer, which is endless and of which this letter is a part
  terminal.Type("\x03");
  terminal.Await("\r\n> ");  // Ctrl-C ended the answer alone
  terminal.Type("é\n");      // no character of the model: an error, after which the conversation goes on
  terminal.Await("U+00E9");
  terminal.Await("> ");
  terminal.Type("/text\n");
  EXPECT_TRUE(absl::StrContains(terminal.Await("\r\n> "), never + "a"));
  terminal.Type("\x1b[A\x1b[A\x1b[A");  // the third line before
  terminal.Await("a");
  terminal.Type("\x03\x04");  // clears it, and Ctrl-D ends the conversation
  EXPECT_EQ(terminal.ExitCode(), 0);
  EXPECT_TRUE(absl::StrContains(Read("lines.txt"), "a\n"));
  EXPECT_FALSE(absl::StrContains(Read("lines.txt"), "forgotten"));
}

}  // namespace
}  // namespace weft
