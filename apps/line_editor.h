// A LineEditor reads lines that a person types at a terminal, with the keys of editline(7).
//
//   WEFT_ASSIGN_OR_RETURN(LineEditor editor, LineEditor::Open("> ", "history.txt"));
//   while (const std::optional<std::string> line = editor.Read()) ...
//
// The library is libedit. GNU Readline does the same, but its licence would become the program's.
#ifndef WEFT_APPS_LINE_EDITOR_H_
#define WEFT_APPS_LINE_EDITOR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

class LineEditor {
 public:
  // `prompt`: what the terminal shows before each line. `history`: a file with the lines of earlier sessions, one a
  // line, to which each typed line is appended; empty: none. Returns an error if the file can't be read and written.
  static absl::StatusOr<LineEditor> Open(const std::string& prompt, const std::string& history = "");
  LineEditor(LineEditor&&);
  ~LineEditor();

  // Returns the next line without its line break, or nothing at the end of the input. The arrow keys bring earlier
  // lines back, Ctrl-C clears the line, and Ctrl-D ends the input.
  std::optional<std::string> Read();

 private:
  struct Terminal;

  explicit LineEditor(std::unique_ptr<Terminal> terminal);

  std::unique_ptr<Terminal> terminal_;
};

}  // namespace weft

#endif  // WEFT_APPS_LINE_EDITOR_H_
