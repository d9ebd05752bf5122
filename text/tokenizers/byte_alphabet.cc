#include "weft/text/tokenizers/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr int32_t kFirstShifted = 0x100, kShifted = 68;  // the first substitute and their number

struct Alphabet {
  std::array<int32_t, 256> code_points;
  std::array<int16_t, kFirstShifted + kShifted> bytes;  // by code point; -1: stands for no byte
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet = {};
  alphabet.bytes.fill(-1);
  int32_t shifted = kFirstShifted;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = ('!' <= byte && byte <= '~') || (0xA1 <= byte && byte <= 0xFF && byte != 0xAD);
    const int32_t code_point = printable ? byte : shifted++;
    alphabet.code_points[static_cast<size_t>(byte)] = code_point;
    alphabet.bytes[static_cast<size_t>(code_point)] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

std::string ToByteAlphabet(absl::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += ToUtf8(kAlphabet.code_points[static_cast<uint8_t>(byte)]);
  return text;
}

absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes == 0) return CheckUtf8(text);
    const size_t code_point = static_cast<size_t>(c.code_point);
    if (code_point >= kAlphabet.bytes.size() || kAlphabet.bytes[code_point] < 0) {
      return InvalidArgument(Describe(c.code_point), " stands for no byte");
    }
    bytes += static_cast<char>(kAlphabet.bytes[code_point]);
    i += c.bytes;
  }
  return bytes;
}

}  // namespace weft
