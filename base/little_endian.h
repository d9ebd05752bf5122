// Reads little-endian numbers from bytes at any alignment.
#ifndef WEFT_BASE_LITTLE_ENDIAN_H_
#define WEFT_BASE_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

// Returns the unsigned number of the first bytes of `bytes`, which must be enough: LittleEndian<uint32_t>(bytes).
template <class T>
T LittleEndian(absl::string_view bytes) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | static_cast<uint8_t>(bytes[i]));
  return value;
}

}  // namespace weft

#endif  // WEFT_BASE_LITTLE_ENDIAN_H_
