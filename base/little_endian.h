// Reads little-endian numbers from bytes at any alignment.
#ifndef WEFT_BASE_LITTLE_ENDIAN_H_
#define WEFT_BASE_LITTLE_ENDIAN_H_

#include <cstring>

#include "absl/strings/string_view.h"

namespace weft {

// Returns the number of type T in the first bytes of `bytes`, which must be enough: LittleEndian<uint32_t>(bytes). The
// computers that this project runs on are little-endian, too.
template <class T>
T LittleEndian(absl::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace weft

#endif  // WEFT_BASE_LITTLE_ENDIAN_H_
