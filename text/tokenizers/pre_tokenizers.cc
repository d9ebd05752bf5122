// A split marks the parts of a text that match; EmitSplits makes words of them. Each kind of pre-tokenizer is a row of
// kKinds, with the function that reads its settings.
//
// GPT-2's regular expression is matched by hand. Apart from contractions, the first character of a word, after at most
// one space, decides which alternative can match.
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/text/regular_expression.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/tokenizers/vocabulary.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Json = nlohmann::json;

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

// What a split does with a match: it is a word, is left out, is the end of the text before it, is the beginning of the
// text behind it, or is one word with the matches next to it.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  size_t begin, end;
  bool matches;
};

absl::Status EmitParts(const TextPiece& piece, absl::Span<const Part> parts, Emit emit) {
  for (const Part& part : parts) {
    if (part.begin == part.end) continue;
    WEFT_RETURN_IF_ERROR(emit({piece.text.substr(part.begin, part.end - part.begin), piece.at + part.begin,
                               piece.begins && part.begin == 0}));
  }
  return absl::OkStatus();
}

// Emits the words that `parts`, which cover the text of `piece`, become.
absl::Status EmitSplits(const TextPiece& piece, std::vector<Part> parts, SplitBehavior behavior, Emit emit) {
  if (behavior == SplitBehavior::kIsolated) return EmitParts(piece, parts, emit);
  const bool backwards = behavior == SplitBehavior::kMergedWithNext,
             contiguous = behavior == SplitBehavior::kContiguous;
  const bool removes = behavior == SplitBehavior::kRemoved;
  if (backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Part> words;
  bool previous = false;
  for (const Part& part : parts) {
    const bool joins = !removes && (contiguous ? part.matches == previous : part.matches && !previous);
    previous = part.matches;
    if (removes && part.matches) continue;
    if (words.empty() || !joins) {
      words.push_back(part);
    } else if (backwards) {
      words.back().begin = part.begin;
    } else {
      words.back().end = part.end;
    }
  }
  if (backwards) std::reverse(words.begin(), words.end());
  return EmitParts(piece, words, emit);
}

// Returns the runs of characters for which `kind_of` returns the same number. Characters of number 0 are left out. Each
// character of a negative number is a run of its own, with Part::matches set.
template <class Function>
std::vector<Part> RunsOf(absl::string_view text, const Function& kind_of) {
  std::vector<Part> runs;
  size_t at = 0;
  int last = 0;
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    const int kind = kind_of(c);
    if (kind < 0 || (kind > 0 && kind != last)) runs.push_back({at, at, kind < 0});
    at += character.size();
    if (kind != 0) runs.back().end = at;
    last = kind;
  });
  return runs;
}

// Splits at the characters for which `matches` returns true.
template <class Function>
PreTokenizer SplitAt(Function matches, SplitBehavior behavior) {
  return [matches, behavior](const TextPiece& piece, Emit emit) {
    const auto kind_of = [&](int32_t c) { return matches(c) ? -1 : 1; };
    return EmitSplits(piece, RunsOf(piece.text, kind_of), behavior, emit);
  };
}

// Splits into the runs of RunsOf.
template <class Function>
PreTokenizer SplitRuns(Function kind_of) {
  return [kind_of](const TextPiece& piece, Emit emit) { return EmitParts(piece, RunsOf(piece.text, kind_of), emit); };
}

int BertKind(int32_t c) { return IsSpace(c) ? 0 : EndsWord(c) ? -1 : 1; }

// Splits at the matches of a regular expression, or with `invert`, at what is between them.
PreTokenizer SplitBy(RegularExpression expression, SplitBehavior behavior, bool invert) {
  return [expression = std::move(expression), behavior, invert](const TextPiece& piece, Emit emit) {
    std::vector<Part> parts;
    size_t done = 0;
    WEFT_RETURN_IF_ERROR(expression.ForEachMatch(piece.text, [&](size_t begin, size_t end) {
      if (done < begin) parts.push_back({done, begin, invert});
      parts.push_back({begin, end, !invert});
      done = end;
    }));
    if (done < piece.text.size()) parts.push_back({done, piece.text.size(), invert});
    return EmitSplits(piece, std::move(parts), behavior, emit);
  };
}

