// Byte-level BPE and WordPiece are learnt as in Hugging Face's `tokenizers`: special tokens get the first ids, then the
// alphabet, then the merged tokens. SentencePiece's library learns its own models.
#include "weft/text/learn/learn_tokenizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/learn/count_words.h"
#include "weft/text/learn/learn_sentencepiece.h"
#include "weft/text/learn/learn_vocabulary.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/tokenizers/sentencepiece_model.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/tokenizers/vocabulary.h"
#include "weft/text/tokenizers/word_piece.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Paths = std::vector<std::string>;
using Options = LearnTokenizerOptions;

constexpr char kUnigram[] = "unigram";
constexpr int64_t kMinFrequency = 2, kLimitAlphabet = 1000, kMaxSentenceLength = 4192;

absl::Status NoText() { return InvalidArgument("the texts are empty: there is nothing to learn from"); }

absl::StatusOr<Vocabulary> SpecialVocabulary(const Options& options, std::vector<std::string> otherwise) {
  Vocabulary vocabulary;
  for (const std::string& token : options.special_tokens.value_or(std::move(otherwise))) {
    if (token.empty()) return InvalidArgument("special-tokens: a token is empty");
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(token), "special-tokens"));
    WEFT_RETURN_IF_ERROR(Annotate(vocabulary.Add(token), "special-tokens"));
  }
  return vocabulary;
}

std::vector<AddedToken> ListOf(const Vocabulary& vocabulary) {
  std::vector<AddedToken> list;
  for (int32_t id = 0; id < vocabulary.size(); ++id) list.push_back({vocabulary.token(id), id});
  return list;
}

// Adds the alphabet's tokens to `vocabulary`, except those that are special tokens.
absl::Status AddAlphabet(const std::vector<std::string>& alphabet, const Options& options, Vocabulary* vocabulary) {
  const int32_t special = vocabulary->size();
  for (const std::string& token : alphabet) {
    if (!vocabulary->Find(token)) WEFT_RETURN_IF_ERROR(vocabulary->Add(token));
  }
  if (vocabulary->size() <= options.vocabulary) return absl::OkStatus();
  return InvalidArgument("vocabulary: ", options.vocabulary, " has no room for ", special, " special tokens and ",
                         vocabulary->size() - special, " tokens of the alphabet");
}

// Calls `emit` for each word of `text` that byte-level BPE encodes separately.
void SplitGpt2Words(absl::string_view text, EmitWord emit) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = Gpt2WordEnd(text, begin);
    emit(text.substr(begin, end - begin));
    begin = end;
  }
}

// Learns from the words that `count` returns. Calls `count` only if `options` are right, because it may take long.
absl::StatusOr<BpeModel> LearnBpe(const Options& options, absl::FunctionRef<absl::StatusOr<WordCounts>()> count) {
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, SpecialVocabulary(options, {"<|endoftext|>"}));
  BpeModel model = {.special = ListOf(vocabulary)};
  std::vector<std::string> bytes(256), alphabet;
  for (int byte = 0; byte < 256; ++byte) bytes[byte] = ToByteAlphabet(std::string(1, static_cast<char>(byte)));
  alphabet = bytes;
  absl::c_sort(alphabet);  // UTF-8 sorts as code points do
  WEFT_RETURN_IF_ERROR(AddAlphabet(alphabet, options, &vocabulary));

  WEFT_ASSIGN_OR_RETURN(const WordCounts counts, count());
  SymbolWords words;
  std::vector<int32_t> ids;
  for (const auto& [word, count] : counts.words) {
    ids.clear();
    for (const char byte : word) ids.push_back(*vocabulary.Find(bytes[static_cast<uint8_t>(byte)]));
    words.Add(ids, count);
  }
  const std::vector<LearntMerge> merges = LearnVocabulary(
      std::move(words), {.vocabulary = options.vocabulary, .min_count = options.min_frequency.value_or(kMinFrequency)},
      &vocabulary);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const bool special = id < static_cast<int32_t>(model.special.size());
    WEFT_RETURN_IF_ERROR(
        model.vocabulary.Add(special ? vocabulary.token(id) : *FromByteAlphabet(vocabulary.token(id))));
  }
  for (const LearntMerge& merge : merges) {
    model.merges.emplace_back(model.vocabulary.token(merge.left), model.vocabulary.token(merge.right));
  }
  return model;
}

