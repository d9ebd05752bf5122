#include "weft/text/templates/jinja_expression.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using View = absl::string_view;
using Expression = JinjaExpression;

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_' || static_cast<uint8_t>(c) >= 0x80; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<JinjaToken>> Run() {
    while (status_.ok() && at_ < source_.size()) ReadTextAndTag();
    WEFT_RETURN_IF_ERROR(status_);
    Push(JinjaToken::kEnd, "", 0);
    return std::move(tokens_);
  }

 private:
  View Rest() const { return View(source_).substr(at_); }
  int Line() {
    line_ += static_cast<int>(std::count(source_.begin() + counted_, source_.begin() + at_, '\n'));
    counted_ = static_cast<ptrdiff_t>(at_);
    return line_;
  }
  template <class... T>
  void Fail(const T&... message) {
    if (status_.ok()) status_ = InvalidArgument("line ", Line(), ": ", message...);
  }
  // Adds a token of the next `bytes`.
  void Push(JinjaToken::Kind kind, View text, size_t bytes) {
    tokens_.push_back({kind, std::string(text), Line()});
    at_ += bytes;
  }

  void ReadTextAndTag() {
    const auto begins_tag = [&](size_t at) { return View("{%#").find(source_[at + 1]) != View::npos; };
    size_t end = source_.find('{', at_);
    while (end < source_.size() && !begins_tag(end)) end = source_.find('{', end + 1);
    View text = Rest().substr(0, end - at_);
    if (end == source_.npos) return Push(JinjaToken::kText, text, text.size());
    const char tag = source_[end + 1], sign = source_[end + 2];  // '\0' at the end of the source
    if (sign == '-') {
      text = PythonStrip(text, false, true);
    } else if (sign != '+' && tag != '{') {
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const bool at_line_start = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (at_line_start && PythonStrip(text.substr(line), true, false).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) Push(JinjaToken::kText, text, 0);
    at_ = end + (sign == '-' || sign == '+' ? 3 : 2);
    if (tag == '#') {
      const size_t close = source_.find("#}", at_);
      if (close == source_.npos) return Fail("the comment has no end, #}");
      const char close_sign = close > at_ ? source_[close - 1] : ' ';
      at_ = close + 2;
      return Trim(close_sign, /*block=*/true);
    }
    Push(tag == '{' ? JinjaToken::kOutput : JinjaToken::kTag, "", 0);
    brackets_ = 0;
    while (status_.ok() && !ReadClose(tag == '{' ? "}}" : "%}")) ReadToken();
  }

  void SkipSpace() { at_ = source_.size() - PythonStrip(Rest(), true, false).size(); }
  // Skips white space after a tag: all of it if `sign` is '-'; after a `block`, one line break unless `sign` is '+'.
  void Trim(char sign, bool block) {
    if (sign == '-') {
      SkipSpace();
    } else if (block && sign != '+' && absl::StartsWith(Rest(), "\n")) {
      ++at_;
    }
  }

  // Reads `close` if the tag ends here.
  bool ReadClose(View close) {
    SkipSpace();
    if (Rest().empty()) return Fail("the tag has no end, ", close), true;
    const bool block = close == "%}";
    const char sign = Rest()[0] == '-' || (block && Rest()[0] == '+') ? Rest()[0] : ' ';
    const size_t bytes = sign == ' ' ? 2 : 3;
    if (brackets_ > 0 || !absl::EndsWith(Rest().substr(0, bytes), close)) return false;
    Push(JinjaToken::kOperator, close, bytes);
    Trim(sign, block);
    return true;
  }

  void ReadToken() {
    const View rest = Rest();
    if (rest[0] == '\'' || rest[0] == '"') return ReadString(rest);
    const auto name_end = absl::c_find_if_not(rest, IsNameCharacter);
    if (const View name = rest.substr(0, name_end - rest.begin()); !name.empty()) {
      const bool number = absl::ascii_isdigit(name[0]);
      const View after = rest.substr(name.size(), 2);
      const bool fraction = after.size() == 2 && after[0] == '.' && absl::ascii_isdigit(after[1]);
      if (number && (fraction || !absl::c_all_of(name, absl::ascii_isdigit))) {
        return Fail("only whole decimal numbers are supported");
      }
      return Push(number ? JinjaToken::kInteger : JinjaToken::kName, name, name.size());
    }
    constexpr View kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                   "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ","};
    const auto found = absl::c_find_if(kOperators, [&](View each) { return absl::StartsWith(rest, each); });
    if (found == std::end(kOperators)) return Fail("unexpected character ", Describe(CharacterAt(rest, 0).code_point));
    if (absl::StrContains("([{", *found)) ++brackets_;
    if (absl::StrContains(")]}", *found)) --brackets_;
    Push(JinjaToken::kOperator, *found, found->size());
  }

  void ReadString(View rest) {
    constexpr View kEscapes = "ntr\\'\"", kValues = "\n\t\r\\'\"";
    std::string text;
    for (size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == rest[0]) return Push(JinjaToken::kString, text, i + 1);
      const bool escaped = rest[i] == '\\' && i + 1 < rest.size();
      const size_t escape = escaped ? kEscapes.find(rest[++i]) : 0;
      if (escape == View::npos) {
        return Fail("the escape \\", rest.substr(i, CharacterAt(rest, i).bytes), " is not supported");
      }
      text += escaped ? kValues[escape] : rest[i];
    }
    Fail("the string has no end");
  }

  const std::string source_;
  size_t at_ = 0;
  ptrdiff_t counted_ = 0;  // line_ is the line of this byte
  int line_ = 1;
  int brackets_ = 0;  // the number of brackets of the tag that are open
  std::vector<JinjaToken> tokens_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<JinjaToken>> JinjaTokens(View source) {
  WEFT_RETURN_IF_ERROR(CheckUtf8(source));
  std::string text = absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return Lexer(std::move(text)).Run();
}

