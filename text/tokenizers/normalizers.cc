// Each kind of normalizer is a row of kKinds, with the function that reads its settings. BertNormalize works in the
// order of Hugging Face's BertNormalizer: clean, separate CJK, strip accents, lowercase.
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/text/regular_expression.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr int kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, kCompose = UTF8PROC_STABLE | UTF8PROC_COMPOSE;

// Reads one of Unicode's normal forms: NFC, NFD, NFKC, NFKD.
template <int options>
absl::StatusOr<Normalizer> ReadForm(const Json& /*object*/) {
  return Normalizer([](std::string* text) -> absl::Status {
    utf8proc_uint8_t* result = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text->data()),
                     static_cast<utf8proc_ssize_t>(text->size()), &result, static_cast<utf8proc_option_t>(options));
    if (size < 0) return InvalidArgument(utf8proc_errmsg(size));
    text->assign(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
    std::free(result);
    return absl::OkStatus();
  });
}

// Returns the normalizer that calls `append` with each code point and the new text.
template <class Function>
Normalizer EachCharacter(Function append) {
  return [append](std::string* text) {
    std::string changed;
    ForEachCharacter(*text, [&](int32_t c, absl::string_view) { append(c, &changed); });
    *text = std::move(changed);
    return absl::OkStatus();
  };
}

std::string Clean(absl::string_view text, const BertNormalizer& normalizer) {
  std::string cleaned;
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    const bool break_or_tab = c == '\t' || c == '\n' || c == '\r';
    if (normalizer.clean_text && (c == 0xFFFD || (IsControl(c) && !break_or_tab))) return;
    const bool alone = normalizer.separate_cjk && IsCjk(c), space = normalizer.clean_text && IsSpace(c);
    absl::StrAppend(&cleaned, alone ? " " : "", space ? " " : character, alone ? " " : "");
  });
  return cleaned;
}

// Calls `take` with each code point of `text`, decomposed if `decompose` is set.
template <class Function>
void ForEachCodePoint(absl::string_view text, bool decompose, const Function& take) {
  const auto options = static_cast<utf8proc_option_t>(decompose ? kDecompose : 0);
  std::vector<int32_t> points(4 * text.size() + 1);  // a character decomposes into at most four
  const utf8proc_ssize_t size = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), points.data(),
                                                   static_cast<utf8proc_ssize_t>(points.size()), options);
  WEFT_CHECK(size >= 0 && static_cast<size_t>(size) <= points.size());
  std::for_each(points.begin(), points.begin() + size, take);
}

absl::StatusOr<Normalizer> ReadLowercase(const Json& /*object*/) { return EachCharacter(AppendLowercase); }

absl::StatusOr<Normalizer> ReadStripAccents(const Json& /*object*/) {
  return EachCharacter([](int32_t c, std::string* text) {
    if (!IsAnyMark(c)) *text += ToUtf8(c);
  });
}