absl::StatusOr<LearntTokenizer> LearnByteLevel(const Paths& paths, const Options& options) {
  int64_t bytes = 0;
  const auto count = [&]() -> absl::StatusOr<WordCounts> {
    WEFT_ASSIGN_OR_RETURN(WordCounts counts, CountWords(paths, SplitGpt2Words, options.threads));
    if (counts.words.empty()) return NoText();
    bytes = counts.bytes;
    return counts;
  };
  WEFT_ASSIGN_OR_RETURN(const BpeModel model, LearnBpe(options, count));
  return LearntTokenizer{
      .file = {"tokenizer.json", WriteTokenizerJson(model)}, .vocabulary = model.vocabulary.size(), .bytes = bytes};
}

// Returns the most frequent characters of `words`, at most `limit`, in the order of their code points. Of equally
// frequent characters, those with the lowest code points stay.
std::vector<std::string> Alphabet(const WordCounts& counts, int64_t limit) {
  absl::flat_hash_map<int32_t, int64_t> frequency;
  for (const auto& [word, count] : counts.words) {
    ForEachCharacter(word, [&, count = count](int32_t c, absl::string_view) { frequency[c] += count; });
  }
  std::vector<std::pair<int64_t, int32_t>> order;  // by frequency, the highest first
  for (const auto& [character, count] : frequency) order.emplace_back(-count, character);
  absl::c_sort(order);
  order.resize(std::min(order.size(), static_cast<size_t>(limit)));
  std::vector<std::string> alphabet;
  for (const auto& [count, character] : order) alphabet.push_back(ToUtf8(character));
  absl::c_sort(alphabet);
  return alphabet;
}

absl::StatusOr<LearntTokenizer> LearnWordPiece(const Paths& paths, const Options& options) {
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                        SpecialVocabulary(options, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}));
  WordPieceModel model = BertModel(vocabulary);
  if (!vocabulary.Find(model.unknown)) {
    return InvalidArgument("special-tokens: wordpiece needs ", model.unknown, ", the token of unknown words");
  }
  model.special = ListOf(vocabulary);
  model.normalizer.lowercase = options.lowercase.value_or(true);
  model.normalizer.strip_accents = options.strip_accents.value_or(model.normalizer.lowercase);

  const auto split = [&model](absl::string_view text, EmitWord emit) {
    const std::string normalized = BertNormalize(text, model.normalizer);
    for (const absl::string_view word : BertWords(normalized)) emit(word);
  };
  WEFT_ASSIGN_OR_RETURN(const WordCounts counts, CountWords(paths, split, options.threads));
  if (counts.words.empty()) return NoText();
  // Characters that are not in the alphabet are left out of their words, as Hugging Face leaves them out.
  std::vector<std::string> alphabet = Alphabet(counts, options.limit_alphabet.value_or(kLimitAlphabet));
  const absl::flat_hash_set<std::string> characters(alphabet.begin(), alphabet.end());
  std::vector<std::vector<std::string>> pieces;  // of each word
  absl::flat_hash_set<std::string> later;        // the pieces that don't begin a word
  for (const auto& [word, count] : counts.words) {
    std::vector<std::string>& symbols = pieces.emplace_back();
    ForEachCharacter(word, [&, &word = word](int32_t, absl::string_view character) {
      if (!characters.contains(character)) return;
      const bool begins = character.data() == word.data();
      symbols.push_back(absl::StrCat(begins ? "" : model.prefix, character));
      if (!begins) later.insert(symbols.back());
    });
  }
  alphabet.insert(alphabet.end(), later.begin(), later.end());
  std::sort(alphabet.end() - static_cast<std::ptrdiff_t>(later.size()), alphabet.end());
  WEFT_RETURN_IF_ERROR(AddAlphabet(alphabet, options, &vocabulary));

  SymbolWords words;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < pieces.size(); ++i) {
    ids.clear();
    for (const std::string& piece : pieces[i]) ids.push_back(*vocabulary.Find(piece));
    words.Add(ids, counts.words[i].second);
  }
  LearnVocabulary(std::move(words),
                  {.vocabulary = options.vocabulary,
                   .min_count = options.min_frequency.value_or(kMinFrequency),
                   .prefix = model.prefix},
                  &vocabulary);
  model.vocabulary = std::move(vocabulary);
  const int64_t size = model.vocabulary.size();
  return LearntTokenizer{
      .file = {"tokenizer.json", WriteTokenizerJson(model)}, .vocabulary = size, .bytes = counts.bytes};
}

