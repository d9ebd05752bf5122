// JinjaTokens divides a Jinja template into tokens, with the settings of transformers: trim_blocks and lstrip_blocks.
// So a tag such as {% if x %} that stands alone on a line leaves no empty line.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<JinjaToken> tokens, JinjaTokens("Hi {{ name }}!"));
//   // kText "Hi ", kOutput, kName "name", kOperator "}}", kText "!", kEnd
#ifndef WEFT_TEXT_TEMPLATES_JINJA_LEXER_H_
#define WEFT_TEXT_TEMPLATES_JINJA_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct JinjaToken {
  // The text outside of tags; "{{" and "{%"; names, strings without quotes, decimal numbers; operators, "}}" and "%}";
  // the end of the template.
  enum Kind { kText, kOutput, kTag, kName, kString, kInteger, kOperator, kEnd } kind;
  std::string text;
  int line;  // counted from 1
};

// Returns the tokens of `source`, of which the last one is kEnd. Returns InvalidArgument, with the line, if `source` is
// not a template.
absl::StatusOr<std::vector<JinjaToken>> JinjaTokens(absl::string_view source);

// Returns `text` without leading or trailing characters: those of `characters`, or Python's white space if it is null.
absl::string_view PythonStrip(absl::string_view text, bool left, bool right, const std::string* characters = nullptr);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_LEXER_H_
