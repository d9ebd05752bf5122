#include "weft/text/tokenizers/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <exception>

namespace weft {

SentencePieceModel::SentencePieceModel() : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {}
SentencePieceModel::SentencePieceModel(SentencePieceModel&&) noexcept = default;
SentencePieceModel::~SentencePieceModel() = default;

std::string SentencePieceModel::Load(std::string_view contents) {
  try {  // the library throws if a piece contains a zero byte
    return processor_->LoadFromSerializedProto(contents).ok() ? "" : "not a SentencePiece model";
  } catch (const std::exception& error) {
    return std::string("not a SentencePiece model: ") + error.what();
  }
}

std::vector<int32_t> SentencePieceModel::Encode(std::string_view text) const { return processor_->EncodeAsIds(text); }

std::string SentencePieceModel::Decode(const std::vector<int32_t>& ids) const { return processor_->DecodeIds(ids); }

std::vector<std::string> SentencePieceModel::EncodeAsPieces(std::string_view text) const {
  return processor_->EncodeAsPieces(text);
}
std::string SentencePieceModel::DecodePieces(const std::vector<std::string>& pieces) const {
  return processor_->DecodePieces(pieces);
}

int32_t SentencePieceModel::size() const { return processor_->GetPieceSize(); }
std::string SentencePieceModel::piece(int32_t id) const { return processor_->IdToPiece(id); }
bool SentencePieceModel::is_special(int32_t id) const { return processor_->IsControl(id) || processor_->IsUnknown(id); }
int32_t SentencePieceModel::begin() const { return processor_->bos_id(); }
int32_t SentencePieceModel::end() const { return processor_->eos_id(); }
int32_t SentencePieceModel::padding() const { return processor_->pad_id(); }
int32_t SentencePieceModel::unknown() const { return processor_->unk_id(); }

}  // namespace weft
