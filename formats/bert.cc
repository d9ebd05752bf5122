// This file defines PublishedBert::kFamily. The functions read and write an encoder of BERT's kind, with or without
// heads, in Hugging Face's layout. FromRun describes the encoder of a training run.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/bert_type.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

constexpr std::pair<const char*, LabelScores> kProblemTypes[] = {
    {"regression", LabelScores::kNumbers},
    {"multi_label_classification", LabelScores::kSigmoid},
    {"single_label_classification", LabelScores::kSoftmax}};

void RecordModel(const PublishedBert& model, int64_t tokens, bool heads, Tape* tape) {
  const Weights& weights = model.weights;
  const Bert bert(model.config);
  const Var hidden = bert.Encode(TokensInput(tape, "tokens", tokens, model.config.vocabulary));
  const bool next_sentence = weights.Has("cls.seq_relationship.");
  if (!heads || !tape->status().ok()) return;
  if (next_sentence || weights.Has("pooler.dense.")) {
    const Var pooled = bert.Pool(hidden);
    if (next_sentence) bert.NextSentence(pooled);
  }
  if (model.masked()) bert.MaskedTokens(hidden);
  if (weights.Has("qa_outputs.")) bert.AnswerSpan(hidden);
  if (weights.Has("discriminator_predictions.")) bert.Replaced(hidden);
  if (weights.Has("classifier.")) {
    const Tensor* const classifier = weights.Find("classifier.weight");
    const Shape shape = classifier != nullptr ? classifier->type.shape : Shape();
    bert.Classify(hidden, model.choice ? 1 : shape.rank() > 0 ? std::max<int64_t>(shape.dim(0), 1) : 2);
  }
}

ModelSizes SizesOf(const PublishedBert& model) {
  const BertConfig c = WithFeedForward(model.config);
  return {.sizes = {{"C", "width", c.width},
                    {"F", "feed-forward width", c.feed_forward},
                    {"V", "vocabulary", c.vocabulary},
                    {"T", "context", c.context}},
          .context = c.context};
}

