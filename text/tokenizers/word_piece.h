// WordPiece is BERT's tokenizer: it splits each word, from the left, into the longest pieces that the vocabulary has.
// The model WordLevel of Hugging Face's tokenizers does not split words.
//
//   WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabularyText(vocab_txt));      // tokenizer_json.h
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, WordPiece::Create({.vocabulary = std::move(vocabulary)}));
//   tokenizer->Encode("Embeddings")                      // em ##bed ##ding ##s
#ifndef WEFT_TEXT_TOKENIZERS_WORD_PIECE_H_
#define WEFT_TEXT_TOKENIZERS_WORD_PIECE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// Splitting a word takes time with the cube of its length, if the vocabulary's pieces are as long. So a file that asks
// for longer words is refused.
inline constexpr int64_t kMaxWordLength = 1000;

struct WordPieceModel {
  Vocabulary vocabulary;
  std::string unknown = "[UNK]";  // the token of a word that cannot be split into pieces
  std::string prefix = "##";      // marks pieces that don't begin a word
  int64_t max_word_length = 100;  // in characters, at most kMaxWordLength; a longer word is unknown
  bool whole_words = false;       // WordLevel: a word of any length is one token; it and `unknown` lacking is an error
  BertNormalizer normalizer;
  std::optional<Pipeline> pipeline;  // replaces `normalizer`, BERT's words, and BERT's decoder, which drops `prefix`
  std::vector<AddedToken> special;   // and other added tokens
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class WordPiece final : public PipelineTokenizer {
 public:
  // Returns InvalidArgument if the vocabulary lacks `model.unknown`, unless `model.whole_words` is set, or if
  // `model.max_word_length` is too large.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Create(WordPieceModel model);

  const Vocabulary& vocabulary() const override { return model_.vocabulary; }

 protected:
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const override;

 private:
  explicit WordPiece(WordPieceModel model);

  WordPieceModel model_;
  int32_t unknown_ = -1;
  absl::flat_hash_map<std::string, int32_t> later_;  // ids of the pieces that don't begin a word, without their prefix
  size_t longest_piece_ = 0;                         // bytes
};

// Returns the model of a lowercasing BERT. Its special tokens are [PAD], [UNK], [CLS], [SEP] and [MASK], or the texts
// that `roles` gives for their roles, as far as the vocabulary has them. If the vocabulary has the tokens for
// classification and separator, the model has BERT's input formats.
WordPieceModel BertModel(Vocabulary vocabulary, const RoleTexts& roles = {});

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_WORD_PIECE_H_
