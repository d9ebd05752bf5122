#include "weft/inference/text_head.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/status.h"
#include "weft/inference/correlation.h"
#include "weft/text/lines.h"

namespace weft {

TextHead::TextHead(const OpenedBert& bert, const ClassifierOptions& options)
    : Classifier(bert.model.labels, bert.model.scores, bert.model.task),
      options_(options),
      pairs_(bert.model.pairs || options.pairs) {}

absl::StatusOr<std::unique_ptr<TextHead>> TextHead::Create(OpenedBert bert, const ClassifierOptions& options) {
  auto head = std::unique_ptr<TextHead>(new TextHead(bert, options));
  const TextTask task = head->task();
  const auto classes = static_cast<int64_t>(head->labels().size());
  if (classes == 0) return absl::UnimplementedError(absl::StrCat(bert.path, ": the model has no classifier"));
  if (task == TextTask::kTokens && head->pairs_) {
    return InvalidArgument(bert.path, ": the model labels words, and takes no pairs of texts");
  }
  const auto record = [task, classes](const Bert& model, Var tokens, const BertInputs& inputs) {
    const Var hidden = model.Encode(tokens, inputs);
    return task == TextTask::kTokens ? model.Classify(hidden, classes)
                                     : model.ClassifyText(hidden, inputs.lengths, classes);
  };
  bert.tokenizer->ReadSpecial(options.special_tokens);
  const BertEncoderOptions encoder = {.runtime = options.runtime, .truncate = options.truncate, .pairs = head->pairs_};
  WEFT_ASSIGN_OR_RETURN(head->encoder_, BertEncoder::Create(std::move(bert), encoder, record));
  return head;
}

// Returns the text, both texts of a pair, or the words of a line.
absl::StatusOr<std::vector<std::string>> TextHead::TextsOf(absl::string_view line) const {
  if (task() == TextTask::kTokens) {
    return std::vector<std::string>(absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty()));
  }
  if (!pairs_) return std::vector<std::string>{std::string(line)};
  std::vector<std::string> texts = absl::StrSplit(line, '\t');
  if (texts.size() == 2) return texts;
  return InvalidArgument("there are ", texts.size() - 1, " tabs; wanted a text, a tab and a second text");
}

absl::StatusOr<WordsInput> TextHead::InputOf(absl::Span<const std::string> texts) const {
  const EncodeLimits limits = {encoder_->config().context, options_.truncate};
  const Tokenizer& tokenizer = encoder_->tokenizer();
  if (task() == TextTask::kTokens) return texts.empty() ? WordsInput() : InputOfWords(texts, tokenizer, limits);
  WordsInput result;
  if (pairs_) {
    WEFT_ASSIGN_OR_RETURN(result.input, PairInput(texts[0], texts[1], tokenizer, limits));
  } else {  // an empty text has a result, too, if the tokenizer adds special tokens
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder_->Tokens(texts[0]));
    result.input = tokenizer.Wrap(ids);
  }
  if (result.input.ids.empty()) {
    return InvalidArgument("the text has no tokens, and the tokenizer adds no special tokens to it");
  }
  return result;
}

absl::StatusOr<std::vector<ClassifierResult>> TextHead::Run(std::vector<std::vector<std::string>> texts,
                                                            absl::Span<const WordsInput> inputs) {
  std::vector<ModelInput> model_inputs;
  std::vector<size_t> indices;  // of the texts that have tokens
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].input.ids.empty()) continue;
    model_inputs.push_back(inputs[i].input);
    indices.push_back(i);
  }
  std::vector<ClassifierResult> results(inputs.size());
  const auto take = [&](size_t input, absl::Span<const float> values) {
    ClassifierResult& result = results[indices[input]];
    if (task() != TextTask::kTokens) {
      result.values.emplace_back(values.begin(), values.end());
      return;
    }
    for (const int32_t first : inputs[indices[input]].first) {
      std::vector<float>& row = result.values.emplace_back();
      if (first < 0) continue;
      const absl::Span<const float> logits =
          values.subspan(static_cast<size_t>(first) * labels().size(), labels().size());
      row.assign(logits.begin(), logits.end());
    }
  };
  WEFT_RETURN_IF_ERROR(encoder_->RunInputs(model_inputs, take));
  if (task() != TextTask::kTokens) return results;
  for (size_t i = 0; i < results.size(); ++i) results[i].words = std::move(texts[i]);
  return results;
}

