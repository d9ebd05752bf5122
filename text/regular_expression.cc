// A pattern is respelled in one pass that knows only escapes, classes and groups. PCRE2 checks the rest of its syntax.
#include "weft/text/regular_expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
constexpr size_t kFirstStack = 32 << 10, kMaxStack = 8 << 20;  // bytes, of the compiled expressions
constexpr size_t kMaxPattern = 64 << 10;                       // bytes; published patterns have less than 1,000

// Oniguruma's classes. PCRE2's `\s` includes U+180E, its `\w` lacks marks, and its `\h` means other characters.
constexpr struct {
  char letter;
  const char* members;
} kClasses[] = {{'s', R"(\t-\r\x{85}\p{Z})"}, {'w', R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})"}, {'h', "0-9A-Fa-f"}};

pcre2_code* Compile(absl::string_view pattern, int* error, size_t* offset) {
  static pcre2_compile_context* const context = [] {
    pcre2_compile_context* made = pcre2_compile_context_create(nullptr);
    pcre2_set_newline(made, PCRE2_NEWLINE_LF);
    return made;
  }();
  return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, error, offset, context);
}

std::string ErrorText(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// Converts a pattern of Oniguruma to one of PCRE2.
class Respeller {
 public:
  explicit Respeller(absl::string_view pattern) : rest_(pattern), size_(pattern.size()) {}

  absl::StatusOr<std::string> Run() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        WEFT_RETURN_IF_ERROR(Escape());
      } else if (depth_ > 0) {
        WEFT_RETURN_IF_ERROR(ClassMember());
      } else {
        WEFT_RETURN_IF_ERROR(Outside());
      }
    }
    return std::move(out_);
  }

 private:
  void Copy(size_t bytes) {
    absl::StrAppend(&out_, rest_.substr(0, bytes));
    rest_.remove_prefix(std::min(bytes, rest_.size()));
  }
  absl::Status Refuse(absl::string_view what) const {
    return InvalidArgument("byte ", size_ - rest_.size(), ": ", what, " is not supported");
  }

  absl::Status Escape() {
    const char letter = rest_.size() > 1 ? rest_[1] : '\0', lower = absl::ascii_tolower(letter);
    for (const auto& each : kClasses) {
      if (each.letter != lower || (depth_ > 0 && letter == 'S')) continue;  // this `\S` of PCRE2 lacks only U+180E
      if (depth_ > 0 && letter != lower) return Refuse(absl::StrCat("\\", rest_.substr(1, 1), " in a class"));
      absl::StrAppend(&out_, depth_ > 0 ? "" : letter == lower ? "[" : "[^", each.members, depth_ > 0 ? "" : "]");
      rest_.remove_prefix(2);
      return absl::OkStatus();
    }
    const size_t end = rest_.find('}');
    if (lower != 'p' || end == rest_.npos || rest_[2] != '{') {
      Copy(2);
      return absl::OkStatus();
    }
    // PCRE2 takes the bare name of a script for all characters that are used with the script.
    const bool negated = rest_[3] == '^';
    const absl::string_view name = rest_.substr(negated ? 4 : 3, end - (negated ? 4 : 3));
    int error = 0;
    size_t offset = 0;
    const std::string script = absl::StrCat("{", negated ? "^" : "", "sc:", name, "}");
    pcre2_code* const code = name.size() > 2 ? Compile("\\p" + script, &error, &offset) : nullptr;
    pcre2_code_free(code);
    if (code == nullptr) {
      Copy(end + 1);
    } else {
      Copy(2);
      out_ += script;
      rest_.remove_prefix(end - 1);
    }
    return absl::OkStatus();
  }

  absl::Status ClassMember() {
    if (absl::StartsWith(rest_, "&&")) return Refuse("the intersection of classes");
    if (absl::StartsWith(rest_, "[^")) return Refuse("a negated class in a class");
    const size_t end = absl::StartsWith(rest_, "[:") ? rest_.find(":]") : rest_.npos;
    if (end != rest_.npos) {
      Copy(end + 2);
    } else if (rest_[0] == '[' || (rest_[0] == ']' && depth_ > 1)) {  // a class has the members of those in it
      depth_ += rest_[0] == '[' ? 1 : -1;
      rest_.remove_prefix(1);
    } else {
      depth_ -= rest_[0] == ']';
      Copy(1);
    }
    return absl::OkStatus();
  }

  absl::Status Outside() {
    if (absl::StartsWith(rest_, "}+")) return Refuse("'+' after {n,m}");
    if (absl::StartsWith(rest_, "(*")) return Refuse("'(*'");
    if (absl::StartsWith(rest_, "(?")) {
      const size_t end = rest_.find_first_not_of("i-", 2);
      if (end != rest_.npos && absl::ascii_isalpha(static_cast<unsigned char>(rest_[end])) && rest_[2] != 'P') {
        return Refuse("a flag other than 'i'");
      }
    }
    if (absl::StartsWith(rest_, "{,")) out_ += "{0", rest_.remove_prefix(1);
    depth_ = rest_[0] == '[';
    Copy(absl::StartsWith(rest_, "[^") ? 2 : 1);
    if (depth_ > 0 && absl::StartsWith(rest_, "]")) Copy(1);  // as the first member, it is an ordinary character
    return absl::OkStatus();
  }

  absl::string_view rest_;
  const size_t size_;
  std::string out_;
  int depth_ = 0;  // the number of classes around the next character
};

