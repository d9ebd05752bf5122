// SentencePieceTokenizer encodes with a SentencePiece .model, unigram or BPE, by Google's own library.
//
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, SentencePieceTokenizer::Create(contents_of_model));
#ifndef WEFT_TEXT_SENTENCEPIECE_TOKENIZER_H_
#define WEFT_TEXT_SENTENCEPIECE_TOKENIZER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/text/sentencepiece_model.h"
#include "weft/text/tokenizer.h"

namespace weft {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // `model`: the contents of a .model file. Returns InvalidArgument if the contents are not such a file. The file
  // doesn't state an input format, so Wrap prepends the begin token, as Llama does. If the model has no begin token,
  // Wrap appends the end token, as T5 does.
  static absl::StatusOr<std::unique_ptr<SentencePieceTokenizer>> Create(absl::string_view model);

  int64_t vocabulary_size() const override { return model_.size(); }
  bool SetPrefixSpace(bool space) override { return space; }  // the model itself says so

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override;
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit SentencePieceTokenizer(SentencePieceModel model);

  SentencePieceModel model_;
};

}  // namespace weft

#endif  // WEFT_TEXT_SENTENCEPIECE_TOKENIZER_H_