// SentencePiece's rules for translation: some controls are dropped, and white space and format characters are spaces.
absl::StatusOr<Normalizer> ReadNmt(const Json& /*object*/) {
  return EachCharacter([](int32_t c, std::string* text) {
    const bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
                       (0x200B <= c && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                       c == 0xFFFD;
    const bool dropped =
        (1 <= c && c <= 8) || c == 0xB || (0xE <= c && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    if (!dropped) *text += space ? " " : ToUtf8(c);
  });
}

absl::StatusOr<Normalizer> ReadStrip(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const bool left, Get(object, "strip_left", true));
  WEFT_ASSIGN_OR_RETURN(const bool right, Get(object, "strip_right", true));
  return Normalizer([left, right](std::string* text) {
    if (right) text->resize(BeforeSpace(*text, text->size()));
    if (left) text->erase(0, BehindSpace(*text, 0));
    return absl::OkStatus();
  });
}

absl::StatusOr<Normalizer> ReadReplace(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(RegularExpression expression, ReadPattern(object));
  WEFT_ASSIGN_OR_RETURN(std::string content, Get<std::string>(object, "content", ""));
  return Normalizer([expression = std::move(expression), content](std::string* text) -> absl::Status {
    std::string changed;
    size_t done = 0;
    WEFT_RETURN_IF_ERROR(expression.ForEachMatch(*text, [&](size_t begin, size_t end) {
      absl::StrAppend(&changed, absl::string_view(*text).substr(done, begin - done), content);
      done = end;
    }));
    *text = changed + text->substr(done);
    return absl::OkStatus();
  });
}

absl::StatusOr<Normalizer> ReadPrepend(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(std::string text, Get<std::string>(object, "prepend", ""));
  return PrependText(std::move(text));
}

absl::StatusOr<Normalizer> ReadByteLevel(const Json& /*object*/) {
  return Normalizer([](std::string* text) {
    *text = ToByteAlphabet(*text);
    return absl::OkStatus();
  });
}

absl::StatusOr<Normalizer> ReadBert(const Json& object) {
  BertNormalizer settings;
  WEFT_ASSIGN_OR_RETURN(settings.clean_text, Get(object, "clean_text", true));
  WEFT_ASSIGN_OR_RETURN(settings.separate_cjk, Get(object, "handle_chinese_chars", true));
  WEFT_ASSIGN_OR_RETURN(settings.lowercase, Get(object, "lowercase", true));
  WEFT_ASSIGN_OR_RETURN(settings.strip_accents, Get(object, "strip_accents", settings.lowercase));
  return NormalizeForBert(settings);
}

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

// Reads the normalizer of a SentencePiece model. Its precompiled_charsmap has the size in bytes of a double array
// (u32), the array (u32 each, little endian), and texts that end with a zero byte. The array is a trie (Darts-clone)
// from characters to the offsets of their replacements. A character that the map has is replaced. As in Hugging Face's
// tokenizers, a grapheme of less than 6 bytes is replaced whole, even if the map has only its beginning.
absl::StatusOr<Normalizer> ReadPrecompiled(const Json& object) {
  constexpr size_t kMaxGrapheme = 5;  // bytes
  WEFT_ASSIGN_OR_RETURN(const std::string encoded, Get<std::string>(object, "precompiled_charsmap", ""));
  std::string map;
  if (!absl::Base64Unescape(encoded, &map)) return InvalidArgument("precompiled_charsmap: it is not base64");
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

constexpr StepKind<Normalizer> kKinds[] = {
    {"BertNormalizer", ReadBert},
    {"ByteLevel", ReadByteLevel},
    {"Lowercase", ReadLowercase},
    {"NFC", ReadForm<kCompose>},
    {"NFD", ReadForm<kDecompose>},
    {"NFKC", ReadForm<kCompose | UTF8PROC_COMPAT>},
    {"NFKD", ReadForm<kDecompose | UTF8PROC_COMPAT>},
    {"Nmt", ReadNmt},
    {"Precompiled", ReadPrecompiled},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplace},
    {"Strip", ReadStrip},
    {"StripAccents", ReadStripAccents},
};

}  // namespace

std::string BertNormalize(absl::string_view text, const BertNormalizer& normalizer) {
  std::string normalized;
  ForEachCodePoint(Clean(text, normalizer), normalizer.strip_accents, [&](int32_t c) {
    if (normalizer.strip_accents && IsMark(c)) return;
    if (normalizer.lowercase) {
      AppendLowercase(c, &normalized);
    } else {
      normalized += ToUtf8(c);
    }
  });
  return normalized;
}

Normalizer NormalizeForBert(BertNormalizer settings) {
  return [settings](std::string* text) {
    *text = BertNormalize(*text, settings);
    return absl::OkStatus();
  };
}

Normalizer PrependText(std::string text) {
  return [text = std::move(text)](std::string* changed) {
    if (!changed->empty()) changed->insert(0, text);
    return absl::OkStatus();
  };
}

absl::StatusOr<Normalizer> ReadNormalizer(const Json& object) { return ReadStep(kKinds, object); }

}  // namespace weft
