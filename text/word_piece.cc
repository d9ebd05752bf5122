// WordPiece keeps two tables of pieces: for the beginning of a word, and for the rest of it. At each offset in a word,
// the longest piece that matches wins.
#include "weft/text/word_piece.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/core/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

// Counts the characters of a UTF-8 text: all bytes except continuation bytes.
int64_t CharacterCount(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

}  // namespace

WordPiece::WordPiece(WordPieceModel model) : model_(std::move(model)) {
  for (int32_t id = 0; id < model_.vocabulary.size(); ++id) {
    absl::string_view token = model_.vocabulary.token(id);
    longest_piece_ = std::max(longest_piece_, token.size());
    first_.emplace(token, id);
    if (absl::ConsumePrefix(&token, model_.prefix) && !token.empty()) later_.emplace(token, id);
  }
  SetSpecial(model_.special);
  SetFormat(model_.single, model_.pair);
}

absl::StatusOr<std::unique_ptr<WordPiece>> WordPiece::Create(WordPieceModel model) {
  const std::optional<int32_t> unknown = model.vocabulary.Find(model.unknown);
  if (!unknown.has_value()) {
    return InvalidArgument("the vocabulary does not have ", Quoted(model.unknown));
  }
  if (model.max_word_length > kMaxWordLength) {
    return InvalidArgument("max_input_chars_per_word is ", model.max_word_length, ", more than ", kMaxWordLength);
  }
  auto tokenizer = std::unique_ptr<WordPiece>(new WordPiece(std::move(model)));
  tokenizer->unknown_ = *unknown;
  return tokenizer;
}

absl::StatusOr<std::vector<int32_t>> WordPiece::Encode(absl::string_view text) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::vector<int32_t> ids;
  for (const std::string& word : BertWords(text, model_.normalizer)) AppendWord(word, &ids);
  return ids;
}

void WordPiece::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  if (CharacterCount(word) > model_.max_word_length) return ids->push_back(unknown_);
  const size_t before = ids->size();
  for (size_t begin = 0; begin < word.size();) {
    const auto& pieces = begin == 0 ? first_ : later_;
    size_t end = std::min(word.size(), begin + longest_piece_);
    auto found = pieces.end();
    for (; end > begin; --end) {
      found = pieces.find(word.substr(begin, end - begin));
      if (found != pieces.end()) break;
    }
    if (end == begin) {  // no piece matches the rest, so the whole word is unknown
      ids->resize(before);
      return ids->push_back(unknown_);
    }
    ids->push_back(found->second);
    begin = end;
  }
}

std::string WordPiece::Join(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    absl::string_view token = model_.vocabulary.token(id);
    const bool joined = token.size() > model_.prefix.size() && absl::ConsumePrefix(&token, model_.prefix);
    absl::StrAppend(&text, joined || text.empty() ? "" : " ", token);
  }
  return text;
}

absl::StatusOr<Vocabulary> ReadVocabularyText(absl::string_view text) {
  if (!text.empty()) text = absl::StripSuffix(text, "\n");
  Vocabulary vocabulary;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view token = absl::StripSuffix(line, "\r");
    const std::string location = absl::StrCat("line ", vocabulary.size() + 1);
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(token), location));
    if (token.empty()) return InvalidArgument(location, ": the token is empty");
    WEFT_RETURN_IF_ERROR(Annotate(vocabulary.Add(std::string(token)), location));
  }
  return vocabulary;
}

WordPieceModel BertModel(Vocabulary vocabulary) {
  WordPieceModel model = {.special = UsualSpecialTokens(vocabulary)};
  const std::optional<int32_t> classification = vocabulary.Find("[CLS]"), separator = vocabulary.Find("[SEP]");
  if (classification.has_value() && separator.has_value()) {
    model.single = BertSingle(*classification, *separator);
    model.pair = BertPair(*classification, *separator);
  }
  model.vocabulary = std::move(vocabulary);
  return model;
}

}  // namespace weft