absl::StatusOr<SplitBehavior> ReadBehavior(const Json& object) {
  constexpr std::pair<const char*, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  };
  WEFT_ASSIGN_OR_RETURN(const std::string behavior, Get<std::string>(object, "behavior", ""));
  for (const auto& [name, value] : kNames) {
    if (behavior == name) return value;
  }
  if (behavior.empty()) return SplitBehavior::kIsolated;
  return InvalidArgument("behavior: ", behavior, " is not supported");
}

absl::StatusOr<PreTokenizer> ReadSplit(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(object));
  WEFT_ASSIGN_OR_RETURN(const bool invert, Get(object, "invert", false));
  const Json& pattern = Member(Member(object, "pattern"), "Regex");
  const bool gpt2_words = pattern == kGpt2Words && behavior == SplitBehavior::kIsolated && !invert;
  if (gpt2_words) return SplitByteLevel({.alphabet = false});
  WEFT_ASSIGN_OR_RETURN(
      RegularExpression expression,
      pattern.is_string() ? RegularExpression::Create(pattern.get_ref<const std::string&>()) : ReadPattern(object));
  return SplitBy(std::move(expression), behavior, invert);
}

absl::StatusOr<PreTokenizer> ReadByteLevel(const Json& object) {
  ByteLevelWords settings;
  WEFT_ASSIGN_OR_RETURN(settings.prefix_space, Get(object, "add_prefix_space", true));
  WEFT_ASSIGN_OR_RETURN(settings.gpt2_words, Get(object, "use_regex", true));
  return SplitByteLevel(settings);
}

absl::StatusOr<PreTokenizer> ReadDigits(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const bool individual, Get(object, "individual_digits", false));
  return SplitAt(IsNumber, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

absl::StatusOr<PreTokenizer> ReadPunctuation(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(object));
  return SplitAt(EndsWord, behavior);
}

absl::StatusOr<PreTokenizer> ReadWhitespace(const Json& /*object*/) {
  return SplitRuns([](int32_t c) { return IsWordCharacter(c) ? 1 : IsSpace(c) ? 0 : 2; });
}

absl::StatusOr<PreTokenizer> ReadWhitespaceSplit(const Json& /*object*/) {
  return SplitAt(IsSpace, SplitBehavior::kRemoved);
}

absl::StatusOr<PreTokenizer> ReadDelimiter(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, Get<std::string>(object, "delimiter", ""));
  return SplitAt([c = CharacterAt(text, 0).code_point](int32_t other) { return other == c; }, SplitBehavior::kRemoved);
}

absl::StatusOr<PreTokenizer> ReadBert(const Json& /*object*/) { return SplitBertWords(); }

// Replaces spaces by the mark, and puts it before a text that does not begin with it: any text, or only the first.
// `split`: words begin with the mark.
absl::StatusOr<PreTokenizer> ReadMetaspace(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const std::string mark, ReadMark(object));
  WEFT_ASSIGN_OR_RETURN(const PrependScheme scheme, ReadPrependScheme(object));
  WEFT_ASSIGN_OR_RETURN(const bool split, Get(object, "split", true));
  return PreTokenizer([mark, scheme, split](const TextPiece& piece, Emit emit) -> absl::Status {
    std::string text = absl::StrReplaceAll(piece.text, {{" ", mark}});
    const bool prepends = scheme == PrependScheme::kAlways || (scheme == PrependScheme::kFirst && piece.begins);
    if (prepends && !absl::StartsWith(text, mark)) text.insert(0, mark);
    for (size_t begin = 0, end; begin < text.size(); begin = end) {
      end = split ? std::min(text.find(mark, begin + 1), text.size()) : text.size();
      const absl::string_view word = absl::string_view(text).substr(begin, end - begin);
      WEFT_RETURN_IF_ERROR(emit({word, piece.at, piece.begins && begin == 0}));
    }
    return absl::OkStatus();
  });
}

