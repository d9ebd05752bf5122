// GPT-2's regular expression is matched by hand. Apart from contractions, the first character of a word, after at most
// one space, decides which alternative can match. BertNormalize works in the order of Hugging Face's BertNormalizer:
// clean, separate CJK, strip accents, lowercase.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

enum class Kind : uint8_t { kLetter, kNumber, kSpace, kOther, kEnd };

Kind KindOf(int32_t code_point) {
  if (IsLetter(code_point)) return Kind::kLetter;
  if (IsNumber(code_point)) return Kind::kNumber;
  return IsSpace(code_point) ? Kind::kSpace : Kind::kOther;
}

// The kinds of ASCII, of which most texts are. Looking up their categories would take most of the time of a split.
constexpr std::array<Kind, 128> kAsciiKinds = [] {
  std::array<Kind, 128> kinds = {};
  for (size_t c = 0; c < kinds.size(); ++c) {
    const bool letter = 'a' <= (c | 0x20) && (c | 0x20) <= 'z', number = '0' <= c && c <= '9';
    const bool space = c == ' ' || ('\t' <= c && c <= '\r');
    kinds[c] = letter ? Kind::kLetter : number ? Kind::kNumber : space ? Kind::kSpace : Kind::kOther;
  }
  return kinds;
}();

struct Classified {
  Kind kind;
  size_t end;
};

Classified ClassifyAt(absl::string_view text, size_t begin) {
  if (begin == text.size()) return {Kind::kEnd, begin};
  if (const auto c = static_cast<uint8_t>(text[begin]); c < kAsciiKinds.size()) {
    return {kAsciiKinds[c], begin + 1};
  }
  const Utf8Character c = CharacterAt(text, begin);
  return {KindOf(c.code_point), begin + c.bytes};
}

std::string Clean(absl::string_view text, const BertNormalizer& normalizer) {
  std::string cleaned;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character next = CharacterAt(text, i);
    const absl::string_view character = text.substr(i, next.bytes);
    const int32_t c = next.code_point;
    i += next.bytes;
    const bool break_or_tab = c == '\t' || c == '\n' || c == '\r';
    if (normalizer.clean_text && (c == 0xFFFD || (IsControl(c) && !break_or_tab))) continue;
    const bool alone = normalizer.separate_cjk && IsCjk(c), space = normalizer.clean_text && IsSpace(c);
    absl::StrAppend(&cleaned, alone ? " " : "", space ? " " : character, alone ? " " : "");
  }
  return cleaned;
}

// Calls `take` with each code point of `text`, decomposed if `decompose` is set.
template <class Function>
void ForEachCodePoint(absl::string_view text, bool decompose, const Function& take) {
  constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  const auto options = decompose ? kDecompose : static_cast<utf8proc_option_t>(0);
  std::vector<int32_t> points(4 * text.size() + 1);  // a character decomposes into at most four
  const utf8proc_ssize_t size = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), points.data(),
                                                   static_cast<utf8proc_ssize_t>(points.size()), options);
  WEFT_CHECK(size >= 0 && static_cast<size_t>(size) <= points.size());
  std::for_each(points.begin(), points.begin() + size, take);
}

}  // namespace

size_t Gpt2WordEnd(absl::string_view text, size_t begin) {
  if (text[begin] == '\'') {
    for (const absl::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (absl::StartsWith(text.substr(begin + 1), ending)) return begin + 1 + ending.size();
    }
  }
  // ` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+`
  Classified c = ClassifyAt(text, begin + (text[begin] == ' '));
  if (c.kind != Kind::kSpace && c.kind != Kind::kEnd) {
    for (Classified next = c; next.kind == c.kind; next = ClassifyAt(text, next.end)) c.end = next.end;
    return c.end;
  }
  // `\s+(?!\S)|\s+` matches white space. If other text follows several white-space characters, the last of them is left
  // for the next word.
  size_t last = begin, end = begin;
  for (c = ClassifyAt(text, begin); c.kind == Kind::kSpace; c = ClassifyAt(text, end)) {
    last = end;
    end = c.end;
  }
  return c.kind == Kind::kEnd || last == begin ? end : last;
}

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

bool EndsWord(int32_t c) { return IsPunctuation(c) || (c > ' ' && c < 0x7F && !IsLetter(c) && !IsNumber(c)); }

std::vector<absl::string_view> BertWords(absl::string_view text) {
  std::vector<absl::string_view> words;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character next = CharacterAt(text, i);
    const bool space = IsSpace(next.code_point), alone = !space && EndsWord(next.code_point);
    if (!space && inside && !alone) {
      words.back() = absl::string_view(words.back().data(), words.back().size() + next.bytes);
    } else if (!space) {
      words.push_back(text.substr(i, next.bytes));
    }
    inside = !space && !alone;
    i += next.bytes;
  }
  return words;
}

}  // namespace weft
