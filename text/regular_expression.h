// RegularExpression finds a pattern in UTF-8 texts, as Oniguruma does, the library that Hugging Face's tokenizers use.
//
//   WEFT_ASSIGN_OR_RETURN(const RegularExpression words, RegularExpression::Create(R"( ?\p{L}+|\s+)"));
//   WEFT_RETURN_IF_ERROR(words.ForEachMatch("a b", [](size_t begin, size_t end) { ... }));   // "a", then " b"
//
// PCRE2 does the matching. Create respells what the two libraries read differently, such as `\w`, or refuses it.
#ifndef WEFT_TEXT_REGULAR_EXPRESSION_H_
#define WEFT_TEXT_REGULAR_EXPRESSION_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct pcre2_real_code_8;

namespace weft {

class RegularExpression {
 public:
  // Returns InvalidArgument, with the pattern and the byte in it, if the pattern is malformed or not supported.
  static absl::StatusOr<RegularExpression> Create(absl::string_view pattern);
  // Returns the expression that matches exactly `text`, without a meaning of its characters.
  static absl::StatusOr<RegularExpression> Literal(absl::string_view text);

  // Calls `take` with the first and the past-the-end byte of each match in `text`, which must be UTF-8. Matches follow
  // each other from left to right and do not overlap. An empty match does not follow another match directly. Returns
  // InvalidArgument if a match needs more steps than kMaxMatchSteps.
  absl::Status ForEachMatch(absl::string_view text, absl::FunctionRef<void(size_t begin, size_t end)> take) const;

 private:
  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
};

// A published pattern takes a few steps a character. The limit ends one that backtracks without end in a second.
inline constexpr int kMaxMatchSteps = 10'000'000;

}  // namespace weft

#endif  // WEFT_TEXT_REGULAR_EXPRESSION_H_