constexpr StepKind<PreTokenizer> kKinds[] = {
    {"BertPreTokenizer", ReadBert}, {"ByteLevel", ReadByteLevel},   {"CharDelimiterSplit", ReadDelimiter},
    {"Digits", ReadDigits},         {"Metaspace", ReadMetaspace},   {"Punctuation", ReadPunctuation},
    {"Split", ReadSplit},           {"Whitespace", ReadWhitespace}, {"WhitespaceSplit", ReadWhitespaceSplit},
};

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

PreTokenizer SplitByteLevel(ByteLevelWords settings) {
  return [settings](const TextPiece& piece, Emit emit) -> absl::Status {
    std::string storage;
    absl::string_view text = piece.text;
    const size_t prefix = settings.prefix_space && text[0] != ' ';
    if (prefix > 0) text = storage = absl::StrCat(" ", text);
    for (size_t begin = 0, end; begin < text.size(); begin = end) {
      end = settings.gpt2_words ? Gpt2WordEnd(text, begin) : text.size();
      const absl::string_view word = text.substr(begin, end - begin);
      const size_t at = piece.at + begin - std::min(begin, prefix);
      const bool begins = piece.begins && begin == 0;
      if (settings.alphabet) {
        WEFT_RETURN_IF_ERROR(emit({ToByteAlphabet(word), at, begins}));
      } else {
        WEFT_RETURN_IF_ERROR(emit({word, at, begins}));
      }
    }
    return absl::OkStatus();
  };
}

bool EndsWord(int32_t c) { return IsPunctuation(c) || (c > ' ' && c < 0x7F && !IsLetter(c) && !IsNumber(c)); }

std::vector<absl::string_view> BertWords(absl::string_view text) {
  std::vector<absl::string_view> words;
  for (const Part& run : RunsOf(text, BertKind)) words.push_back(text.substr(run.begin, run.end - run.begin));
  return words;
}

PreTokenizer SplitBertWords() { return SplitRuns(BertKind); }

absl::StatusOr<std::string> ReadMark(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(std::string mark, Get<std::string>(object, "replacement", "\u2581"));
  if (mark.empty()) return InvalidArgument("replacement: it is empty");
  return mark;
}

absl::StatusOr<PrependScheme> ReadPrependScheme(const Json& object) {
  WEFT_ASSIGN_OR_RETURN(const bool prepends, Get(object, "add_prefix_space", true));
  WEFT_ASSIGN_OR_RETURN(const std::string scheme,
                        Get<std::string>(object, "prepend_scheme", prepends ? "always" : "never"));
  if (scheme == "always" && prepends) return PrependScheme::kAlways;
  if (scheme == "first" && prepends) return PrependScheme::kFirst;
  if (scheme == "never") return PrependScheme::kNever;
  return InvalidArgument("prepend_scheme: ", scheme, prepends ? "" : " beside add_prefix_space: false",
                         " is not supported");
}

absl::StatusOr<RegularExpression> ReadPattern(const Json& object) {
  const Json& pattern = Member(object, "pattern");
  WEFT_ASSIGN_OR_RETURN(const std::string text, Get<std::string>(pattern, "String", ""));
  WEFT_ASSIGN_OR_RETURN(const std::string expression, Get<std::string>(pattern, "Regex", ""));
  if (text.empty() == expression.empty()) return InvalidArgument("pattern: ", pattern.dump(), " is not supported");
  return text.empty() ? RegularExpression::Create(expression) : RegularExpression::Literal(text);
}

absl::StatusOr<PreTokenizer> ReadPreTokenizer(const Json& object) { return ReadStep(kKinds, object); }

}  // namespace weft
