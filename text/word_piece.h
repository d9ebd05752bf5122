// WordPiece is BERT's tokenizer: it splits each word, from the left, into the longest pieces that the vocabulary has.
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

// Splitting a word takes time with the cube of its length, if the vocabulary's pieces are as long. So a file that asks
// for longer words is refused.
inline constexpr int64_t kMaxWordLength = 1000;

struct WordPieceModel {
  Vocabulary vocabulary;
  std::string unknown = "[UNK]";  // the token of a word that cannot be split into pieces
  std::string prefix = "##";      // marks pieces that don't begin a word
  int64_t max_word_length = 100;  // in characters, at most kMaxWordLength; a longer word is unknown
  BertNormalizer normalizer;
  std::vector<SpecialToken> special;
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class WordPiece final : public Tokenizer {
 public:
  // Returns InvalidArgument if the vocabulary lacks `model.unknown`, or if `model.max_word_length` is too large.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Create(WordPieceModel model);

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const override;
  int64_t vocabulary_size() const override { return model_.vocabulary.size(); }

 protected:
  // Joins pieces to words, and puts a space between words, punctuation included. The original white space is lost.
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit WordPiece(WordPieceModel model);
  void AppendWord(absl::string_view word, std::vector<int32_t>* ids) const;

  WordPieceModel model_;
  int32_t unknown_ = 0;
  absl::flat_hash_map<std::string, int32_t> first_, later_;  // ids by piece; pieces in `later_` have no prefix
  size_t longest_piece_ = 0;                                 // bytes
};

// Reads the contents of a vocab.txt, which has one token a line.
absl::StatusOr<Vocabulary> ReadVocabularyText(absl::string_view text);
// Returns the model of a lowercasing BERT. Its special tokens are UsualSpecialTokens(vocabulary). If the vocabulary has
// [CLS] and [SEP], the model has BERT's input formats.
WordPieceModel BertModel(Vocabulary vocabulary);

}  // namespace weft

#endif  // WEFT_TEXT_WORD_PIECE_H_
