// `weft chat` talks with a GPT. The library libedit reads the lines that a person types at a terminal. GNU Readline
// does the same, but its licence would become the program's.
#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/inference/generate/text_generation.h"

namespace weft {
namespace {

struct ChatFlags {
  std::string model, history;
  std::string turn = "\\n{}\\n", beginning, system;
  ChatOptions options = {
      .generator = {.generate = {.sampling = {.temperature = 0.8, .seed = 1}, .length = 200}},
  };
  GivenFlags given;
};

constexpr char kKeys[] =
    "Type a line, and the model answers. Ctrl-C ends an answer, Ctrl-D the conversation.\n"
    "/clear begins a new one, /text shows what the model has read.\n";

Hyperparameters Table(ChatFlags* flags) {
  Hyperparameters table = {
      ModelRow(kGptModel, &flags->model),
      {"system",
       "message of the system, with which a conversation begins, for a model with a chat template; \\n is a line break",
       &flags->system,
       {.group = "Text", .type = "TEXT"}},
      {"turn",
       "the text that a turn adds, in place of the model's chat template: {} is the typed line and \\n a line break. "
       "An answer ends where the text before {} occurs",
       &flags->turn,
       {.group = "Text", .type = "TEXT"}},
      {"beginning",
       "text before the first turn, such as an instruction; \\n is a line break. The conversation then has the form of "
       "--turn, also if the model has a chat template",
       &flags->beginning,
       {.may_be_empty = true, .group = "Text", .type = "TEXT"}},
      {"history",
       "at a terminal: file to which typed lines are appended, and whose lines the arrow keys bring back",
       &flags->history,
       {.group = "Text", .type = "FILE"}},
  };
  Append(GeneratorRows(&flags->options.generator), &table);
  return table;
}

// Reads lines that a person types at a terminal, with the keys of editline(7). The arrow keys bring earlier lines back,
// Ctrl-C clears the line, and Ctrl-D ends the input.
class LineEditor {
 public:
  explicit LineEditor(const std::string& prompt) : prompt_(prompt) {
    constexpr int kMaxLines = 1000;  // the history forgets older lines
    history(past_, &event_, H_SETSIZE, kMaxLines);
    history(past_, &event_, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(
        editor_, EL_PROMPT, +[](EditLine* e) {
          LineEditor* editor = nullptr;
          el_get(e, EL_CLIENTDATA, &editor);
          return editor->prompt_.data();
        });
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, past_);
    // While a line is edited, Ctrl-C is a key and no signal, which would end the program.
    el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor_, EL_BIND, "^C", "em-kill-line", nullptr);
    el_set(editor_, EL_BIND, "^D", "ed-end-of-file", nullptr);
  }
  ~LineEditor() {
    el_end(editor_);
    history_end(past_);
  }
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Reads the lines of earlier sessions from a file, to which each typed line will be appended.
  absl::Status OpenHistory(const std::string& path) {
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) Remember(line);
    file_.open(path, std::ios::app);
    return file_.is_open() ? absl::OkStatus() : SystemStatus("write", path, errno);
  }

  // Returns the next line without its line break, or nothing at the end of the input.
  std::optional<std::string> Read() {
    int count = 0;
    const char* const typed = el_gets(editor_, &count);
    if (typed == nullptr || count <= 0) return std::nullopt;
    std::string line(absl::StripSuffix(typed, "\n"));
    Remember(line);
    if (file_.is_open() && !line.empty()) file_ << line << std::endl;
    return line;
  }

 private:
  void Remember(const std::string& line) {
    if (!line.empty()) history(past_, &event_, H_ENTER, line.c_str());
  }

  std::string prompt_;
  HistEvent event_ = {};
  History* const past_ = history_init();
  EditLine* const editor_ = el_init("weft", stdin, stdout, stderr);
  std::ofstream file_;  // of the history
};

