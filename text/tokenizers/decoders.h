// Decoders change the texts of tokens into the parts of a text, as those of Hugging Face's tokenizers do.
//
//   WEFT_ASSIGN_OR_RETURN(const Decoder join, ReadDecoder(R"({"type": "WordPiece", "prefix": "##"})"_json));
//   std::vector<std::string> tokens = {"em", "##bed", "it"};
//   join(&tokens);                                       // "em" "bed" " it"
#ifndef WEFT_TEXT_TOKENIZERS_DECODERS_H_
#define WEFT_TEXT_TOKENIZERS_DECODERS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/pre_tokenizers.h"

namespace weft {

// Drops `prefix` of tokens after the first, and puts a space before tokens without it. `clean_up`: no space is before
// the marks and contractions of English, in each token on its own.
Decoder JoinWordPieces(std::string prefix, bool clean_up);
Decoder JoinAll();  // makes one text of all tokens
// Replaces `mark` by a space; in the first token, drops it unless `scheme` is kNever.
Decoder DecodeMetaspace(std::string mark, PrependScheme scheme);

// Returns the byte that a token such as "<0x0A>" stands for, or -1.
int ByteOf(absl::string_view token);

// Reads an object of tokenizer.json that is not a Sequence.
absl::StatusOr<Decoder> ReadDecoder(const nlohmann::json& object);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_DECODERS_H_