absl::Status TextHead::Classify(const std::vector<std::string>& files, Take take) {
  LineReader reader(files);
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const TextLines lines,
                          reader.Next(kBatchesAtOnce * static_cast<size_t>(options_.runtime.batch)));
    if (lines.lines.empty()) return absl::OkStatus();
    std::vector<std::vector<std::string>> texts;
    std::vector<WordsInput> inputs;
    absl::Status error;
    for (size_t i = 0; i < lines.lines.size() && error.ok(); ++i) {
      absl::StatusOr<std::vector<std::string>> line = TextsOf(lines.lines[i]);
      absl::StatusOr<WordsInput> input = line.ok() ? InputOf(*line) : line.status();
      if (!input.ok()) {
        error = Annotate(input.status(), lines.Location(i));
        break;
      }
      texts.push_back(*std::move(line));
      inputs.push_back(*std::move(input));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<ClassifierResult> results, Run(std::move(texts), inputs));
    take(results);
    WEFT_RETURN_IF_ERROR(error);
  }
}

absl::StatusOr<std::vector<ClassifierResult>> TextHead::Run(const LabelledExamples& examples) {
  std::vector<std::vector<std::string>> texts;
  std::vector<WordsInput> inputs;
  for (size_t i = 0; i < examples.examples.size(); ++i) {
    absl::StatusOr<WordsInput> input = InputOf(examples.examples[i].texts);
    if (!input.ok()) return Annotate(input.status(), examples.Location(i));
    texts.push_back(examples.examples[i].texts);
    inputs.push_back(*std::move(input));
  }
  return Run(std::move(texts), inputs);
}

// Whether examples are pairs follows from the model, and not from the options.
absl::StatusOr<LabelledExamples> TextHead::Read(const std::vector<std::string>& files) const {
  LabelledDataOptions data = options_.data;
  data.task = task() == TextTask::kTokens || !pairs_ ? task() : TextTask::kPair;
  if (!pairs_ && !data.text_pair_column.empty()) {
    return InvalidArgument("text-pair-column: the model takes no pairs of texts");
  }
  return ReadLabelledExamples(absl::MakeConstSpan(files), data);
}

absl::StatusOr<ClassScore> TextHead::Evaluate(const std::vector<std::string>& files, const std::string& /*labels*/) {
  WEFT_RETURN_IF_ERROR(CheckOneLabel(scores()));
  WEFT_ASSIGN_OR_RETURN(const LabelledExamples examples, Read(files));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> ids, LabelIds(examples, labels()));
  WEFT_ASSIGN_OR_RETURN(std::vector<ClassifierResult> results, Run(examples));
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < results.size(); ++i) {
    logits.push_back(std::move(results[i].values[0]));
    classes.push_back(ids[i][0]);
  }
  return ScoreClasses(logits, classes);
}

absl::StatusOr<TaggingResult> TextHead::EvaluateTags(const std::vector<std::string>& files) {
  WEFT_ASSIGN_OR_RETURN(const LabelledExamples examples, Read(files));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> ids, LabelIds(examples, labels()));
  WEFT_ASSIGN_OR_RETURN(std::vector<ClassifierResult> results, Run(examples));
  TaggingResult score;
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<std::string> right, predicted;
    for (size_t word = 0; word < ids[i].size(); ++word) {
      std::vector<float>& row = results[i].values[word];
      if (row.empty()) continue;
      right.push_back(examples.examples[i].labels[word]);
      predicted.push_back(labels()[static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin())]);
      logits.push_back(std::move(row));
      classes.push_back(ids[i][word]);
    }
    score.tags.Add(right, predicted);
  }
  score.loss = ScoreClasses(logits, classes).loss;
  return score;
}

absl::StatusOr<RegressionResult> TextHead::EvaluateNumbers(const std::vector<std::string>& files) {
  if (labels().size() > 1) {
    return InvalidArgument("the model predicts ", labels().size(), " numbers, but the examples have one each");
  }
  WEFT_ASSIGN_OR_RETURN(const LabelledExamples examples, Read(files));
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> numbers, LabelNumbers(examples));
  WEFT_ASSIGN_OR_RETURN(const std::vector<ClassifierResult> results, Run(examples));
  RegressionResult score = {.count = static_cast<int64_t>(numbers.size())};
  std::vector<double> right(numbers.begin(), numbers.end()), predicted;
  for (size_t i = 0; i < results.size(); ++i) {
    predicted.push_back(static_cast<double>(results[i].values[0][0]));
    score.loss += (predicted[i] - right[i]) * (predicted[i] - right[i]);
  }
  score.loss /= static_cast<double>(score.count);
  score.pearson = PearsonCorrelation(right, predicted);
  score.spearman = SpearmanCorrelation(right, predicted);
  return score;
}

}  // namespace weft
