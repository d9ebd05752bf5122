// Byte-pair encoding by scores, as SentencePiece's and llama2.c's: characters merge to pieces of the vocabulary, the
// best score first.
//
//   WEFT_ASSIGN_OR_RETURN(std::vector<ScoredPiece> pieces, ReadLlama2cFile(tokenizer_bin));
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, ScoredBpe::Create(std::move(pieces)));
//   tokenizer->Encode("Once upon a time")                // " Once" " upon" " a" " time"
#ifndef WEFT_TEXT_SCORED_BPE_H_
#define WEFT_TEXT_SCORED_BPE_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "weft/text/bpe_merges.h"
#include "weft/text/tokenizer.h"
#include "weft/text/vocabulary.h"

namespace weft {

struct ScoredPiece {
  std::string text;  // " the"; "<0x0A>" is a byte, "<s>", "</s>" and "<unk>" are special
  float score;
};

class ScoredBpe final : public Tokenizer {
 public:
  // InvalidArgument if a piece is there twice or a score is no number.
  static absl::StatusOr<std::unique_ptr<ScoredBpe>> Create(std::vector<ScoredPiece> pieces);

  // A text is read as if a space stood before it. A character that is no piece gives its bytes or, without them, the
  // unknown token.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const override;
  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  // Without the space at the beginning, and after the token that begins a text.
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit ScoredBpe(Vocabulary vocabulary);
  absl::Status AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const;

  static constexpr int16_t kOrdinary = -1, kSpecial = -2;

  Vocabulary vocabulary_;
  std::vector<int16_t> kinds_;  // by id: a byte's value, or one of the two above
  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
};

// A tokenizer.bin of llama2.c: the bytes of the longest piece (i32), then for each piece score (f32), bytes (i32),
// text. InvalidArgument, naming the piece, if the file is cut short or is something else.
absl::StatusOr<std::vector<ScoredPiece>> ReadLlama2cFile(absl::string_view file);

}  // namespace weft

#endif  // WEFT_TEXT_SCORED_BPE_H_
