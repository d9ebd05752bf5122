// Google's SentencePiece behind an interface of the standard library alone: its header declares an absl::string_view of
// its own, so no file can include both it and Abseil.
#ifndef WEFT_TEXT_SENTENCEPIECE_MODEL_H_
#define WEFT_TEXT_SENTENCEPIECE_MODEL_H_

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

  // What is wrong with the contents of a .model; empty: nothing.
  std::string Load(std::string_view contents);

  std::vector<int32_t> Encode(std::string_view text) const;   // UTF-8
  std::string Decode(const std::vector<int32_t>& ids) const;  // of 0 .. size() - 1

  int32_t size() const;
  std::string piece(int32_t id) const;
  bool is_special(int32_t id) const;  // what no text gives, or stands for what no piece has
  // -1: the model has no such token.
  int32_t begin() const;
  int32_t end() const;
  int32_t padding() const;
  int32_t unknown() const;

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace weft

#endif  // WEFT_TEXT_SENTENCEPIECE_MODEL_H_
