// A LineTranslator adds the tokenizers of both sides to a Translator, which knows ids only.
#include "weft/inference/generate/line_translator.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/weights.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/text/tokenizers/text_stream.h"

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

// Returns an error unless a lexicon may be written to `path`. A lexicon never replaces its texts or a model's files.
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

absl::StatusOr<std::unique_ptr<LineTranslator>> LineTranslator::Create(OpenedTransformer opened,
                                                                       const LineTranslatorOptions& options) {
  auto translator = std::unique_ptr<LineTranslator>(new LineTranslator(options, std::move(opened)));
  const PublishedTransformer& model = translator->opened_.model;
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(translator->opened_.path, model.weights, &translator->parameters_));
  WEFT_ASSIGN_OR_RETURN(translator->translator_,
                        Translator::Create(model.config, &translator->parameters_, options.runtime));
  WEFT_RETURN_IF_ERROR(
      translator->translator_->Translate({}, translator->options_.search).status());  // checks the options
  if (!options.shortlist.empty()) {
    WEFT_ASSIGN_OR_RETURN(const LexiconVocabularies vocabularies, VocabulariesOf(translator->opened_));
    WEFT_ASSIGN_OR_RETURN(translator->lexicon_, ReadLexicon(options.shortlist, vocabularies));
  }
  return translator;
}

absl::StatusOr<std::vector<int32_t>> EncodeSource(const OpenedTransformer& model, absl::string_view line,
                                                  bool truncate) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, model.source->Encode(line));
  if (ids.empty()) return ids;
  const std::vector<int32_t>&before = model.before, &after = model.after;
  WEFT_RETURN_IF_ERROR(FitContext(before.size() + after.size(), model.model.config.context, truncate, &ids));
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

absl::StatusOr<std::vector<std::vector<Hypothesis>>> LineTranslator::Translate(
    absl::Span<const std::vector<int32_t>> sources, const BeamSearchOptions& search) {
  std::vector<std::vector<int32_t>> nonempty, shortlists;
  for (const std::vector<int32_t>& source : sources) {
    if (source.empty()) continue;
    nonempty.push_back(source);
    if (!lexicon_.has_value()) continue;
    std::vector<int32_t>& shortlist =
        shortlists.emplace_back(lexicon_->Shortlist(source, options_.shortlist_translations));
    if (opened_.source == opened_.target) shortlist.insert(shortlist.end(), source.begin(), source.end());
    if (shortlist.empty()) shortlist = search.end;
  }
  WEFT_ASSIGN_OR_RETURN(auto translations, translator_->Translate(nonempty, search, shortlists));
  std::vector<std::vector<Hypothesis>> results;
  size_t next = 0;
  for (const std::vector<int32_t>& source : sources) {
    results.push_back(source.empty() ? std::vector<Hypothesis>{{}} : std::move(translations[next++]));
  }
  return results;
}

absl::StatusOr<std::vector<std::string>> LineTranslator::TranslateToText(
    absl::Span<const std::vector<int32_t>> sources) {
  WEFT_ASSIGN_OR_RETURN(const auto translations, Translate(sources));
  std::vector<std::string> lines;
  for (const std::vector<Hypothesis>& best : translations) {
    WEFT_ASSIGN_OR_RETURN(lines.emplace_back(), Text(best[0]));
  }
  return lines;
}

absl::StatusOr<std::string> LineTranslator::Text(const Hypothesis& translation) const {
  TextStream stream(*opened_.target, {});
  std::string text;
  for (const int32_t token : translation.tokens) {
    if (token >= opened_.target->vocabulary_size()) continue;  // the table's rows beyond the vocabulary are padding
    WEFT_ASSIGN_OR_RETURN(const std::string more, stream.Add(token));
    text += more;
  }
  text += stream.Finish();
  return absl::StrReplaceAll(text, {{"\n", " "}, {"\r", " "}, {"\t", " "}});
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
  const std::unique_ptr<Tokenizer> own = model.target->ForTargets();
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenIds> targets,
                        EncodeAll(text.target, encode(own != nullptr ? *own : *model.target)));
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
