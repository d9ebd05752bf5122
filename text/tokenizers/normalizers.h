// Normalizers change a text before it is split into words, as those of Hugging Face's tokenizers do.
//
//   WEFT_ASSIGN_OR_RETURN(const Normalizer compose, ReadNormalizer(R"({"type": "NFC"})"_json));
//   std::string text = "e\u0301";
//   WEFT_RETURN_IF_ERROR(compose(&text));               // "é"
#ifndef WEFT_TEXT_TOKENIZERS_NORMALIZERS_H_
#define WEFT_TEXT_TOKENIZERS_NORMALIZERS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/words.h"

namespace weft {

Normalizer NormalizeForBert(BertNormalizer settings);
Normalizer PrependText(std::string text);  // leaves an empty text empty

// Returns the normalizer of a SentencePiece model. `map` is the model's precompiled_charsmap: the size in bytes of a
// double array (u32), the array (u32 each, little endian), and texts that end with a zero byte. The array is a trie
// (Darts-clone) from characters to the offsets of their replacements. Returns InvalidArgument if `map` is malformed.
absl::StatusOr<Normalizer> NormalizeByMap(std::string map);

// Reads an object of tokenizer.json that is not a Sequence.
absl::StatusOr<Normalizer> ReadNormalizer(const nlohmann::json& object);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_NORMALIZERS_H_
