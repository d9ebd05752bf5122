// A WordVectors computes contextual vectors of one word: means of a BERT's hidden states, one for each occurrence in a
// sentence.
//
//   WEFT_ASSIGN_OR_RETURN(WordVectors bank, WordVectors::Open("bert", "bank", {}));
//   WEFT_ASSIGN_OR_RETURN(const WordVectors::Sentence sentence, bank.Find("the bank of the river"));
//   WEFT_ASSIGN_OR_RETURN(const auto vectors, bank.Contextual(sentence));   // one for each occurrence, [C]
//   Cosine(vectors[0], bank.token_embedding())
#ifndef WEFT_INFERENCE_ENCODE_WORD_VECTORS_H_
#define WEFT_INFERENCE_ENCODE_WORD_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/inference/encode/bert_encoder.h"

namespace weft {

class WordVectors {
 public:
  struct Sentence {
    std::vector<int32_t> ids;       // without special tokens
    std::vector<size_t> positions;  // the indices in `ids` of the word's first pieces
  };

  // `path`: a model, as for OpenBert. The hidden states are those of layer `options.layers`; 0: the last. Returns
  // InvalidArgument if the tokenizer has no pieces for `word`, or if pieces do not show where a word ends; WordPiece's
  // do.
  static absl::StatusOr<WordVectors> Open(const std::string& path, const std::string& word,
                                          const BertEncoderOptions& options);

  // Finds all occurrences of the word, as a whole word, in a sentence. Returns InvalidArgument if there is none.
  absl::StatusOr<Sentence> Find(absl::string_view sentence) const;
  // Returns one vector [C] for each occurrence of the word in `sentence`: the mean of the hidden states of its pieces.
  absl::StatusOr<std::vector<std::vector<float>>> Contextual(const Sentence& sentence);
  // Returns the mean [C] of the rows of the word's pieces in the token table, which is the same for all sentences.
  const std::vector<float>& token_embedding() const { return token_embedding_; }

 private:
  explicit WordVectors(std::string word) : word_(std::move(word)) {}
  std::vector<size_t> Positions(absl::Span<const int32_t> ids) const;
  bool WordEndsBefore(int32_t next) const;

  std::string word_;
  std::unique_ptr<BertEncoder> encoder_;
  std::vector<int32_t> pieces_;
  std::vector<float> token_embedding_;
};

// Returns the cosine of the angle between two vectors of equal length, computed in f64.
double Cosine(absl::Span<const float> a, absl::Span<const float> b);

}  // namespace weft

#endif  // WEFT_INFERENCE_ENCODE_WORD_VECTORS_H_
