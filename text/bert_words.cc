// BertWords normalizes in the order of Hugging Face's BertNormalizer: clean, separate CJK, strip accents, lowercase.
#include "weft/text/bert_words.h"

#include <utf8proc.h>

#include <cstdint>

#include "weft/core/status.h"
#include "weft/text/unicode.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using CodePoints = std::vector<int32_t>;

// Reports whether `c` is a word of its own: Unicode punctuation, or an ASCII symbol such as '$', which BERT treats as
// punctuation.
bool EndsWord(int32_t c) { return IsPunctuation(c) || (c > ' ' && c < 0x7F && !IsLetter(c) && !IsNumber(c)); }

CodePoints Clean(absl::string_view text, const BertNormalizer& normalizer) {
  CodePoints cleaned;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character next = CharacterAt(text, i);
    const int32_t c = next.code_point;
    i += next.bytes;
    if (normalizer.clean_text) {
      const bool break_or_tab = c == '\t' || c == '\n' || c == '\r';
      if (c == 0xFFFD || (IsControl(c) && !break_or_tab)) continue;
      cleaned.push_back(IsSpace(c) ? ' ' : c);
    } else {
      cleaned.push_back(c);
    }
    if (normalizer.separate_cjk && IsCjk(c)) {
      cleaned.back() = ' ';
      cleaned.insert(cleaned.end(), {c, ' '});
    }
  }
  return cleaned;
}

CodePoints StripAccents(const CodePoints& text) {
  constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  std::string bytes;
  for (const int32_t c : text) bytes += ToUtf8(c);
  // A character decomposes into at most four.
  CodePoints decomposed(4 * text.size() + 1);
  const utf8proc_ssize_t size = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                                   static_cast<utf8proc_ssize_t>(bytes.size()), decomposed.data(),
                                                   static_cast<utf8proc_ssize_t>(decomposed.size()), kDecompose);
  WEFT_CHECK(size >= 0 && static_cast<size_t>(size) <= decomposed.size());
  decomposed.resize(static_cast<size_t>(size));
  std::erase_if(decomposed, IsMark);
  return decomposed;
}

}  // namespace

std::vector<std::string> BertWords(absl::string_view text, const BertNormalizer& normalizer) {
  CodePoints points = Clean(text, normalizer);
  if (normalizer.strip_accents) points = StripAccents(points);
  std::vector<std::string> words;
  bool inside = false;
  for (const int32_t c : points) {
    if (IsSpace(c)) {
      inside = false;
      continue;
    }
    const bool alone = EndsWord(c);
    if (!inside || alone) words.emplace_back();
    if (normalizer.lowercase) {
      AppendLowercase(c, &words.back());
    } else {
      words.back() += ToUtf8(c);
    }
    inside = !alone;
  }
  return words;
}

}  // namespace weft
