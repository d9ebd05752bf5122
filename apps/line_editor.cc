#include "weft/apps/line_editor.h"

#include <histedit.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

struct LineEditor::Terminal {
  explicit Terminal(const std::string& text) : prompt(text) {
    constexpr int kMaxLines = 1000;  // the history forgets older lines
    history(past, &event, H_SETSIZE, kMaxLines);
    history(past, &event, H_SETUNIQUE, 1);
    el_set(editor, EL_CLIENTDATA, this);
    el_set(
        editor, EL_PROMPT, +[](EditLine* e) {
          Terminal* terminal = nullptr;
          el_get(e, EL_CLIENTDATA, &terminal);
          return terminal->prompt.data();
        });
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, past);
    // While a line is edited, Ctrl-C is a key and no signal, which would end the program.
    el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor, EL_BIND, "^C", "em-kill-line", nullptr);
    el_set(editor, EL_BIND, "^D", "ed-end-of-file", nullptr);
  }
  ~Terminal() {
    el_end(editor);
    history_end(past);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Remember(const std::string& line) {
    if (!line.empty()) history(past, &event, H_ENTER, line.c_str());
  }

  std::string prompt;
  HistEvent event = {};
  History* const past = history_init();
  EditLine* const editor = el_init("weft", stdin, stdout, stderr);
  std::ofstream file;  // of the history
};

LineEditor::LineEditor(std::unique_ptr<Terminal> terminal) : terminal_(std::move(terminal)) {}
LineEditor::LineEditor(LineEditor&&) = default;
LineEditor::~LineEditor() = default;

absl::StatusOr<LineEditor> LineEditor::Open(const std::string& prompt, const std::string& history) {
  std::setlocale(LC_CTYPE, "");  // the terminal's characters
  auto terminal = std::make_unique<Terminal>(prompt);
  if (!history.empty()) {
    std::ifstream lines(history);
    for (std::string line; std::getline(lines, line);) terminal->Remember(line);
    terminal->file.open(history, std::ios::app);
    if (!terminal->file.is_open()) return SystemStatus("write", history, errno);
  }
  return LineEditor(std::move(terminal));
}

std::optional<std::string> LineEditor::Read() {
  int count = 0;
  const char* const typed = el_gets(terminal_->editor, &count);
  if (typed == nullptr || count <= 0) return std::nullopt;
  std::string line(absl::StripSuffix(typed, "\n"));
  terminal_->Remember(line);
  if (terminal_->file.is_open() && !line.empty()) terminal_->file << line << std::endl;
  return line;
}

}  // namespace weft
