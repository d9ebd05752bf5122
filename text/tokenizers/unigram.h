// Unigram splits a word into the pieces whose scores, the logarithms of their probabilities, have the largest sum, as
// SentencePiece does for T5, XLM-R and ALBERT.
//
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, Unigram::Create({.vocabulary = ..., .scores = ..., .unknown = 2}));
#ifndef WEFT_TEXT_TOKENIZERS_UNIGRAM_H_
#define WEFT_TEXT_TOKENIZERS_UNIGRAM_H_

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

struct UnigramModel {
  Vocabulary vocabulary;
  std::vector<double> scores;       // by id; the tokens behind the last are added tokens only
  std::optional<int32_t> unknown;   // the token of characters that no piece has; those that follow each other are one
  bool byte_fallback = false;       // the tokens of an unknown text's bytes, such as "<0x0A>", go before it
  std::vector<AddedToken> special;  // and other added tokens
  Pipeline pipeline;
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class Unigram final : public PipelineTokenizer {
 public:
  // Returns InvalidArgument if there are no scores, or more than tokens, or if the unknown token has no score.
  static absl::StatusOr<std::unique_ptr<Unigram>> Create(UnigramModel model);

  const Vocabulary& vocabulary() const override { return model_.vocabulary; }

 protected:
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const override;

 private:
  explicit Unigram(UnigramModel model);

  UnigramModel model_;
  std::array<int32_t, 256> byte_tokens_;
  double unknown_score_;
  absl::flat_hash_map<uint64_t, int32_t> children_;  // of the trie of pieces, by node and byte
  std::vector<int32_t> pieces_;                      // by node: the id of its piece, or -1
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_UNIGRAM_H_
