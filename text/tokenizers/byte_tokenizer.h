// ByteTokenizer makes each byte a token. Its vocabulary is the 256 bytes, so it can encode any text, even text that is
// not UTF-8.
#ifndef WEFT_TEXT_TOKENIZERS_BYTE_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_BYTE_TOKENIZER_H_

#include <string>
#include <vector>

#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

class ByteTokenizer final : public Tokenizer {
 public:
  // Returns the contents of its tokenizer.json, {"type":"byte"}.
  static std::string ToJson() { return "{\"type\":\"byte\"}\n"; }

  int64_t vocabulary_size() const override { return 256; }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string Join(absl::Span<const int32_t> ids) const override { return std::string(ids.begin(), ids.end()); }
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BYTE_TOKENIZER_H_
