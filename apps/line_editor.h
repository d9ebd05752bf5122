// A LineEditor reads lines that a person types, with the keys of editline(7), or lines of a file or a pipe.
//
//   LineEditor editor("> ", "history.txt");
//   while (const std::optional<std::string> line = editor.Read()) ...
//
// The library is libedit. GNU Readline does the same, but its licence would become the program's.
#ifndef WEFT_APPS_LINE_EDITOR_H_
#define WEFT_APPS_LINE_EDITOR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace weft {

class LineEditor {
 public:
  // `prompt`: what a terminal shows before each line. `history`: a file with the lines of earlier sessions, which may
  // be missing; empty: none.
  explicit LineEditor(const std::string& prompt, const std::string& history = "");
  ~LineEditor();

  // Returns the next line of standard input without its line break, or nothing at the end of the input. At a terminal,
  // the arrow keys bring earlier lines back, Ctrl-C clears the line, and Ctrl-D ends the input.
  std::optional<std::string> Read();
  bool interactive() const { return terminal_ != nullptr; }

  // Writes the newest lines to the file `history`.
  absl::Status Save() const;

 private:
  struct Terminal;

  const std::string history_;
  std::unique_ptr<Terminal> terminal_;  // null if standard input is no terminal
};

}  // namespace weft

#endif  // WEFT_APPS_LINE_EDITOR_H_
