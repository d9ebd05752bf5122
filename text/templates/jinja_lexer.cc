#include "weft/text/templates/jinja_lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_' || static_cast<uint8_t>(c) >= 0x80; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<JinjaToken>> Run() {
    while (status_.ok() && at_ < source_.size()) ReadText();
    if (!status_.ok()) return status_;
    Push(JinjaToken::kEnd, "");
    return std::move(tokens_);
  }

 private:
  absl::string_view Rest() const { return absl::string_view(source_).substr(at_); }
  void Push(JinjaToken::Kind kind, absl::string_view text) { tokens_.push_back({kind, std::string(text), Line()}); }
  int Line() {
    line_ += static_cast<int>(std::count(source_.begin() + counted_, source_.begin() + at_, '\n'));
    counted_ = static_cast<ptrdiff_t>(at_);
    return line_;
  }
  void Fail(absl::string_view what) {
    if (status_.ok()) status_ = InvalidArgument("line ", Line(), ": ", what);
  }
  void SkipSpace() { at_ = source_.size() - PythonStrip(Rest(), true, false).size(); }

  // Reads the text up to the next tag, and the tag.
  void ReadText() {
    const absl::string_view rest = Rest();
    size_t end = rest.find('{');
    while (end < rest.size() && (end + 1 == rest.size() || !absl::StrContains("{%#", rest.substr(end + 1, 1)))) {
      end = rest.find('{', end + 1);
    }
    absl::string_view text = rest.substr(0, end);
    if (end == rest.npos) {
      Push(JinjaToken::kText, text);
      at_ = source_.size();
      return;
    }
    const char tag = rest[end + 1];
    const char sign = end + 2 < rest.size() && absl::StrContains("-+", rest.substr(end + 2, 1)) ? rest[end + 2] : ' ';
    if (sign == '-') {
      text = PythonStrip(text, false, true);
    } else if (sign != '+' && tag != '{') {
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line > 0 || at_line_start_) && PythonStrip(text.substr(line), true, false).empty()) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) Push(JinjaToken::kText, text);
    at_ += end + 2 + (sign == ' ' ? 0 : 1);
    if (tag == '#') {
      SkipComment();
    } else {
      Push(tag == '{' ? JinjaToken::kOutput : JinjaToken::kTag, "");
      while (status_.ok() && !ReadClose(tag == '{' ? "}}" : "%}", tag != '{')) ReadToken();
      open_.clear();
    }
    at_line_start_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void SkipComment() {
    const size_t end = Rest().find("#}");
    if (end == absl::string_view::npos) return Fail("the comment has no end, #}");
    const char sign = end > 0 ? Rest()[end - 1] : ' ';
    at_ += end + 2;
    Trim(sign, /*block=*/true);
  }

  // Skips what a tag with `sign` before its end removes of the text after it.
  void Trim(char sign, bool block) {
    if (sign == '-') {
      SkipSpace();
    } else if (block && sign != '+' && absl::StartsWith(Rest(), "\n")) {
      ++at_;
    }
  }

  // Reads `close` if the tag ends here.
  bool ReadClose(absl::string_view close, bool block) {
    SkipSpace();
    const absl::string_view rest = Rest();
    if (rest.empty()) return Fail(absl::StrCat("the tag has no end, ", close)), true;
    if (!open_.empty()) return false;
    const bool signs = rest[0] == '-' || (block && rest[0] == '+');
    if (!absl::StartsWith(rest.substr(signs ? 1 : 0), close)) return false;
    Push(JinjaToken::kClose, "");
    at_ += close.size() + (signs ? 1 : 0);
    Trim(signs ? rest[0] : ' ', block);
    return true;
  }

  void ReadToken() {
    const absl::string_view rest = Rest();
    const char c = rest[0];
    if (absl::ascii_isdigit(c)) return ReadNumber(rest);
    if (c == '\'' || c == '"') return ReadString(rest);
    if (IsNameCharacter(c)) {
      size_t size = 1;
      while (size < rest.size() && IsNameCharacter(rest[size])) ++size;
      Push(JinjaToken::kName, rest.substr(0, size));
      at_ += size;
      return;
    }
    constexpr absl::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};
    for (const absl::string_view each : kOperators) {
      if (!absl::StartsWith(rest, each)) continue;
      const size_t bracket = absl::string_view("([{").find(c);
      if (bracket != absl::string_view::npos) open_.push_back(")]}"[bracket]);
      if (absl::StrContains(")]}", each)) {
        if (open_.empty() || open_.back() != c) return Fail(absl::StrCat("unexpected '", each, "'"));
        open_.pop_back();
      }
      Push(JinjaToken::kOperator, each);
      at_ += each.size();
      return;
    }
    Fail(absl::StrCat("unexpected character ", Describe(CharacterAt(rest, 0).code_point)));
  }

  void ReadNumber(absl::string_view rest) {
    const auto digits = [&](size_t from) {
      size_t end = from;
      while (end < rest.size() && absl::ascii_isdigit(rest[end])) ++end;
      return end;
    };
    size_t size = digits(0);
    JinjaToken::Kind kind = JinjaToken::kInteger;
    const bool after_dot = !tokens_.empty() && tokens_.back().text == "." && source_[at_ - 1] == '.';
    if (!after_dot && size < rest.size() && rest[size] == '.' && digits(size + 1) > size + 1) {
      size = digits(size + 1);
      kind = JinjaToken::kFloat;
    }
    if (!after_dot && size < rest.size() && (rest[size] == 'e' || rest[size] == 'E')) {
      const size_t sign = size + 1 < rest.size() && (rest[size + 1] == '-' || rest[size + 1] == '+') ? 1 : 0;
      if (const size_t end = digits(size + 1 + sign); end > size + 1 + sign) {
        size = end;
        kind = JinjaToken::kFloat;
      }
    }
    if (size < rest.size() && IsNameCharacter(rest[size])) {
      return Fail("only decimal numbers without '_' are supported");
    }
    Push(kind, rest.substr(0, size));
    at_ += size;
  }

  void ReadString(absl::string_view rest) {
    std::string text;
    size_t i = 1;
    for (; i < rest.size() && rest[i] != rest[0]; ++i) {
      if (rest[i] != '\\') {
        text.push_back(rest[i]);
        continue;
      }
      if (++i == rest.size()) break;
      constexpr absl::string_view kEscapes = "ntrabfv\\'\"\n";
      constexpr absl::string_view kValues[] = {"\n", "\t", "\r", "\a", "\b", "\f", "\v", "\\", "'", "\"", ""};
      const size_t known = kEscapes.find(rest[i]);
      const size_t digits = rest[i] == 'x' ? 2 : rest[i] == 'u' ? 4 : rest[i] == 'U' ? 8 : 0;
      if (known != absl::string_view::npos) {
        absl::StrAppend(&text, kValues[known]);
      } else if (digits > 0) {
        int64_t code_point = i + digits < rest.size() ? 0 : kCodePoints;
        for (size_t d = 1; d <= digits && code_point < kCodePoints; ++d) {
          const char c = absl::ascii_tolower(rest[i + d]);
          code_point = absl::ascii_isxdigit(c) ? code_point * 16 + (c <= '9' ? c - '0' : c - 'a' + 10) : kCodePoints;
        }
        const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
        if (code_point >= kCodePoints || surrogate) return Fail("an escape of a string names no character");
        text += ToUtf8(static_cast<int32_t>(code_point));
        i += digits;
      } else if (rest[i] == 'N' || absl::ascii_isdigit(rest[i])) {
        return Fail(absl::StrCat("the escape \\", rest.substr(i, 1), " is not supported"));
      } else {
        absl::StrAppend(&text, "\\", rest.substr(i, 1));
      }
    }
    if (i >= rest.size()) return Fail("the string has no end");
    Push(JinjaToken::kString, text);
    at_ += i + 1;
  }

  const std::string source_;
  size_t at_ = 0;
  ptrdiff_t counted_ = 0;  // line_ is the line of this byte
  int line_ = 1;
  bool at_line_start_ = true;  // whether the last tag ended with a line break
  std::string open_;           // the brackets that close those that are open
  std::vector<JinjaToken> tokens_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<JinjaToken>> JinjaTokens(absl::string_view source) {
  WEFT_RETURN_IF_ERROR(CheckUtf8(source));
  std::string text = absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return Lexer(std::move(text)).Run();
}

bool IsPythonSpace(int32_t code_point) { return IsSpace(code_point) || (code_point >= 0x1C && code_point <= 0x1F); }

absl::string_view PythonStrip(absl::string_view text, bool left, bool right, const absl::string_view* characters) {
  const auto strips = [&](absl::string_view character) {
    return characters != nullptr ? absl::StrContains(*characters, character)
                                 : IsPythonSpace(CharacterAt(character, 0).code_point);
  };
  while (left && !text.empty()) {
    const size_t bytes = std::max<size_t>(CharacterAt(text, 0).bytes, 1);
    if (!strips(text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  while (right && !text.empty()) {
    const size_t begin = CharacterBegin(text, text.size() - 1);
    if (!strips(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string> PythonLines(absl::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\r\v\f\x1c\x1d\x1e"), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + (absl::StartsWith(text.substr(end), "\r\n") ? 2 : 1), text.size()));
  }
  return lines;
}

}  // namespace weft