// Reads the lines of all texts, except empty and too long ones.
absl::StatusOr<std::vector<std::string>> ReadLines(const Paths& paths, size_t max_bytes, LearntTokenizer* learnt) {
  constexpr size_t kReadAtOnce = size_t{1} << 20;  // bytes
  std::vector<std::string> lines;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(FileStream stream, FileStream::Open(path));
    std::string text;
    size_t number = 0;
    for (size_t read = 1; read > 0;) {
      WEFT_ASSIGN_OR_RETURN(read, stream.Append(kReadAtOnce, &text));
      learnt->bytes += static_cast<int64_t>(read);
      size_t begin = 0;
      while (begin < text.size()) {
        const size_t end = text.find('\n', begin);
        if (end == text.npos && read > 0) break;  // the rest of the line is not read yet
        const absl::string_view line =
            absl::StripSuffix(absl::string_view(text).substr(begin, end == text.npos ? text.npos : end - begin), "\r");
        begin = end == text.npos ? text.size() : end + 1;
        ++number;
        WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(line), absl::StrCat(stream.name(), ", line ", number)));
        learnt->skipped_lines += line.size() > max_bytes;
        if (!line.empty() && line.size() <= max_bytes) lines.emplace_back(line);
      }
      text.erase(0, begin);
    }
  }
  return lines;
}

absl::StatusOr<LearntTokenizer> LearnPieces(const Paths& paths, const Options& options) {
  LearntTokenizer learnt;
  WEFT_ASSIGN_OR_RETURN(const Vocabulary special, SpecialVocabulary(options, {}));
  if (options.vocabulary < 4 + special.size()) {  // one for the text
    return InvalidArgument("vocabulary: ", options.vocabulary, " has no room for <unk>, <s>, </s> and ", special.size(),
                           " more special tokens");
  }
  const int64_t max_bytes = options.max_sentence_length.value_or(kMaxSentenceLength);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                        ReadLines(paths, static_cast<size_t>(max_bytes), &learnt));
  if (lines.empty()) {
    return learnt.skipped_lines == 0 ? NoText()
                                     : InvalidArgument("max-sentence-length: all ", learnt.skipped_lines,
                                                       " lines are longer than ", max_bytes, " bytes");
  }
  std::map<std::string, std::string> flags = {
      {"model_type", options.kind == kUnigram ? "unigram" : "bpe"},
      {"vocab_size", absl::StrCat(options.vocabulary)},
      {"num_threads", "16"},  // spm_train's default; the sums of a unigram model depend on it
      {"max_sentence_length", absl::StrCat(max_bytes)},
  };
  if (special.size() > 0) flags["control_symbols"] = absl::StrJoin(*options.special_tokens, ",");
  if (options.character_coverage) flags["character_coverage"] = absl::StrCat(*options.character_coverage);
  if (options.normalization) flags["normalization_rule_name"] = *options.normalization;
  if (options.byte_fallback) flags["byte_fallback"] = *options.byte_fallback ? "true" : "false";
  LearntSentencePiece result = LearnSentencePiece(lines, flags);
  if (!result.error.empty()) return InvalidArgument("vocabulary: SentencePiece's trainer says: ", result.error);
  SentencePieceModel model;
  if (const std::string error = model.Load(result.model); !error.empty()) return absl::InternalError(error);
  learnt.vocabulary = model.size();
  learnt.file = {"tokenizer.model", std::move(result.model)};
  return learnt;
}

