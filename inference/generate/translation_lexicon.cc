#include "weft/inference/generate/translation_lexicon.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/formats/token_texts.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// The tokenizer of a bare list of tokens gives their texts. Other tokenizers decode tokens, so that their spelling,
// such as "Ġthe" for " the", is only in their file.
absl::StatusOr<std::vector<std::string>> Spelling(const OpenedTransformer& model, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  if (!model.lists) {
    WEFT_ASSIGN_OR_RETURN(texts, TokenTexts(model.folder));
    if (static_cast<int64_t>(texts.size()) >= tokenizer.vocabulary_size()) return texts;
    return InvalidArgument(model.folder, ": the tokenizer has ", tokenizer.vocabulary_size(),
                           " tokens, but its file spells ", texts.size());
  }
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) texts.push_back(tokenizer.TokenText(id));
  return texts;
}

absl::StatusOr<LexiconVocabularies> VocabulariesOf(const OpenedTransformer& model) {
  LexiconVocabularies vocabularies;
  WEFT_ASSIGN_OR_RETURN(vocabularies.source, Spelling(model, *model.source));
  vocabularies.target = vocabularies.source;
  if (model.target != model.source) {
    WEFT_ASSIGN_OR_RETURN(vocabularies.target, Spelling(model, *model.target));
  }
  return vocabularies;
}

// Returns AlreadyExists if `path` exists and `if_there` is kFail. Returns InvalidArgument if `path` is one of the
// texts, a file in the model's folder, or not a regular file. A lexicon never replaces these.
absl::Status CheckOutput(const OpenedTransformer& model, const LexiconTexts& texts, const std::string& path,
                         IfThere if_there) {
  if (!Exists(path)) return absl::OkStatus();
  if (if_there == IfThere::kFail) return absl::AlreadyExistsError(absl::StrCat(path, " exists, and is not replaced"));
  std::error_code error;
  const fs::path parent = fs::absolute(path, error).parent_path();
  if (!fs::is_regular_file(fs::symlink_status(path, error)) || fs::equivalent(path, texts.source, error) ||
      fs::equivalent(path, texts.target, error) || fs::equivalent(parent, model.folder, error)) {
    return InvalidArgument(path, " is not replaced: it is one of the texts, in the model's folder, or no regular file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Lexicon> ReadModelLexicon(const OpenedTransformer& model, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const LexiconVocabularies vocabularies, VocabulariesOf(model));
  return ReadLexicon(path, vocabularies);
}

absl::StatusOr<LearntLexicon> LearnModelLexicon(const OpenedTransformer& model, const LexiconTexts& texts,
                                                const std::string& path, IfThere if_there) {
  WEFT_RETURN_IF_ERROR(CheckOutput(model, texts, path, if_there));
  WEFT_RETURN_IF_ERROR(CheckWritable(path));
  WEFT_ASSIGN_OR_RETURN(const LexiconVocabularies vocabularies, VocabulariesOf(model));
  WEFT_ASSIGN_OR_RETURN(const ParallelText text, ReadParallelText(texts.source, texts.target));
  const auto encode = [](const Tokenizer& tokenizer) {
    return [&](absl::string_view line) { return tokenizer.Encode(line); };
  };
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenIds> sources, EncodeAll(text.source, encode(*model.source)));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenIds> targets, EncodeAll(text.target, encode(*model.target)));
  const auto fits = [](const TokenIds& tokens) { return !tokens.empty() && tokens.size() <= kMaxLexiconTokens; };
  std::vector<SentencePair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (fits(sources[i]) && fits(targets[i])) pairs.push_back({std::move(sources[i]), std::move(targets[i])});
  }
  if (pairs.empty()) {
    return InvalidArgument(texts.source, " and ", texts.target, ": none of the ", sources.size(),
                           " pairs of lines has 1 .. ", kMaxLexiconTokens, " tokens on both sides");
  }
  const auto vocabulary = static_cast<int64_t>(vocabularies.source.size());
  const Lexicon lexicon =
      LearnLexicon(pairs, {.source_vocabulary = vocabulary, .max_translations = texts.max_translations});
  LearntLexicon learnt = {.pairs = static_cast<int64_t>(pairs.size())};
  learnt.left_out = static_cast<int64_t>(sources.size()) - learnt.pairs;
  WEFT_ASSIGN_OR_RETURN(learnt.translations, WriteLexicon(path, lexicon, vocabularies, if_there));
  return learnt;
}

}  // namespace weft
