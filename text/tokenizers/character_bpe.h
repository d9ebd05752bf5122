// CharacterBpe is byte-pair encoding of the characters of a word, as Llama 2 and Gemma have it: a character that is not
// in the vocabulary becomes the tokens of its bytes, or the unknown token.
//
//   CharacterBpeModel model = {.vocabulary = vocabulary, .merges = MergesByScore(vocabulary, scores),
//                              .byte_fallback = true};
//   const CharacterBpe tokenizer(std::move(model));
#ifndef WEFT_TEXT_TOKENIZERS_CHARACTER_BPE_H_
#define WEFT_TEXT_TOKENIZERS_CHARACTER_BPE_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/bpe_merges.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// The ids of the tokens "<0x00>" to "<0xFF>", which stand for bytes. An id is -1 if the vocabulary has no such token.
std::array<int32_t, 256> ByteTokens(const Vocabulary& vocabulary);
// Appends the tokens of the bytes of `text`. Returns false, and appends nothing, if a byte has no token.
bool AppendBytes(const std::array<int32_t, 256>& tokens, absl::string_view text, std::vector<int32_t>* ids);

struct CharacterBpeModel {
  Vocabulary vocabulary;
  MergeTable merges;
  std::vector<AddedToken> special;  // and other added tokens
  std::optional<int32_t> unknown;   // the token of characters that are not in the vocabulary
  bool fuse_unknown = false;        // unknown characters that follow each other are one token
  bool byte_fallback = false;       // the tokens of a character's bytes go before the unknown token
  bool whole_words = false;         // a word that is in the vocabulary is one token, whatever the merges give
  std::string prefix, suffix;       // of the characters after the first of a word, and of the last: "##", "</w>"
  bool keeps_unknown = false;       // Decode has the text of the unknown token
  Pipeline pipeline;
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class CharacterBpe final : public PipelineTokenizer {
 public:
  explicit CharacterBpe(CharacterBpeModel model);

  const Vocabulary& vocabulary() const override { return model_.vocabulary; }

 protected:
  // Returns InvalidArgument for a character that is not in the vocabulary if there is no unknown token.
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const override;

 private:
  CharacterBpeModel model_;
  std::array<int32_t, 256> byte_tokens_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_CHARACTER_BPE_H_
