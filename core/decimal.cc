#include "weft/core/decimal.h"

#include <cmath>

#include "absl/strings/numbers.h"

namespace weft {
namespace {

bool IsHexadecimal(absl::string_view text) { return text.find_first_of("xX") != text.npos; }

}  // namespace

bool ParseDecimal(absl::string_view text, double* value) {
  return !IsHexadecimal(text) && absl::SimpleAtod(text, value) && std::isfinite(*value);
}

bool ParseDecimal(absl::string_view text, float* value) {
  return !IsHexadecimal(text) && absl::SimpleAtof(text, value) && std::isfinite(*value);
}

}  // namespace weft