enum Family : uint8_t { kByteLevel = 1, kWordPiece = 2, kSentencePiece = 4 };

constexpr struct Kind {
  const char* name;
  Family family;
  absl::StatusOr<LearntTokenizer> (*learn)(const Paths& paths, const Options& options);
} kKinds[] = {
    {"byte-level-bpe", kByteLevel, LearnByteLevel},
    {"wordpiece", kWordPiece, LearnWordPiece},
    {kUnigram, kSentencePiece, LearnPieces},
    {"sentencepiece-bpe", kSentencePiece, LearnPieces},
};

// Returns InvalidArgument if `options` has a setting that `kind` lacks.
absl::Status CheckSettings(const Options& options, const Kind& kind) {
  const struct {
    const char* name;
    bool given;
    int families;  // those that have the setting
  } kSettings[] = {
      {"min-frequency", options.min_frequency.has_value(), kByteLevel | kWordPiece},
      {"lowercase", options.lowercase.has_value(), kWordPiece},
      {"strip-accents", options.strip_accents.has_value(), kWordPiece},
      {"limit-alphabet", options.limit_alphabet.has_value(), kWordPiece},
      {"character-coverage", options.character_coverage.has_value(), kSentencePiece},
      {"normalization", options.normalization.has_value(), kSentencePiece},
      {"byte-fallback", options.byte_fallback.has_value(), kSentencePiece},
      {"max-sentence-length", options.max_sentence_length.has_value(), kSentencePiece},
  };
  for (const auto& setting : kSettings) {
    if (!setting.given || (setting.families & kind.family) != 0) continue;
    std::vector<std::string> others;
    for (const Kind& other : kKinds) {
      if ((setting.families & other.family) != 0) others.emplace_back(other.name);
    }
    return InvalidArgument(setting.name, ": the kind ", kind.name, " has no such setting; it belongs to ",
                           absl::StrJoin(others, ", "));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> LearntTokenizerKinds() { return RowNames(kKinds); }

absl::StatusOr<LearntTokenizer> LearnTokenizer(const Paths& paths, const Options& options) {
  const Kind* const kind = FindRow(kKinds, options.kind);
  if (kind == nullptr) {
    return InvalidArgument("kind: '", options.kind, "' is not one of ", absl::StrJoin(LearntTokenizerKinds(), ", "));
  }
  WEFT_RETURN_IF_ERROR(CheckSettings(options, *kind));
  return kind->learn(paths, options);
}

absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const Options& options) {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  return LearnBpe(options, [&]() -> absl::StatusOr<WordCounts> {
    absl::flat_hash_map<absl::string_view, int64_t> counts;
    SplitGpt2Words(text, [&](absl::string_view word) { ++counts[word]; });
    return WordCounts{.words = {counts.begin(), counts.end()}};
  });
}

absl::StatusOr<std::vector<NamedContents>> LearnFromBeginnings(const std::vector<std::string>& paths,
                                                               int64_t vocabulary) {
  if (paths.empty() || absl::c_linear_search(paths, ""))
    return InvalidArgument("tokenizer: one is learnt from files only, not from standard input");
  constexpr size_t kLearnFrom = size_t{16} << 20;  // bytes of text: the vocabulary hardly changes with more
  const size_t from_each = std::max<size_t>(kLearnFrom / paths.size(), 1);
  std::string text;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(FileStream stream, FileStream::Open(path));
    const size_t end = text.size() + from_each;
    for (size_t read = 1; read > 0 && text.size() < end;) {
      WEFT_ASSIGN_OR_RETURN(read, stream.Append(end - text.size(), &text));
    }
    if (text.size() < end) continue;                     // this is the whole file
    text.resize(CharacterBegin(text, text.size() - 1));  // the last character may be incomplete
  }
  WEFT_ASSIGN_OR_RETURN(const BpeModel model, Annotate(LearnByteLevelBpe(text, {.vocabulary = vocabulary}),
                                                       "tokenizer, learnt from the files' beginnings"));
  return {{{"tokenizer.json", WriteTokenizerJson(model)}}};
}

}  // namespace weft
