// JinjaExpressions parses the expressions of Jinja. Each rule of the grammar returns the function that evaluates it.
//
//   JinjaExpressions parser(tokens);
//   const JinjaExpression sum = parser.Parse();      // of the tokens of "a + 1"
//   sum(run)                                         // in a JinjaRun, whose scope has `a`
#ifndef WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_
#define WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/text/templates/jinja_lexer.h"
#include "weft/text/templates/jinja_run.h"

namespace weft {

using JinjaExpression = std::function<JinjaValue(JinjaRun&)>;
struct JinjaArguments {
  std::vector<JinjaExpression> arguments;
  JinjaExpression rest;  // of *list; null if there is none
  std::vector<std::pair<std::string, JinjaExpression>> named;
};

// Reads tokens from left to right. The first error sticks; then all tokens are read.
class JinjaExpressions {
 public:
  // `tokens` must live as long as the parser.
  explicit JinjaExpressions(const std::vector<JinjaToken>& tokens) : tokens_(tokens) {}

  JinjaExpression Parse();  // a or b if c else d
  // Parses `a` or the tuple `a, b`. Without `conditional`, an `if` is not a part of the expression.
  JinjaExpression ParseTuple(bool conditional = true);
  // Parses `a.b(c)`, without operators and filters.
  JinjaExpression ParsePostfixed() { return ParsePostfix(ParsePrimary()); }
  // Parses `(a, b=c)`.
  JinjaArguments ParseArguments();
  // Parses the filters of `input | name(arguments) | ...`.
  JinjaExpression ParseFilters(JinjaExpression input);

  const JinjaToken& now() const { return tokens_[at_]; }
  const JinjaToken& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool Is(JinjaToken::Kind kind, absl::string_view text) const { return now().kind == kind && now().text == text; }
  // Skips the token if it is of this kind and text.
  bool Take(JinjaToken::Kind kind, absl::string_view text) { return Is(kind, text) && (Skip(), true); }
  bool TakeOperator(absl::string_view text) { return Take(JinjaToken::kOperator, text); }
  bool TakeName(absl::string_view text) { return Take(JinjaToken::kName, text); }
  // Skips a token, and fails unless it is of this kind and text.
  void Expect(JinjaToken::Kind kind, absl::string_view text);
  std::string ExpectName();
  void Skip() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }

  template <class... T>
  JinjaExpression Fail(const T&... message) {
    if (status_.ok()) status_ = InvalidArgument("line ", now().line, ": ", message...);
    at_ = tokens_.size() - 1;
    return [](JinjaRun&) { return JinjaValue(); };
  }
  const absl::Status& status() const { return status_; }

  // Bounds the recursion of the parser and of what it returns. `Nested` counts while it exists.
  class Nested {
   public:
    explicit Nested(JinjaExpressions* parser) : parser_(parser) {
      constexpr int kMaxNesting = 100;
      if (++parser_->nesting_ > kMaxNesting) parser_->Fail("more than ", kMaxNesting, " levels are nested");
    }
    ~Nested() { --parser_->nesting_; }

   private:
    JinjaExpressions* const parser_;
  };
  void BeginTag() { operators_ = 0; }

 private:
  JinjaExpression ParseOr();
  JinjaExpression ParseAnd();
  JinjaExpression ParseNot();
  JinjaExpression ParseComparison();
  JinjaExpression ParseSum();
  JinjaExpression ParseConcatenation();
  JinjaExpression ParseProduct();
  JinjaExpression ParseUnary(bool filters = true);
  JinjaExpression ParsePrimary();
  JinjaExpression ParsePostfix(JinjaExpression object);
  JinjaExpression ParseSubscript(JinjaExpression object);
  JinjaExpression ParseTest(JinjaExpression input);
  JinjaExpression ParseList(absl::string_view close, JinjaValue::Kind kind);
  JinjaExpression ParseDict();
  JinjaExpression Binary(char op, JinjaExpression left, JinjaExpression right);
  void CountOperator();

  const std::vector<JinjaToken>& tokens_;
  size_t at_ = 0;
  int nesting_ = 0, operators_ = 0;
  absl::Status status_;
};

// Returns the values of `arguments`.
JinjaCall Evaluate(const JinjaArguments& arguments, JinjaRun& run);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_EXPRESSION_H_
