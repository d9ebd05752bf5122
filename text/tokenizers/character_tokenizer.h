// CharacterTokenizer makes each character (Unicode code point) a token, and ByteTokenizer each byte.
//
//   WEFT_ASSIGN_OR_RETURN(const CharacterTokenizer tokenizer, CharacterTokenizer::FromText(text));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode("In the beginning"));
//   *tokenizer.Decode(ids) == "In the beginning"
#ifndef WEFT_TEXT_TOKENIZERS_CHARACTER_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_CHARACTER_TOKENIZER_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// Makes each byte a token. Its vocabulary is the 256 bytes, so it can encode any text, even text that is not UTF-8.
class ByteTokenizer final : public Tokenizer {
 public:
  // Returns the contents of its tokenizer.json, {"type":"byte"}.
  static std::string ToJson() { return "{\"type\":\"byte\"}\n"; }

  int64_t vocabulary_size() const override { return 256; }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool /*begins*/) const override {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string Join(absl::Span<const int32_t> ids) const override { return std::string(ids.begin(), ids.end()); }
};

class CharacterTokenizer final : public Tokenizer {
 public:
  // Makes a vocabulary of the characters in `text`, in the order of code points. Returns InvalidArgument if the text is
  // empty or not UTF-8.
  static absl::StatusOr<CharacterTokenizer> FromText(absl::string_view text);
  // Reads a tokenizer.json: {"type":"character","characters":["\n"," ","a"]}. A character's id is its index.
  static absl::StatusOr<CharacterTokenizer> FromJson(const nlohmann::json& json);
  std::string ToJson() const;

  int64_t vocabulary_size() const override { return static_cast<int64_t>(characters_.size()); }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool /*begins*/) const override;
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit CharacterTokenizer(std::vector<int32_t> characters);

  std::vector<int32_t> characters_;  // code points by id
  absl::flat_hash_map<int32_t, int32_t> ids_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_CHARACTER_TOKENIZER_H_
