#include "weft/text/templates/jinja_lexer.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using View = absl::string_view;

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
  // Skips what a tag with `sign` before its end removes of the text after it.
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

View PythonStrip(View text, bool left, bool right, const std::string* characters) {
  const auto strips = [&](size_t begin) {
    const Utf8Character c = CharacterAt(text, begin);
    if (characters != nullptr) return c.bytes > 0 && absl::StrContains(*characters, text.substr(begin, c.bytes));
    return IsSpace(c.code_point) || (c.code_point >= 0x1C && c.code_point <= 0x1F);
  };
  while (left && !text.empty() && strips(0)) text.remove_prefix(CharacterAt(text, 0).bytes);
  while (right && !text.empty() && strips(CharacterBegin(text, text.size() - 1))) {
    text = text.substr(0, CharacterBegin(text, text.size() - 1));
  }
  return text;
}

}  // namespace weft
