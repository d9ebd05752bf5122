// tokenizer.json has Hugging Face's byte-level BPE or WordPiece, or Weft's own tokenizer of bytes or characters.
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/byte_tokenizer.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

Loaded CreateBytes(absl::string_view /*contents*/) { return std::make_unique<ByteTokenizer>(); }

Loaded CreateCharacters(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromJson(contents));
  return std::make_unique<CharacterTokenizer>(std::move(tokenizer));
}

// The kinds of tokenizer.json that only Weft writes, by their "type".
constexpr struct {
  const char* type;
  Loaded (*create)(absl::string_view contents);
} kWeftTypes[] = {{"byte", CreateBytes}, {"character", CreateCharacters}};

Loaded Create(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseLargeJsonObject(contents));
  if (json.contains("type")) {
    for (const auto& [type, create] : kWeftTypes) {
      if (json["type"] == type) return create(contents);
    }
    return InvalidArgument("not a tokenizer of type \"byte\" or \"character\"");
  }
  if (json.contains("model")) return ReadTokenizerJson(json);
  return InvalidArgument("it has neither the \"type\" nor the \"model\" of a tokenizer");
}

}  // namespace

constexpr TokenizerKind kTokenizerJson = {
    .file = "tokenizer.json",
    .extension = ".json",
    .load = FromOneFile<Create>,
};

}  // namespace weft
