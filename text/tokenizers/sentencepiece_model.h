// SentencePieceModel wraps Google's SentencePiece. SentencePiece's header declares an absl::string_view of its own, so
// no file can include both that header and Abseil. SentencePieceModel therefore uses standard types only.
#ifndef WEFT_TEXT_TOKENIZERS_SENTENCEPIECE_MODEL_H_
#define WEFT_TEXT_TOKENIZERS_SENTENCEPIECE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace weft {

class SentencePieceModel {
 public:
  SentencePieceModel();
  SentencePieceModel(SentencePieceModel&&) noexcept;
  ~SentencePieceModel();

  // Loads the contents of a .model file. Returns an error message, or "" on success.
  std::string Load(std::string_view contents);

  std::vector<int32_t> Encode(std::string_view text) const;   // `text` must be UTF-8
  std::string Decode(const std::vector<int32_t>& ids) const;  // ids must be in 0 .. size() - 1
  // The same with the texts of pieces. A part of `text` that the model does not know is a piece of its own.
  std::vector<std::string> EncodeAsPieces(std::string_view text) const;
  std::string DecodePieces(const std::vector<std::string>& pieces) const;

  int32_t size() const;
  std::string piece(int32_t id) const;
  bool is_special(int32_t id) const;  // true of control tokens and the unknown token
  // These return -1 if the model has no such token.
  int32_t begin() const;
  int32_t end() const;
  int32_t padding() const;
  int32_t unknown() const;

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_SENTENCEPIECE_MODEL_H_
