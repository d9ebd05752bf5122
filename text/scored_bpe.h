// ScoredBpe is the byte-pair encoding of llama2.c, where each piece of the vocabulary has a score: it merges the
// characters of a text into pieces, highest score first.
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
  std::string text;  // " the"; "<0x0A>" stands for a byte; "<s>", "</s>" and "<unk>" are special
  float score;
};

class ScoredBpe final : public Tokenizer {
 public:
  // Returns InvalidArgument if a piece occurs twice or a score is NaN.
  static absl::StatusOr<std::unique_ptr<ScoredBpe>> Create(std::vector<ScoredPiece> pieces);

  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  // Puts a space before a nonempty text. A character that is no piece becomes the tokens of its bytes. If a byte has no
  // token, the character becomes the unknown token, or the result is InvalidArgument if there is no unknown token.
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override;
  // Drops the space at the beginning of the first piece, and of a piece after the begin token.
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit ScoredBpe(Vocabulary vocabulary);
  absl::Status AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const;

  static constexpr int16_t kOrdinary = -1, kSpecial = -2;

  Vocabulary vocabulary_;
  std::vector<int16_t> kinds_;  // by id: the value of a byte's token, else kOrdinary or kSpecial
  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
};

// Reads the contents of llama2.c's tokenizer.bin: the length of the longest piece in bytes (i32), then for each piece
// its score (f32), its length in bytes (i32) and its text. Returns InvalidArgument, with the piece, if the file is
// truncated or malformed.
absl::StatusOr<std::vector<ScoredPiece>> ReadLlama2cFile(absl::string_view file);

}  // namespace weft

#endif  // WEFT_TEXT_SCORED_BPE_H_
