#include "weft/inference/translation_lexicon.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/formats/token_texts.h"
#include "weft/text/lexicon/learn_lexicon.h"
#include "weft/text/lines.h"
#include "weft/text/sentence_pairs.h"

namespace weft {
namespace {

// The tokenizer of a bare list of tokens gives their texts. Other tokenizers decode tokens, so that their spelling,
// such as "Ġthe" for " the", is only in their file.
absl::StatusOr<std::vector<std::string>> Spelling(const OpenedTransformer& model, const Tokenizer& tokenizer) {
  if (model.sources_end) return TokenTexts(model.folder);
  std::vector<std::string> texts;
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    WEFT_ASSIGN_OR_RETURN(texts.emplace_back(), tokenizer.DecodeWithSpecial({id}));
  }
  return texts;
}

absl::StatusOr<LexiconVocabularies> VocabulariesOf(const OpenedTransformer& model) {
  LexiconVocabularies vocabularies;
  WEFT_ASSIGN_OR_RETURN(vocabularies.source, Spelling(model, *model.source));
  WEFT_ASSIGN_OR_RETURN(vocabularies.target, Spelling(model, *model.target));
  return vocabularies;
}

}  // namespace

absl::StatusOr<Lexicon> ReadModelLexicon(const OpenedTransformer& model, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const LexiconVocabularies vocabularies, VocabulariesOf(model));
  return ReadLexicon(path, vocabularies);
}

absl::StatusOr<LearntLexicon> LearnModelLexicon(const OpenedTransformer& model, const LexiconTexts& texts,
                                                const std::string& path, IfThere if_there) {
  if (if_there == IfThere::kFail && Exists(path)) return absl::AlreadyExistsError(absl::StrCat(path, " exists"));
  WEFT_RETURN_IF_ERROR(CheckWritable(path));
  WEFT_ASSIGN_OR_RETURN(const LexiconVocabularies vocabularies, VocabulariesOf(model));
  WEFT_ASSIGN_OR_RETURN(const ParallelText text, ReadParallelText(texts.source, texts.target));
  const auto encode = [](const Tokenizer& tokenizer) {
    return [&](absl::string_view line) { return tokenizer.Encode(line); };
  };
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenIds> sources, EncodeAll(text.source, encode(*model.source)));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenIds> targets, EncodeAll(text.target, encode(*model.target)));
  std::vector<SentencePair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty() && !targets[i].empty()) pairs.push_back({std::move(sources[i]), std::move(targets[i])});
  }
  const auto vocabulary = static_cast<int64_t>(vocabularies.source.size());
  const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = vocabulary, .best = texts.best});
  WEFT_RETURN_IF_ERROR(WriteLexicon(path, lexicon, vocabularies, if_there));
  LearntLexicon learnt = {.pairs = static_cast<int64_t>(pairs.size()),
                          .translations = static_cast<int64_t>(lexicon.of_none.size())};
  for (const auto& entries : lexicon.translations) learnt.translations += static_cast<int64_t>(entries.size());
  return learnt;
}

}  // namespace weft
