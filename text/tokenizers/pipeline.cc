#include "weft/text/tokenizers/pipeline.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {

absl::Status SplitPiece(absl::Span<const PreTokenizer> pre_tokenizers, const TextPiece& piece, Emit emit) {
  if (piece.text.empty()) return absl::OkStatus();
  if (pre_tokenizers.empty()) return emit(piece);
  return pre_tokenizers[0](piece,
                           [&](const TextPiece& part) { return SplitPiece(pre_tokenizers.subspan(1), part, emit); });
}

absl::StatusOr<std::vector<int32_t>> PipelineTokenizer::EncodeOrdinary(absl::string_view text, bool begins) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::vector<int32_t> ids;
  struct Range {
    size_t begin, size;
  };
  absl::flat_hash_map<std::string, Range> known;  // where `ids` has the ids of each earlier word
  const auto append = [&](const TextPiece& word) -> absl::Status {
    const auto found = known.find(word.text);
    if (reuses_words_ && found != known.end()) {
      for (size_t i = 0; i < found->second.size; ++i) ids.push_back(ids[found->second.begin + i]);
      return absl::OkStatus();
    }
    const size_t begin = ids.size();
    if (const absl::Status status = AppendWord(word.text, &ids); !status.ok()) {
      return Annotate(status, absl::StrCat("at byte ", word.at));
    }
    known.emplace(word.text, Range{begin, ids.size() - begin});
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(SplitPiece(pipeline_.pre_tokenizers, {text, 0, begins}, append));
  return ids;
}

absl::StatusOr<absl::string_view> PipelineTokenizer::Normalize(absl::string_view text, std::string* storage) const {
  if (pipeline_.normalizers.empty()) return text;
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::string normal(text);
  for (const Normalizer& normalize : pipeline_.normalizers) WEFT_RETURN_IF_ERROR(normalize(&normal));
  *storage = std::move(normal);
  return *storage;
}

void PipelineTokenizer::SetFormats(const std::vector<AddedToken>& added, WrapFormat single, WrapFormat pair) {
  SetAdded(added);
  SetFormat(std::move(single), std::move(pair));
  std::string storage;
  for (const AddedToken& token : added) {  // `tokenizers` decodes a token as it is looked for
    if (token.normalized) Respell(token.id, std::string(Normalize(token.text, &storage).value_or(token.text)));
  }
}

std::string PipelineTokenizer::Join(absl::Span<const int32_t> ids) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    if (const std::string& token = Spelling(id, vocabulary()); !token.empty()) tokens.push_back(token);
  }
  if (!pipeline_.decoders.has_value()) return absl::StrJoin(tokens, " ");
  for (const Decoder& decode : *pipeline_.decoders) decode(&tokens);
  return absl::StrJoin(tokens, "");
}

}  // namespace weft
