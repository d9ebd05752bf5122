// A character that the map has is replaced. As in Hugging Face's tokenizers, a grapheme of less than 6 bytes is
// replaced whole, even if the map has only its beginning.
#include <utf8proc.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kMaxGrapheme = 5;  // bytes

class CharacterMap {
 public:
  CharacterMap(std::vector<uint32_t> units, std::string texts) : units_(std::move(units)), texts_(std::move(texts)) {}

  // Returns the replacement of the shortest prefix of `text` that the map has.
  std::optional<absl::string_view> Find(absl::string_view text) const {
    size_t node = 0;
    if (!Step(&node)) return std::nullopt;
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size() || (units_[node] & 0x800000FF) != byte) return std::nullopt;
      const bool leaf = (units_[node] >> 8 & 1) != 0;
      if (!Step(&node)) return std::nullopt;
      if (!leaf) continue;
      const size_t begin = units_[node] & 0x7FFFFFFF;
      if (begin > texts_.size()) return std::nullopt;
      return absl::string_view(texts_.data() + begin);  // ends at the zero byte
    }
    return std::nullopt;
  }

 private:
  // Moves `node` to the base of its children. Returns false if the array has no such unit.
  bool Step(size_t* node) const {
    const uint32_t unit = units_[*node];
    *node ^= static_cast<size_t>(unit >> 10) << ((unit & 0x200) >> 6);
    return *node < units_.size();
  }

  const std::vector<uint32_t> units_;
  const std::string texts_;
};

}  // namespace

absl::StatusOr<Normalizer> NormalizeByMap(std::string map) {
  uint32_t bytes = 0;
  if (map.size() >= sizeof bytes) std::memcpy(&bytes, map.data(), sizeof bytes);
  if (bytes == 0 || bytes % 4 != 0 || bytes > map.size() - sizeof bytes) {
    return InvalidArgument("the precompiled map of ", map.size(), " bytes has an array of ", bytes, " bytes");
  }
  std::vector<uint32_t> units(bytes / 4);
  std::memcpy(units.data(), map.data() + sizeof bytes, bytes);
  std::string texts = map.substr(sizeof bytes + bytes);
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(texts), "the texts of the precompiled map"));
  const auto characters = std::make_shared<const CharacterMap>(std::move(units), std::move(texts));
  return Normalizer([characters](std::string* text) {
    std::string changed;
    utf8proc_int32_t state = 0;
    for (size_t begin = 0, end; begin < text->size(); begin = end) {
      Utf8Character c = CharacterAt(*text, begin);
      end = begin + c.bytes;
      for (Utf8Character next; end < text->size(); c = next, end += c.bytes) {
        next = CharacterAt(*text, end);
        if (utf8proc_grapheme_break_stateful(c.code_point, next.code_point, &state)) break;
      }
      const absl::string_view grapheme = absl::string_view(*text).substr(begin, end - begin);
      const auto whole = grapheme.size() <= kMaxGrapheme ? characters->Find(grapheme) : std::nullopt;
      if (whole.has_value()) {
        absl::StrAppend(&changed, *whole);
      } else {
        ForEachCharacter(grapheme, [&](int32_t, absl::string_view character) {
          absl::StrAppend(&changed, characters->Find(character).value_or(character));
        });
      }
    }
    *text = std::move(changed);
    return absl::OkStatus();
  });
}

}  // namespace weft
