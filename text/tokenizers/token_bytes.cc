// Tokens are decoded behind another token, because decoding drops the space at the beginning of a text.
#include "weft/text/tokenizers/token_bytes.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"

namespace weft {

std::vector<int32_t> TokenBytes(const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocabulary_size();
  const auto decode = [&](std::vector<int32_t> ids) { return tokenizer.Decode(ids).value_or(""); };
  int32_t first = 0;  // an ordinary token: one that ends with a letter
  for (int32_t id = 0; id < size; ++id) {
    const std::string text = decode({id});
    if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text.back()))) continue;
    if (id == tokenizer.special_tokens().unknown) continue;
    first = id;
    break;
  }
  const auto before = static_cast<int64_t>(decode({first}).size());
  std::vector<int32_t> bytes(static_cast<size_t>(size));
  for (int32_t id = 0; id < size; ++id) {
    const auto both = static_cast<int64_t>(decode({first, id}).size());
    bytes[static_cast<size_t>(id)] = static_cast<int32_t>(std::max<int64_t>(both - before, 0));
  }
  const SpecialTokens& special = tokenizer.special_tokens();
  // Byte-level BPE knows all bytes, and often names its end token as the unknown one, too.
  if (const auto unknown = special.unknown; unknown && *unknown >= 0 && *unknown < size && unknown != special.end) {
    bytes[static_cast<size_t>(*unknown)] = kUnknownBytes;
  }
  return bytes;
}

}  // namespace weft