Expression JinjaConstant(const Value& value) {
  return [value](Run& run) { return run.Charge(value.bytes) ? value : Value(); };
}

void JinjaExpressions::Expect(View text) {
  if (!Take(text)) Fail("got '", now().text, "', wanted ", text);
}

std::string JinjaExpressions::ExpectName() {
  std::string name = now().text;
  if (now().kind != JinjaToken::kName) Fail("got '", name, "', wanted a name");
  Skip();
  return name;
}

Expression JinjaExpressions::Apply(const JinjaFunction& function, JinjaArguments arguments) {
  constexpr int kMaxOperators = 1000;  // what is evaluated nests as deep as there are operators
  if (++operators_ > kMaxOperators) Fail("a tag has more than ", kMaxOperators, " operators");
  // Shared, because expressions are copied while larger ones are made of them.
  const auto parts = std::make_shared<const std::pair<JinjaFunction, JinjaArguments>>(function, std::move(arguments));
  return [parts](Run& run) {
    JinjaCall call;
    for (const auto& [name, argument] : parts->second) {
      if (name == "*") {
        absl::c_move(Elements(run, argument(run)), std::back_inserter(call.arguments));
      } else if (name.empty()) {
        call.arguments.push_back(argument(run));
      } else {
        call.named.emplace_back(name, argument(run));
      }
    }
    return run.ok() ? parts->first(run, call) : Value();
  };
}

Expression JinjaExpressions::Parse() {
  const auto nested = Nest();
  Expression value = ParseBinary(kOrLevel);
  if (!Take("if")) return value;
  Expression condition = ParseBinary(kOrLevel);
  Expression otherwise = Take("else") ? Parse() : JinjaConstant(Value::Undefined("a value without else"));
  return [value = std::move(value), condition = std::move(condition), otherwise = std::move(otherwise)](Run& run) {
    return condition(run).Truthy() ? value(run) : otherwise(run);
  };
}

Expression JinjaExpressions::ParseTuple(bool conditional) {
  const auto parse = [&] { return conditional ? Parse() : ParseBinary(kOrLevel); };
  JinjaArguments items = {{"", parse()}};
  if (!Is(",")) return items[0].second;
  while (Take(",") && !Is(")") && !Is("}}") && !Is("%}")) items.emplace_back("", parse());
  return Apply(JinjaMakeTuple, std::move(items));
}

Expression JinjaExpressions::ParseLogical(int level) {
  std::vector<Expression> operands = {ParseBinary(level + 1)};
  while (Take(level == kOrLevel ? "or" : "and")) operands.push_back(ParseBinary(level + 1));
  if (operands.size() == 1) return operands[0];
  return [operands = std::move(operands), decisive = level == kOrLevel](Run& run) {
    Value value;
    for (const Expression& operand : operands) {
      value = operand(run);
      if (value.Truthy() == decisive) break;
    }
    return value;
  };
}

Expression JinjaExpressions::ParseBinary(int level) {
  if (level < kNotLevel) return ParseLogical(level);
  if (level > kMaxLevel) return ParseUnary(/*filters=*/true);
  if (level == kNotLevel && Take("not")) {
    const auto nested = Nest();
    return Apply(JinjaNot, {{"", ParseBinary(level)}});
  }
  Expression left = ParseBinary(level + 1);
  const auto find = [&] {
    const View symbol = Is("not") && tokens_[at_ + 1].text == "in" ? View("not in") : View(now().text);
    return Is(now().text) ? FindOperator(level, symbol) : nullptr;
  };
  for (const JinjaOperator* op = find(); op != nullptr; op = find()) {
    if (op->compute == nullptr) return Fail("the operator ", op->symbol, " is not supported");
    Take("not");
    Skip();
    left = Apply(op->compute, {{"", std::move(left)}, {"", ParseBinary(level + 1)}});
    if (level == kCompareLevel && find() != nullptr) Fail("comparisons in a chain are not supported");
  }
  return left;
}

