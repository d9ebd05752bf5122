#include "weft/text/tokenizers/character_bpe.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {

std::array<int32_t, 256> ByteTokens(const Vocabulary& vocabulary) {
  std::array<int32_t, 256> tokens;
  for (size_t byte = 0; byte < tokens.size(); ++byte) {
    tokens[byte] = vocabulary.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  return tokens;
}

bool AppendBytes(const std::array<int32_t, 256>& tokens, absl::string_view text, std::vector<int32_t>* ids) {
  const size_t before = ids->size();
  for (const char byte : text) {
    ids->push_back(tokens[static_cast<uint8_t>(byte)]);
    if (ids->back() >= 0) continue;
    ids->resize(before);
    return false;
  }
  return true;
}

CharacterBpe::CharacterBpe(CharacterBpeModel model)
    : PipelineTokenizer(model.pipeline), model_(std::move(model)), byte_tokens_(ByteTokens(model_.vocabulary)) {
  SetFormats(model_.special, model_.single, model_.pair);
  if (model_.keeps_unknown) KeepUnknown();
}

absl::Status CharacterBpe::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  const std::optional<int32_t> whole = model_.whole_words ? model_.vocabulary.Find(word) : std::nullopt;
  if (whole.has_value()) {
    ids->push_back(*whole);
    return absl::OkStatus();
  }
  std::vector<int32_t> pieces;
  bool pending = false;  // As in `tokenizers`, an unknown token waits, and goes behind the bytes of later characters.
  const auto flush = [&] {
    if (pending) pieces.push_back(*model_.unknown);
    pending = false;
  };
  for (size_t i = 0, end; i < word.size(); i = end) {
    end = i + CharacterAt(word, i).bytes;
    const std::string character =
        absl::StrCat(i > 0 ? model_.prefix : "", word.substr(i, end - i), end == word.size() ? model_.suffix : "");
    if (const std::optional<int32_t> id = model_.vocabulary.Find(character)) {
      flush();
      pieces.push_back(*id);
    } else if (!model_.byte_fallback || !AppendBytes(byte_tokens_, character, &pieces)) {
      if (!model_.unknown.has_value()) {
        return InvalidArgument("the vocabulary has neither ", Quoted(character), " nor its bytes nor an unknown token");
      }
      if (!model_.fuse_unknown) flush();
      pending = true;
    }
  }
  flush();
  model_.merges.Apply(&pieces);
  ids->insert(ids->end(), pieces.begin(), pieces.end());
  return absl::OkStatus();
}

}  // namespace weft
