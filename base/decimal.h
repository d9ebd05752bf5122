// ParseDecimal reads the numbers that users and files write.
//
//   double rate;
//   if (!ParseDecimal("1e-3", &rate)) return InvalidArgument("'", text, "' is not a number");
#ifndef WEFT_BASE_DECIMAL_H_
#define WEFT_BASE_DECIMAL_H_

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace weft {

// Sets `*value` to the decimal number `text`, such as "-1.5" or "3e8". Returns false if `text` is none, or if the
// number is not finite. Hexadecimal digits, which absl::SimpleAtod reads, are no decimal number.
inline bool ParseDecimal(absl::string_view text, double* value) {
  return text.find_first_of("xX") == text.npos && absl::SimpleAtod(text, value) && std::isfinite(*value);
}
inline bool ParseDecimal(absl::string_view text, float* value) {
  return text.find_first_of("xX") == text.npos && absl::SimpleAtof(text, value) && std::isfinite(*value);
}

}  // namespace weft

#endif  // WEFT_BASE_DECIMAL_H_
