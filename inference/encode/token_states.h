// These classes read a BERT's hidden states of single tokens. A MaskFiller guesses the masked tokens of texts. A
// WordVectors computes contextual vectors of one word: means of hidden states, one for each occurrence in a sentence.
//
//   WEFT_ASSIGN_OR_RETURN(const auto filler, MaskFiller::Open("bert", /*top_k=*/3, {.truncate = true}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, filler->Encode("a [MASK] day"));
//   WEFT_RETURN_IF_ERROR(filler->Fill({ids}, [](absl::Span<const MaskCandidate> candidates) {
//     std::puts(candidates[0].sequence.c_str());   // "a good day"
//   }));
//
//   WEFT_ASSIGN_OR_RETURN(WordVectors bank, WordVectors::Open("bert", "bank", {}));
//   WEFT_ASSIGN_OR_RETURN(const WordVectors::Sentence sentence, bank.Find("the bank of the river"));
//   WEFT_ASSIGN_OR_RETURN(const auto vectors, bank.Contextual(sentence));   // one for each occurrence, [C]
//   Cosine(vectors[0], bank.token_embedding())
#ifndef WEFT_INFERENCE_ENCODE_TOKEN_STATES_H_
#define WEFT_INFERENCE_ENCODE_TOKEN_STATES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/runtime/runtime.h"

namespace weft {

struct MaskCandidate {
  double score;  // the probability
  int32_t token;
  std::string text;      // the token as text
  std::string sequence;  // the whole text with the token in the mask's position
};

class MaskFiller {
 public:
  // `path`: a model, as for OpenBert. `top_k`: number of candidates for each mask. Returns InvalidArgument if the model
  // has no head for masked tokens, or if its tokenizer has no mask token.
  static absl::StatusOr<std::unique_ptr<MaskFiller>> Open(const std::string& path, int64_t top_k,
                                                          const BertEncoderOptions& options);

  // Returns the tokens of a text, which marks masks by the tokenizer's mask token, such as "[MASK]". Returns
  // InvalidArgument if the text has no mask, exceeds the context without `truncate`, or would lose a mask by
  // truncation.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;

  // Receives the candidates for one mask, most likely first.
  using Take = absl::FunctionRef<void(absl::Span<const MaskCandidate>)>;
  // Calls `take` once for each mask of each text, in the order of the texts and masks.
  absl::Status Fill(absl::Span<const std::vector<int32_t>> texts, Take take);

 private:
  MaskFiller(int64_t top_k, int32_t mask) : top_k_(static_cast<size_t>(top_k)), mask_(mask) {}
  absl::StatusOr<std::vector<MaskCandidate>> Candidates(std::vector<int32_t> ids, size_t position,
                                                        absl::Span<const float> hidden);

  const size_t top_k_;
  const int32_t mask_;
  std::unique_ptr<BertEncoder> encoder_;
  EvalGraph head_;       // for one token, because logits of all tokens are large
  Var hidden_, logits_;  // f32 [1, C], [1, V]
};

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

#endif  // WEFT_INFERENCE_ENCODE_TOKEN_STATES_H_
