// A LineTranslator adds the tokenizers of both sides to a Translator, which knows ids only.
#include "weft/inference/generate/line_translator.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/formats/weights.h"
#include "weft/inference/generate/translation_lexicon.h"
#include "weft/text/tokenizers/text_stream.h"

namespace weft {

LineTranslator::LineTranslator(const LineTranslatorOptions& options, OpenedTransformer opened)
    : options_(options), opened_(std::move(opened)) {}

absl::StatusOr<std::unique_ptr<LineTranslator>> LineTranslator::Create(const std::string& path,
                                                                       OpenedTransformer opened,
                                                                       const LineTranslatorOptions& options) {
  auto translator = std::unique_ptr<LineTranslator>(new LineTranslator(options, std::move(opened)));
  const PublishedTransformer& model = translator->opened_.model;
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, model.weights, &translator->parameters_));
  WEFT_ASSIGN_OR_RETURN(translator->translator_, Translator::Create(model.config, &translator->parameters_,
                                                                    options.runtime.For(model.weights.dtype())));
  WEFT_RETURN_IF_ERROR(
      translator->translator_->Translate({}, translator->options_.translate).status());  // checks the options
  if (!options.shortlist.empty()) {
    WEFT_ASSIGN_OR_RETURN(translator->lexicon_, ReadModelLexicon(translator->opened_, options.shortlist));
  }
  return translator;
}

absl::StatusOr<std::vector<int32_t>> LineTranslator::Encode(absl::string_view line) const {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, opened_.source->Encode(line));
  if (ids.empty()) return ids;
  const std::vector<int32_t>&before = opened_.before, &after = opened_.after;
  WEFT_RETURN_IF_ERROR(FitContext(before.size() + after.size(), opened_.model.config.context, options_.truncate, &ids));
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

absl::StatusOr<std::vector<std::vector<Hypothesis>>> LineTranslator::Translate(
    absl::Span<const std::vector<int32_t>> sources) {
  std::vector<std::vector<int32_t>> nonempty, shortlists;
  for (const std::vector<int32_t>& source : sources) {
    if (source.empty()) continue;
    nonempty.push_back(source);
    if (!lexicon_.has_value()) continue;
    std::vector<int32_t>& shortlist =
        shortlists.emplace_back(lexicon_->Shortlist(source, options_.shortlist_translations));
    if (opened_.source == opened_.target) shortlist.insert(shortlist.end(), source.begin(), source.end());
    if (shortlist.empty()) shortlist = options_.translate.search.end;
  }
  WEFT_ASSIGN_OR_RETURN(auto translations, translator_->Translate(nonempty, options_.translate, shortlists));
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

}  // namespace weft