// Sets the task, the labels and their scores of a model with a classifier.
absl::Status ReadTask(const Json& json, PublishedBert* bert) {
  const Json names = json.value("architectures", Json());
  const auto is_class = [&](const char* suffix) { return names == Json{ClassName(bert->config, suffix)}; };
  const int64_t classes = bert->weights.Find("classifier.weight")->type.shape.dim(0);
  WEFT_ASSIGN_OR_RETURN(bert->labels, LabelsFromJson(json));
  if (bert->labels.empty()) bert->labels = UsualLabels(classes);
  // Old classifiers of tokens have a pooler, too, which is not used. Without a class, the pooler tells.
  const bool poolable = bert->weights.Has("pooler.dense.") || bert->config.shared_transform ||
                        bert->config.classifier_pooling == Pooling::kMean;
  if (bert->config.shared_transform && !is_class(kTextClass) && !is_class(kTokensClass)) {
    return InvalidArgument("architectures is ", names.dump(), ", wanted ", ClassName(bert->config, kTextClass), " or ",
                           ClassName(bert->config, kTokensClass), ", which have the same tensors");
  }
  if (is_class(kTextClass) && !poolable) {
    return InvalidArgument("architectures is ", ClassName(bert->config, kTextClass),
                           ", but there is no pooler.dense.weight");
  }
  if (is_class(kTokensClass) || !poolable) {
    bert->task = TextTask::kTokens;
  } else {
    WEFT_ASSIGN_OR_RETURN(bert->scores, LabelScoresFromJson(json, static_cast<size_t>(classes)));
    // Without a problem_type, Hugging Face trains one label as a number, and shows its sigmoid.
    const bool one = classes == 1 && json.value("problem_type", Json()).is_null();
    if (one || bert->scores == LabelScores::kNumbers) bert->task = TextTask::kRegression;
  }
  if (static_cast<int64_t>(bert->labels.size()) == classes) return absl::OkStatus();
  return InvalidArgument("id2label has ", bert->labels.size(), " labels, but classifier.weight ", classes,
                         " rows; architectures is ", names.dump());
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  PublishedBert bert;
  WEFT_ASSIGN_OR_RETURN(bert.config, Annotate(ConfigFromJson<BertConfig>(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(bert.weights, ReadFolderWeights(folder, OwnNames(bert)));
  for (const auto& [name, copy] : {std::pair{"embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
                                   {"embeddings.word_embeddings.weight", "cls.predictions.weight"},
                                   {"cls.predictions.bias", "cls.predictions.decoder.bias"}}) {
    WEFT_RETURN_IF_ERROR(Annotate(bert.weights.Tie(name, copy), bert.weights.path()));
  }
  const bool classifier = bert.weights.Has("classifier.");
  bert.choice = classifier && json.value("architectures", Json()) == Json{ClassName(bert.config, kChoiceClass)};
  WEFT_RETURN_IF_ERROR(bert.weights.Fit(ParametersOf(bert)));
  if (classifier && !bert.choice) WEFT_RETURN_IF_ERROR(Annotate(ReadTask(json, &bert), ConfigPath(folder)));
  const bool pools = bert.task != TextTask::kTokens && !bert.weights.Has("qa_outputs.");
  if (!pools) WEFT_RETURN_IF_ERROR(bert.weights.Apply({{"pooler.#", {}}}));
  return PublishedModel(std::move(bert));
}

absl::Status Write(const PublishedBert& bert, const std::string& folder, const WriteModelOptions&) {
  WEFT_ASSIGN_OR_RETURN(Json json, ToJson(bert.config));
  Weights weights = bert.weights;
  const bool masked = bert.masked(), next = weights.Has("cls.seq_relationship."),
             classifier = weights.Has("classifier.");
  if (classifier && bert.config.classifier_pooling == Pooling::kMean && !bert.config.shared_transform) {
    return InvalidArgument(
        "classifier_pooling is mean: Hugging Face's BERT has no such classifier, and would take it for one of single "
        "tokens; wanted cls");
  }
  const bool trained = (masked && next) || weights.Has("discriminator_predictions.");
  const char* const name = trained                          ? kTrainingClass
                           : masked                         ? kMaskedClass
                           : next                           ? kNextClass
                           : weights.Has("qa_outputs.")     ? kAnswerClass
                           : !classifier                    ? kModelClass
                           : bert.choice                    ? kChoiceClass
                           : bert.task == TextTask::kTokens ? kTokensClass
                                                            : kTextClass;
  if (!HasClass(bert.config, name)) {
    return InvalidArgument("Hugging Face has no class ", ClassName(bert.config, name), " for the model's heads");
  }
  WEFT_RETURN_IF_ERROR(Publish(bert.config.model_type, name != kModelClass, name == kTextClass, &weights));
  json["architectures"] = {ClassName(bert.config, name)};
  if (!bert.labels.empty()) AddLabels(bert.labels, &json);
  if (bert.task != TextTask::kRegression || bert.scores == LabelScores::kNumbers) AddLabelScores(bert.scores, &json);
  return WriteModelFolder(folder, json, weights);
}

// Returns the configuration, labels and task of a run. Instead of weights, one tensor of zeros for each head tells
// RecordModel which heads the run trained.
absl::StatusOr<PublishedModel> FromRun(const std::string&, const Json& run) {
  const Json& model = run.at("model");
  PublishedBert bert;
  WEFT_RETURN_IF_ERROR(ReadRunModel(run, &bert.config));
  WEFT_RETURN_IF_ERROR(Validate(bert.config));
  WEFT_ASSIGN_OR_RETURN(bert.labels, LabelsFromJson(model));
  KeyReader(run).Choice("task", Choices<TextTask>(kTextTaskNames), bert.task);
  if (bert.task != TextTask::kTokens) {
    WEFT_ASSIGN_OR_RETURN(bert.scores, LabelScoresFromJson(model, bert.labels.size()));
  }
  if (bert.task == TextTask::kRegression && !model.contains("problem_type")) bert.scores = LabelScores::kNumbers;
  const Json pair_column = run.value("text_pair_column", Json());
  bert.pairs = bert.task == TextTask::kPair || (pair_column.is_string() && pair_column != "");
  const int64_t width = bert.config.width, classes = static_cast<int64_t>(bert.labels.size());
  Weights& heads = bert.weights;
  if (classes > 0) {
    WEFT_RETURN_IF_ERROR(heads.Add("classifier.weight", {kF32, {classes, width}}).status());
    const bool pools = bert.config.classifier_pooling == Pooling::kFirst && !bert.config.shared_transform;
    if (pools && bert.task != TextTask::kTokens) {
      WEFT_RETURN_IF_ERROR(heads.Add("pooler.dense.bias", {kF32, {width}}).status());
    }
  } else {
    WEFT_RETURN_IF_ERROR(heads.Add("cls.predictions.bias", {kF32, {bert.config.vocabulary}}).status());
    if (run.value("next_sentence", Json()) == true) {
      WEFT_RETURN_IF_ERROR(heads.Add("cls.seq_relationship.bias", {kF32, {2}}).status());
    }
  }
  return PublishedModel(std::move(bert));
}

absl::StatusOr<Json> ToRun(const PublishedBert& bert) {
  WEFT_ASSIGN_OR_RETURN(Json config, WriteModelConfig(bert.config));
  if (!bert.labels.empty()) AddLabels(bert.labels, &config);
  AddLabelScores(bert.scores, &config);
  Json run = {{"model", std::move(config)}, {"task", NameOf(kTextTaskNames, bert.task)}};
  if (bert.pairs) run["text_pair_column"] = "text_pair";
  return run;
}

std::vector<std::string> TiedLayers(const PublishedBert& bert) {
  if (!bert.masked()) return {};
  return {"embeddings.word_embeddings", "cls.predictions.decoder"};
}

// Gives the classes Hugging Face's default names if a classifier has another number of classes than the model had.
void FitLabels(PublishedBert* bert) {
  const Tensor* const classifier = bert->weights.Find("classifier.weight");
  if (classifier == nullptr || classifier->type.shape.rank() != 2) return;
  const int64_t classes = classifier->type.shape.dim(0);
  if (bert->labels.size() != static_cast<size_t>(classes)) bert->labels = UsualLabels(classes);
}

// A classifier of texts is trained together with its pooler.
absl::Status PublishAdapter(absl::string_view model_type, Weights* adapter) {
  return Publish(model_type, /*heads=*/true, adapter->Has("pooler."), adapter);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LabelsFromJson(const Json& json) {
  constexpr int64_t kMaxLabels = 1'000'000;
  const auto found = json.find("id2label");
  const Json number = json.value("num_labels", Json());
  if (found == json.end() || found->is_null())
    return UsualLabels(std::min(WholeNumber(number).value_or(0), kMaxLabels));
  const auto error = [&](absl::string_view what) { return InvalidArgument("id2label ", what); };
  if (!found->is_object()) return error("is not an object");
  std::vector<std::string> labels(found->size());
  std::vector<bool> given(labels.size());
  for (const auto& [key, label] : found->items()) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id >= labels.size() || given[id]) {
      return error(absl::StrCat("has the key '", key, "', wanted 0 .. ", labels.size() - 1, ", each once"));
    }
    if (!label.is_string()) return error(absl::StrCat("of ", key, " is not a text"));
    labels[id] = label.get<std::string>();
    given[id] = true;
  }
  if (number.is_null() || number == labels.size()) return labels;
  return InvalidArgument("num_labels is ", number.dump(), ", but id2label has ", labels.size(), " labels");
}

std::vector<std::string> UsualLabels(int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(absl::StrCat("LABEL_", i));
  return labels;
}

void AddLabels(const std::vector<std::string>& labels, Json* json) {
  Json names = Json::object(), ids = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    names[absl::StrCat(i)] = labels[i];
    ids[labels[i]] = i;
  }
  (*json)["id2label"] = std::move(names);
  (*json)["label2id"] = std::move(ids);
}

absl::StatusOr<LabelScores> LabelScoresFromJson(const Json& json, size_t labels) {
  KeyReader keys(json);
  LabelScores scores = LabelScores::kSoftmax;
  keys.Choice("problem_type", Choices<LabelScores>(kProblemTypes), scores);
  WEFT_RETURN_IF_ERROR(keys.Refused());
  return labels == 1 && scores == LabelScores::kSoftmax ? LabelScores::kSigmoid : scores;
}

void AddLabelScores(LabelScores scores, Json* json) {
  if (scores != LabelScores::kSoftmax) (*json)["problem_type"] = NameOf(kProblemTypes, scores);
}

const ModelFamily PublishedBert::kFamily = {
    .name = "a BERT",
    .model_types = BertModelTypes(),
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
    .vocabulary = OfAnyModel<VocabularyOf<PublishedBert>>::Call,
    .tied = OfAnyModel<TiedLayers>::Call,
    .own_names = OfAnyModel<OwnNames>::Call,
    .publish_adapter = PublishAdapter,
    .fit_labels = OfAnyModel<FitLabels>::Call,
};

}  // namespace weft
