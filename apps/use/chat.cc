// `weft chat` talks with a GPT.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/line_editor.h"
#include "weft/apps/lines.h"
#include "weft/apps/printing.h"
#include "weft/apps/use/generator_rows.h"
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
  WEFT_ASSIGN_OR_RETURN(LineEditor editor, UsageError(LineEditor::Open("> ", history)));
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
