// BERT's WordPiece: a word is cut, from its beginning, into the longest pieces that the vocabulary has.
//
//   WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabularyText(vocab_txt));
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, WordPiece::Create({.vocabulary = std::move(vocabulary)}));
//   tokenizer->Encode("Embeddings")                      // em ##bed ##ding ##s
#ifndef WEFT_TEXT_WORD_PIECE_H_
#define WEFT_TEXT_WORD_PIECE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/text/bert_words.h"
#include "weft/text/tokenizer.h"
#include "weft/text/vocabulary.h"

namespace weft {

struct WordPieceModel {
  Vocabulary vocabulary;
  std::string unknown = "[UNK]";  // the token of a word that has no pieces
  std::string prefix = "##";      // of a piece that doesn't begin a word
  int64_t longest_word = 100;     // in characters; one with more is unknown
  BertNormalizer normalizer;
  std::vector<SpecialToken> special;
  WrapFormat single = {{WrapPart::kFirst}}, pair;
};

class WordPiece final : public Tokenizer {
 public:
  // InvalidArgument if the vocabulary lacks `unknown`.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Create(WordPieceModel model);

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const override;
  int64_t vocabulary_size() const override { return model_.vocabulary.size(); }

 protected:
  // Words with a space between them, and between them and punctuation: what was there before is lost.
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit WordPiece(WordPieceModel model);
  void AppendWord(absl::string_view word, std::vector<int32_t>* ids) const;

  WordPieceModel model_;
  int32_t unknown_ = 0;
  absl::flat_hash_map<std::string, int32_t> first_, later_;  // pieces by their text; later ones without the prefix
  size_t longest_piece_ = 0;                                 // bytes
};

// A vocab.txt: one token a line.
absl::StatusOr<Vocabulary> ReadVocabularyText(absl::string_view text);
// What a vocab.txt alone means: a lowercased BERT, with the special tokens and formats that its tokens allow.
WordPieceModel BertModel(Vocabulary vocabulary);

}  // namespace weft

#endif  // WEFT_TEXT_WORD_PIECE_H_
