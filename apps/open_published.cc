#include "weft/apps/open_published.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/apps/gpt_options.h"
#include "weft/core/status.h"
#include "weft/models/config_json.h"
#include "weft/text/load_tokenizer.h"
#include "weft/train/checkpoint.h"
#include "weft/train/run_directory.h"

namespace weft {
namespace {

// The weights that the last step of a run, or of its newest checkpoint, has left.
absl::StatusOr<Weights> RunWeights(const std::string& folder, const std::vector<ParameterSpec>& specs) {
  Parameters parameters({.draw = false});
  WEFT_RETURN_IF_ERROR(parameters.Create(specs));
  WEFT_RETURN_IF_ERROR(LoadRunWeights(folder, &parameters));
  Weights weights;
  for (const ParameterSpec& spec : specs) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, weights.Add(spec.name, spec.type));
    std::memcpy(to.data, parameters.Find(spec.name)->data, spec.type.bytes());
  }
  return weights;
}

absl::StatusOr<PublishedGpt> OpenGptRun(const std::string& folder, const nlohmann::ordered_json& json) {
  GptOptions options;
  const std::string path = folder + "/config.json";
  WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(json, &options), path));
  WEFT_RETURN_IF_ERROR(Annotate(Finish(&options), path));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(folder));
  options.model.vocabulary = tokenizer->vocabulary_size();
  WEFT_ASSIGN_OR_RETURN(Weights weights, RunWeights(folder, ParametersOf(options.model)));
  return PublishedGpt{options.model, std::move(weights)};
}

absl::StatusOr<PublishedBert> OpenBertRun(const std::string& folder, const nlohmann::ordered_json& json) {
  const nlohmann::ordered_json& model = json.at("model");
  PublishedBert bert;
  WEFT_ASSIGN_OR_RETURN(bert.config, BertConfigFromJson(model));
  WEFT_ASSIGN_OR_RETURN(bert.labels, LabelsFromJson(model));
  const int64_t width = bert.config.width, classes = static_cast<int64_t>(bert.labels.size());
  Weights heads;  // those that the run has trained, by one tensor of each
  if (classes > 0) {
    WEFT_RETURN_IF_ERROR(heads.Add("classifier.weight", {kF32, {classes, width}}).status());
    if (bert.config.classifier_pooling == Pooling::kFirst) {
      WEFT_RETURN_IF_ERROR(heads.Add("pooler.dense.bias", {kF32, {width}}).status());
    }
  } else {
    WEFT_RETURN_IF_ERROR(heads.Add("cls.predictions.bias", {kF32, {bert.config.vocabulary}}).status());
    if (json.contains("next_sentence") && json["next_sentence"] == true) {
      WEFT_RETURN_IF_ERROR(heads.Add("cls.seq_relationship.bias", {kF32, {2}}).status());
    }
  }
  WEFT_ASSIGN_OR_RETURN(bert.weights, RunWeights(folder, ParametersOf(bert.config, heads)));
  return bert;
}

}  // namespace

absl::StatusOr<PublishedModel> OpenPublished(const std::string& path) {
  const std::string config = path + "/config.json";
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(config);
  if (!json.ok() || !json->contains("command")) return ReadModel(path);
  if (IsRunConfig(*json, "gpt")) {
    WEFT_ASSIGN_OR_RETURN(PublishedGpt gpt, OpenGptRun(path, *json));
    return PublishedModel(std::move(gpt));
  }
  // Of other trainings the model's own configuration.
  const auto model = json->find("model");
  const std::string type = model != json->end() && model->is_object() ? model->value("model_type", "") : "";
  if (type == "transformer") {
    const absl::StatusOr<TransformerConfig> form = TransformerConfigFromJson(*model);
    if (!form.ok()) return Annotate(form.status(), config);
    WEFT_ASSIGN_OR_RETURN(Weights weights, RunWeights(path, ParametersOf(*form)));
    return PublishedModel(PublishedTransformer{*form, std::move(weights)});
  }
  if (type == "bert") {
    absl::StatusOr<PublishedBert> bert = OpenBertRun(path, *json);
    if (!bert.ok()) return Annotate(bert.status(), config);
    return PublishedModel(*std::move(bert));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(config, " is of ", (*json)["command"].dump(), ", whose models can't be exported"));
}

}  // namespace weft