// While an AnswerInterrupt exists, Ctrl-C sets `requested` in place of ending the program.
class AnswerInterrupt {
 public:
  AnswerInterrupt() {
    struct sigaction action = {};
    action.sa_handler = [](int) { requested = 1; };
    action.sa_flags = SA_RESTART;  // otherwise, a piece of text could not be written
    sigaction(SIGINT, &action, &before_);
  }
  ~AnswerInterrupt() { sigaction(SIGINT, &before_, nullptr); }

  static inline volatile std::sig_atomic_t requested = 0;

 private:
  struct sigaction before_;
};

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Prints the model's answer to `line`. The lines /clear and /text are commands, which change or print the
// conversation. An empty line has no answer.
absl::Status Take(absl::string_view line, Chat* chat) {
  if (line.empty()) return absl::OkStatus();
  if (line == "/clear") {
    chat->Clear();
    return absl::OkStatus();
  }
  if (line == "/text") {
    WEFT_ASSIGN_OR_RETURN(const std::string text, chat->text());
    Write(text + "\n");
    return absl::OkStatus();
  }
  AnswerInterrupt::requested = 0;
  const absl::Status status = chat->Answer(line, [](const GeneratedToken& generated) {
    Write(generated.text);
    return AnswerInterrupt::requested == 0;
  });
  if (status.ok()) Write("\n");
  return status;
}

absl::Status TalkAtTerminal(const std::string& history, Chat* chat) {
  // Text is UTF-8. In another locale, such as C, the editor would drop characters of a line.
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
  LineEditor editor("> ");
  if (!history.empty()) WEFT_RETURN_IF_ERROR(UsageError(editor.OpenHistory(history)));
  const AnswerInterrupt interrupt;
  Write(kKeys);
  while (const std::optional<std::string> line = editor.Read()) {
    const absl::Status status = Take(*line, chat);
    // The conversation goes on after a line that the tokenizer can't encode.
    if (!status.ok() && !absl::IsInvalidArgument(status)) return status;
    if (!status.ok()) std::fprintf(stderr, "weft chat: %s\n", Printable(status.message()).c_str());
  }
  Write("\n");
  return absl::OkStatus();
}

absl::Status Talk(ChatFlags flags) {
  WEFT_RETURN_IF_ERROR(Validate(flags.options.generator.generate.sampling));
  for (const char* other : {"turn", "beginning"}) {
    if (!flags.given.contains("system") || !flags.given.contains(other)) continue;
    return InvalidArgument("--system and --", other, " exclude each other");
  }
  if (flags.given.contains("turn")) flags.options.turn = absl::StrReplaceAll(flags.turn, {{"\\n", "\n"}});
  flags.options.system = absl::StrReplaceAll(flags.system, {{"\\n", "\n"}});
  flags.options.beginning = absl::StrReplaceAll(flags.beginning, {{"\\n", "\n"}});
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt,
                        OpenForCommand(flags.model, flags.given, /*beams=*/false, &flags.options.generator));
  WEFT_ASSIGN_OR_RETURN(const auto chat, UsageError(Chat::Create(std::move(gpt), flags.options)));
  WEFT_RETURN_IF_ERROR(isatty(STDIN_FILENO) != 0
                           ? TalkAtTerminal(flags.history, chat.get())
                           : ForEachLine({}, [&](absl::string_view line) { return Take(line, chat.get()); }));
  PrintFullNote(chat->generator());
  return absl::OkStatus();
}

}  // namespace

Command ChatCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Talks with a GPT. A model with a chat template reads the conversation in the template's form. For "
       "any other model, or with --turn or --beginning, each typed line is added to a text, which the "
       "model continues. Without a terminal, the lines of standard input are answered.",
       "talks with a GPT",
       {{"Talks with a run's model.", "echo 'In the beginning' | weft chat --model=runs/gpt-1"},
        {"Asks a model that has seen questions and answers.",
         "echo 'What is rain?' | weft chat --model=runs/gpt-1 --turn='\\nQuestion: {}\\nAnswer:'"}}},
      std::make_shared<ChatFlags>(), Table, Talk);
}

}  // namespace weft