// The memory that a thread needs to match.
struct Workspace {
  Workspace() {
    pcre2_set_match_limit(context, kMaxMatchSteps);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  Workspace(const Workspace&) = delete;
  ~Workspace() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  pcre2_match_data* const data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* const context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* const stack = pcre2_jit_stack_create(kFirstStack, kMaxStack, nullptr);
};

}  // namespace

absl::StatusOr<RegularExpression> RegularExpression::Create(absl::string_view pattern) {
  RegularExpression expression;
  expression.pattern_ = std::string(pattern.substr(0, 200));
  const std::string location = absl::StrCat("the regular expression ", expression.pattern_);
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(pattern), location));
  if (pattern.size() > kMaxPattern) return InvalidArgument(location, ": it has more than ", kMaxPattern, " bytes");
  WEFT_ASSIGN_OR_RETURN(const std::string respelt, Annotate(Respeller(pattern).Run(), location));
  int error = 0;
  size_t offset = 0;
  pcre2_code* const code = Compile(respelt, &error, &offset);
  if (code == nullptr) {
    return InvalidArgument(location, ": at byte ", offset, " of ", respelt.substr(0, 400), ": ", ErrorText(error));
  }
  expression.code_ = std::shared_ptr<const pcre2_code>(
      code, [](const pcre2_code* each) { pcre2_code_free(const_cast<pcre2_code*>(each)); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without effect where PCRE2 cannot; matching is slower then
  return expression;
}

absl::StatusOr<RegularExpression> RegularExpression::Literal(absl::string_view text) {
  std::string pattern;
  for (const char c : text) absl::StrAppend(&pattern, absl::ascii_ispunct(c) ? "\\" : "", absl::string_view(&c, 1));
  return Create(pattern);
}

absl::Status RegularExpression::ForEachMatch(absl::string_view text,
                                             absl::FunctionRef<void(size_t begin, size_t end)> take) const {
  thread_local const Workspace workspace;
  std::optional<size_t> last;
  for (size_t from = 0; from <= text.size();) {
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK, workspace.data, workspace.context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return InvalidArgument("the regular expression ", pattern_, ": from byte ", from, ": ", ErrorText(found));
    }
    const size_t* const at = pcre2_get_ovector_pointer(workspace.data);
    const size_t begin = at[0], end = at[1];
    if (begin < from || end < begin) return InvalidArgument("the regular expression ", pattern_, " matches backwards");
    if (begin == end && last == end) {
      from = end + (end < text.size() ? CharacterAt(text, end).bytes : 1);
    } else {
      take(begin, end);
      last = from = end;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
