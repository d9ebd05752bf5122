// JinjaTokens divides a Jinja template into tokens, with the settings of transformers: trim_blocks and lstrip_blocks.
// So a tag such as {% if x %} that stands alone on a line leaves no empty line. JinjaExpressions parses the expressions
// among them. Each rule of the grammar returns the function that evaluates it.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<JinjaToken> tokens, JinjaTokens("Hi {{ name }}!"));
//   // kText "Hi ", kOutput, kName "name", kOperator "}}", kText "!", kEnd
//   JinjaExpressions parser(tokens);
//   const JinjaExpression sum = parser.Parse();      // of the tokens of "a + 1"
//   sum(run)                                         // in a JinjaRun, whose scope has `a`
#ifndef WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_
#define WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/text/templates/jinja_run.h"

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

using JinjaExpression = std::function<JinjaValue(JinjaRun&)>;
// Arguments with their names: "" if an argument has none, and "*" if it is a list of arguments.
using JinjaArguments = std::vector<std::pair<std::string, JinjaExpression>>;

JinjaExpression JinjaConstant(const JinjaValue& value);

// Reads tokens from left to right. The first error sticks; then all tokens are read.
class JinjaExpressions {
 public:
  // `tokens` must live as long as the parser.
  explicit JinjaExpressions(const std::vector<JinjaToken>& tokens) : tokens_(tokens) {}

  JinjaExpression Parse();  // a or b if c else d
  // Parses `a` or the tuple `a, b`. Without `conditional`, an `if` is not a part of the expression.
  JinjaExpression ParseTuple(bool conditional = true);
  JinjaArguments ParseArguments(JinjaArguments before);  // (a, b=c), after those of `before`
  // Returns the value of `function` for `arguments`.
  JinjaExpression Apply(const JinjaFunction& function, JinjaArguments arguments);
  // Parses items with `parse` up to `close`, with commas between them.
  template <class ParseItem>
  void ParseList(absl::string_view close, const ParseItem& parse) {
    while (status_.ok() && !Take(close)) {
      parse();
      if (!Is(close)) Expect(",");
    }
  }

  const JinjaToken& now() const { return tokens_[at_]; }
  void Skip() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  // Whether the token is this name or operator.
  bool Is(absl::string_view text) const {
    return now().text == text && (now().kind == JinjaToken::kName || now().kind == JinjaToken::kOperator);
  }
  bool Take(absl::string_view text) { return Is(text) && (Skip(), true); }
  void Expect(absl::string_view text);
  std::string ExpectName();
  template <class... T>
  JinjaExpression Fail(const T&... message) {
    if (status_.ok()) status_ = InvalidArgument("line ", now().line, ": ", message...);
    at_ = tokens_.size() - 1;
    return [](JinjaRun&) { return JinjaValue(); };
  }
  const absl::Status& status() const { return status_; }

  // Enters a level of nested expressions, which ends with the returned object. Fails beyond kMaxNesting levels, so that
  // neither the parser nor the functions that it returns overflow the stack.
  auto Nest() {
    constexpr int kMaxNesting = 100;
    if (++nesting_ > kMaxNesting) Fail("more than ", kMaxNesting, " levels are nested");
    return absl::MakeCleanup([this] { --nesting_; });
  }
  void BeginTag() { operators_ = 0; }

 private:
  JinjaExpression ParseLogical(int level);
  JinjaExpression ParseBinary(int level);
  JinjaExpression ParseUnary(bool filters);
  JinjaExpression ParsePrimary();
  JinjaExpression ParsePostfix(JinjaExpression object);
  JinjaExpression ParseSubscript(JinjaExpression object);
  JinjaExpression ParseUse(JinjaUse use, JinjaExpression input);  // a filter or a test

  const std::vector<JinjaToken>& tokens_;
  size_t at_ = 0;
  int nesting_ = 0, operators_ = 0;
  absl::Status status_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_
