#include "weft/apps/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <iostream>

#include "absl/strings/strip.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {

struct LineEditor::Terminal {
  explicit Terminal(const std::string& text) : prompt(text) {
    constexpr int kLines = 1000;  // that the history keeps
    history(past, &event, H_SETSIZE, kLines);
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

  std::string prompt;
  HistEvent event = {};
  History* const past = history_init();
  EditLine* const editor = el_init("weft", stdin, stdout, stderr);
};

LineEditor::LineEditor(const std::string& prompt, const std::string& history) : history_(history) {
  if (isatty(STDIN_FILENO) == 0) return;
  std::setlocale(LC_CTYPE, "");  // the terminal's characters
  terminal_ = std::make_unique<Terminal>(prompt);
  if (!history_.empty()) ::history(terminal_->past, &terminal_->event, H_LOAD, history_.c_str());
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::Read() {
  if (terminal_ == nullptr) {
    std::string line;
    return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
  }
  int count = 0;
  const char* const typed = el_gets(terminal_->editor, &count);
  if (typed == nullptr || count <= 0) return std::nullopt;
  const std::string line(absl::StripSuffix(typed, "\n"));
  if (!line.empty()) history(terminal_->past, &terminal_->event, H_ENTER, line.c_str());
  return line;
}

absl::Status LineEditor::Save() const {
  if (terminal_ == nullptr || history_.empty()) return absl::OkStatus();
  errno = 0;
  if (history(terminal_->past, &terminal_->event, H_SAVE, history_.c_str()) >= 0) return absl::OkStatus();
  return SystemStatus("write", history_, errno);
}

}  // namespace weft
