#include "weft/train/jobs/classify_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/text/data/classifier_input.h"
#include "weft/train/jobs/job.h"

namespace weft {

Hyperparameters ClassifyData::Table() {
  Hyperparameters table = {
      ChoiceRow<TextTask>("task",
                          "what to learn: a label for a text or for a pair of texts, a label for each word, or a "
                          "number for a text or pair",
                          kTextTaskNames, &options_.task),
      {"data",
       "labelled texts, one a line: a text, a tab and its label; or files of the other formats; commas separate paths",
       &data_path_,
       {.may_change = true, .is_path_list = true, .required = true}},
      {"validation",
       "labelled texts for validation; without them, every tenth text of the data",
       &validation_path_,
       {.may_change = true, .is_path_list = true}},
  };
  for (Hyperparameter& row : LabelledDataTable(&options_)) table.push_back(std::move(row));
  table.push_back({"truncate", "cut texts that are longer than the context, instead of failing", &truncate_});
  return table;
}

absl::Status ClassifyData::Read() {
  WEFT_ASSIGN_OR_RETURN(train_text_, ReadLabelledExamples(data_path_, options_));
  if (validation_path_.empty()) {
    validation_text_ = TakeEveryTenth(&train_text_);
  } else {
    WEFT_ASSIGN_OR_RETURN(validation_text_, ReadLabelledExamples(validation_path_, options_));
  }
  labels_ = task() == TextTask::kRegression ? std::vector<std::string>{"LABEL_0"} : LabelNames(train_text_);
  return absl::OkStatus();
}

std::string ClassifyData::text() const {
  const char* const between = task() == TextTask::kTokens ? " " : "\n";
  return absl::StrJoin(train_text_.examples, "\n", [&](std::string* text, const LabelledExample& example) {
    absl::StrAppend(text, absl::StrJoin(example.texts, between));
  });
}

absl::StatusOr<ClassifyExamples> ClassifyData::Encode(const LabelledExamples& from, const Tokenizer& tokenizer,
                                                      int64_t context) const {
  ClassifyExamples to;
  if (task() == TextTask::kRegression) {
    WEFT_ASSIGN_OR_RETURN(to.numbers, LabelNumbers(from));
  } else {
    WEFT_ASSIGN_OR_RETURN(to.labels, LabelIds(from, labels_));
  }
  const EncodeLimits limits = {context, truncate_};
  for (size_t i = 0; i < from.examples.size(); ++i) {
    const std::vector<std::string>& texts = from.examples[i].texts;
    absl::StatusOr<ModelInput> input;
    if (task() == TextTask::kTokens) {
      absl::StatusOr<WordsInput> words = InputOfWords(texts, tokenizer, limits);
      if (words.ok()) to.first_tokens.push_back(std::move(words->first));
      input = words.ok() ? absl::StatusOr<ModelInput>(std::move(words->input)) : words.status();
    } else {
      input = pairs() ? PairInput(texts[0], texts[1], tokenizer, limits) : TextInput(texts[0], tokenizer, limits);
    }
    if (!input.ok()) return Annotate(input.status(), from.Location(i));
    to.tokens.push_back(std::move(input->ids));
    if (pairs()) to.segments.push_back(std::move(input->segments));
  }
  return to;
}

absl::Status ClassifyData::Encode(const Tokenizer& tokenizer, int64_t context) {
  WEFT_ASSIGN_OR_RETURN(train_, Encode(train_text_, tokenizer, context));
  WEFT_ASSIGN_OR_RETURN(validation_, Encode(validation_text_, tokenizer, context));
  return absl::OkStatus();
}

// The fingerprint of labelled texts is that of earlier versions, so that their runs can be resumed.
std::string ClassifyData::Fingerprint() const {
  std::vector<int32_t> labels;
  for (const std::vector<int32_t>& each : train_.labels) labels.insert(labels.end(), each.begin(), each.end());
  std::string fingerprint = weft::Fingerprint<int32_t>(labels, absl::StrJoin(labels_, "\t"));
  for (const auto* rows : {&train_.tokens, &train_.segments, &train_.first_tokens}) {
    for (const std::vector<int32_t>& row : *rows) fingerprint = weft::Fingerprint<int32_t>(row, fingerprint);
  }
  return train_.numbers.empty() ? fingerprint : weft::Fingerprint<float>(train_.numbers, fingerprint);
}

}  // namespace weft