Expression JinjaExpressions::ParseUnary(bool filters) {
  const auto nested = Nest();
  Expression value =
      Take("-") ? Apply(JinjaNegate, {{"", ParseUnary(/*filters=*/false)}}) : ParsePostfix(ParsePrimary());
  while (filters && (Is("|") || Is("is"))) {
    const bool test = Is("is");
    Skip();
    const bool negated = test && Take("not");
    value = ParseUse(test ? kTest : kFilter, std::move(value));
    if (negated) value = Apply(JinjaNot, {{"", std::move(value)}});
  }
  return value;
}

Expression JinjaExpressions::ParsePrimary() {
  const JinjaToken token = now();
  Skip();
  if (token.kind == JinjaToken::kString) return JinjaConstant(Value::String(token.text));
  if (token.kind == JinjaToken::kInteger) {
    int64_t integer = 0;
    if (!absl::SimpleAtoi(token.text, &integer)) return Fail(token.text, " has more than 64 bits");
    return JinjaConstant(Value::Integer(integer));
  }
  if (token.kind == JinjaToken::kName) {
    if (token.text == "true" || token.text == "True") return JinjaConstant(Value::Bool(true));
    if (token.text == "false" || token.text == "False") return JinjaConstant(Value::Bool(false));
    if (token.text == "none" || token.text == "None") return JinjaConstant(Value::None());
    return [name = token.text](Run& run) {
      Value value = run.Lookup(name);
      return run.Charge(value.is(Value::kString) ? value.bytes : 1) ? value : Value();
    };
  }
  JinjaArguments items;
  if (token.text == "(" && !Is(")")) {
    Expression inside = ParseTuple();
    Expect(")");
    return inside;
  }
  if (token.kind != JinjaToken::kOperator || !absl::StrContains("([{", token.text))
    return Fail("got '", token.text, "', wanted an expression");
  ParseList(token.text == "("   ? ")"
            : token.text == "[" ? "]"
                                : "}",
            [&] {
              items.emplace_back("", Parse());
              if (token.text != "{") return;
              Expect(":");
              items.emplace_back("", Parse());
            });
  return Apply(token.text == "("   ? JinjaMakeTuple
               : token.text == "[" ? JinjaMakeList
                                   : JinjaMakeDict,
               std::move(items));
}

JinjaArguments JinjaExpressions::ParseArguments(JinjaArguments arguments) {
  Expect("(");
  ParseList(")", [&] {
    std::string name = Take("*") ? "*" : "";
    if (now().kind == JinjaToken::kName && tokens_[at_ + 1].text == "=") {
      name = ExpectName();
      Skip();
    }
    arguments.emplace_back(std::move(name), Parse());
  });
  return arguments;
}

Expression JinjaExpressions::ParsePostfix(Expression object) {
  for (;;) {
    if (Take(".")) {
      const bool index = now().kind == JinjaToken::kInteger;
      Expression key = index ? ParsePrimary() : JinjaConstant(Value::String(ExpectName()));
      object = Apply(index ? JinjaItem : JinjaAttribute, {{"", std::move(object)}, {"", std::move(key)}});
    } else if (Take("[")) {
      object = ParseSubscript(std::move(object));
    } else if (Is("(")) {
      object = Apply(JinjaCallValue, ParseArguments({{"", std::move(object)}}));
    } else {
      return object;
    }
  }
}

Expression JinjaExpressions::ParseSubscript(Expression object) {
  JinjaArguments arguments = {{"", std::move(object)}};
  bool slice = false;
  do {
    const bool missing = Is(":") || (slice && Is("]"));
    arguments.emplace_back("", missing ? JinjaConstant(Value::None()) : Parse());
  } while (arguments.size() < 4 && Take(":") && (slice = true));
  Expect("]");
  if (!slice) return Apply(JinjaItem, std::move(arguments));
  arguments.resize(4, {"", JinjaConstant(Value::None())});
  return Apply(JinjaSlice, std::move(arguments));
}

Expression JinjaExpressions::ParseUse(JinjaUse use, Expression input) {
  const std::string name = ExpectName();
  // A name that is not supported is an error only where it is evaluated.
  const auto call = [builtin = FindBuiltin(use, name), use, name](Run& run, const JinjaCall& call) {
    if (builtin != nullptr) return CallBuiltin(run, *builtin, call);
    return run.Fail("the ", use == kTest ? "test" : "filter", " '", name, "' is not supported");
  };
  JinjaArguments arguments = {{"", std::move(input)}};
  return Apply(call, Is("(") ? ParseArguments(std::move(arguments)) : std::move(arguments));
}

}  // namespace weft
