// A MaskFiller guesses the masked tokens of texts with a BERT.
//
//   WEFT_ASSIGN_OR_RETURN(const auto filler, MaskFiller::Open("bert", /*top_k=*/3, {.truncate = true}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, filler->Encode("a [MASK] day"));
//   WEFT_RETURN_IF_ERROR(filler->Fill({ids}, [](absl::Span<const MaskCandidate> candidates) {
//     std::puts(candidates[0].sequence.c_str());   // "a good day"
//   }));
#ifndef WEFT_INFERENCE_ENCODE_MASK_FILLING_H_
#define WEFT_INFERENCE_ENCODE_MASK_FILLING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

}  // namespace weft

#endif  // WEFT_INFERENCE_ENCODE_MASK_FILLING_H_
