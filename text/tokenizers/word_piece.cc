// WordPiece keeps two tables of pieces: for the beginning of a word, and for the rest of it. At each offset in a word,
// the longest piece that matches wins.
#include "weft/text/tokenizers/word_piece.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

Pipeline BertPipeline(const WordPieceModel& model) {
  return {.normalizers = {NormalizeForBert(model.normalizer)},
          .pre_tokenizers = {SplitBertWords()},
          .decoders = std::vector<Decoder>{JoinWordPieces(model.prefix, /*clean_up=*/true)}};
}

}  // namespace

WordPiece::WordPiece(WordPieceModel model)
    : PipelineTokenizer(model.pipeline.has_value() ? *model.pipeline : BertPipeline(model)), model_(std::move(model)) {
  for (int32_t id = 0; id < model_.vocabulary.size(); ++id) {
    absl::string_view token = model_.vocabulary.token(id);
    if (model_.vocabulary.Find(token) != id) continue;  // no ordinary text becomes this token
    longest_piece_ = std::max(longest_piece_, token.size());
    if (absl::ConsumePrefix(&token, model_.prefix) && !token.empty()) later_.emplace(token, id);
  }
  SetFormats(model_.special, model_.single, model_.pair);
  AllowCleanUp();
}

absl::StatusOr<std::unique_ptr<WordPiece>> WordPiece::Create(WordPieceModel model) {
  const std::optional<int32_t> unknown = model.vocabulary.Find(model.unknown);
  if (!unknown.has_value() && !model.whole_words) {
    return InvalidArgument("the vocabulary does not have ", Quoted(model.unknown));
  }
  if (model.max_word_length > kMaxWordLength) {
    return InvalidArgument("max_input_chars_per_word is ", model.max_word_length, ", more than ", kMaxWordLength);
  }
  auto tokenizer = std::unique_ptr<WordPiece>(new WordPiece(std::move(model)));
  tokenizer->unknown_ = unknown.value_or(-1);
  return tokenizer;
}

absl::Status WordPiece::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  if (model_.whole_words) {
    const int32_t id = model_.vocabulary.Find(word).value_or(unknown_);
    if (id < 0) return InvalidArgument("the vocabulary has neither ", Quoted(word), " nor ", Quoted(model_.unknown));
    ids->push_back(id);
    return absl::OkStatus();
  }
  if (static_cast<int64_t>(CountCharacters(word)) > model_.max_word_length) {
    ids->push_back(unknown_);
    return absl::OkStatus();
  }
  const size_t before = ids->size();
  for (size_t begin = 0; begin < word.size();) {
    size_t end = std::min(word.size(), begin + longest_piece_);
    std::optional<int32_t> found;
    for (; end > begin; --end) {
      const absl::string_view piece = word.substr(begin, end - begin);
      if (begin == 0) {
        found = model_.vocabulary.Find(piece);
      } else if (const auto later = later_.find(piece); later != later_.end()) {
        found = later->second;
      }
      if (found.has_value()) break;
    }
    if (end == begin) {  // no piece matches the rest, so the whole word is unknown
      ids->resize(before);
      ids->push_back(unknown_);
      break;
    }
    ids->push_back(*found);
    begin = end;
  }
  return absl::OkStatus();
}

WordPieceModel BertModel(Vocabulary vocabulary, const RoleTexts& roles) {
  constexpr std::pair<TokenRole, const char*> kUsualTexts[] = {{&SpecialTokens::padding, "[PAD]"},
                                                               {&SpecialTokens::unknown, "[UNK]"},
                                                               {&SpecialTokens::classification, "[CLS]"},
                                                               {&SpecialTokens::separator, "[SEP]"},
                                                               {&SpecialTokens::mask, "[MASK]"}};
  WordPieceModel model;
  SpecialTokens ids;
  for (const auto& [role, usual] : kUsualTexts) {
    std::string text = usual;
    for (const auto& [of_role, other] : roles) {
      if (of_role == role) text = other.value_or("");
    }
    ids.*role = vocabulary.Find(text);
    if (role == &SpecialTokens::unknown) model.unknown = text;
    if ((ids.*role).has_value() && !text.empty()) model.special.push_back({text, *(ids.*role)});
  }
  if (ids.classification.has_value() && ids.separator.has_value()) {
    model.single = BertSingle(*ids.classification, *ids.separator);
    model.pair = BertPair(*ids.classification, *ids.separator);
  }
  model.vocabulary = std::move(vocabulary);
  return model;
}

}  // namespace weft
