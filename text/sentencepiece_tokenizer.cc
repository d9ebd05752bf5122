// The special tokens are the model's control tokens and its unknown token. Join decodes the runs of tokens between
// control tokens.
#include "weft/text/sentencepiece_tokenizer.h"

#include <optional>
#include <string_view>

#include "weft/core/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

std::optional<int32_t> Optional(int32_t id) { return id < 0 ? std::nullopt : std::optional<int32_t>(id); }

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceModel model) : model_(std::move(model)) {
  std::vector<AddedToken> special;
  for (int32_t id = 0; id < model_.size(); ++id) {
    if (model_.is_special(id)) special.push_back({model_.piece(id), id});
  }
  SetAdded(std::move(special));
  KeepUnknown();
  SetRoles({.begin = Optional(model_.begin()),
            .end = Optional(model_.end()),
            .padding = Optional(model_.padding()),
            .unknown = Optional(model_.unknown())});
  if (special_tokens().begin.has_value()) {
    SetFormat(BeginText(*special_tokens().begin), {});
  } else if (special_tokens().end.has_value()) {
    SetFormat({{WrapItem::kFirst}, {WrapItem::kToken, *special_tokens().end}}, {});
  }
}

absl::StatusOr<std::unique_ptr<SentencePieceTokenizer>> SentencePieceTokenizer::Create(absl::string_view model) {
  SentencePieceModel loaded;
  if (const std::string problem = loaded.Load(View(model)); !problem.empty()) {
    return InvalidArgument(problem);
  }
  return std::unique_ptr<SentencePieceTokenizer>(new SentencePieceTokenizer(std::move(loaded)));
}

absl::StatusOr<std::vector<int32_t>> SentencePieceTokenizer::EncodeOrdinary(absl::string_view text) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  return model_.Encode(View(text));
}

std::string SentencePieceTokenizer::Join(absl::Span<const int32_t> ids) const {
  std::string text;
  std::vector<int32_t> ordinary;
  for (size_t i = 0; i <= ids.size(); ++i) {
    const bool special = i < ids.size() && ids[i] != special_tokens().unknown && model_.is_special(ids[i]);
    if (i < ids.size() && !special) {
      ordinary.push_back(ids[i]);
      continue;
    }
    text += model_.Decode(ordinary);
    ordinary.clear();
    if (special) text += model_.piece(ids[i]);
  }
  return text;
}

}  // namespace weft
