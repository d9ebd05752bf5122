#include "weft/formats/open_published.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/text/load_tokenizer.h"
#include "weft/train/checkpoint.h"
#include "weft/train/gpt_options.h"
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

// The model's own configuration in that of a run; null if there is none.
nlohmann::ordered_json ModelOf(const nlohmann::ordered_json& run) {
  const auto model = run.find("model");
  return model != run.end() && model->is_object() ? *model : nlohmann::ordered_json();
}

}  // namespace

absl::StatusOr<ModelKind> KindOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status about = std::filesystem::status(path, error);
  if (!std::filesystem::exists(about)) return SystemStatus("find", path, error ? error.value() : ENOENT);
  if (!std::filesystem::is_directory(about)) return ModelKind::kGpt;
  const std::string config = path + "/config.json";
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(config));
  if (IsRunConfig(json, "gpt")) return ModelKind::kGpt;
  const absl::StatusOr<ModelKind> kind = KindOfConfig(json.contains("command") ? ModelOf(json) : json);
  if (!kind.ok()) return Annotate(kind.status(), config);
  return kind;
}

bool IsRun(const std::string& path) {
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(path + "/config.json");
  return json.ok() && json->contains("command");
}

absl::StatusOr<PublishedVit> OpenPublishedVit(const std::string& path) {
  if (!IsRun(path)) return ReadVit(path);
  const std::string config = path + "/config.json";
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(config));
  const nlohmann::ordered_json model = ModelOf(json);
  const absl::StatusOr<VitConfig> form = VitConfigFromJson(model);
  if (!form.ok()) return Annotate(form.status(), config);
  PublishedVit vit = {.config = *form};
  WEFT_ASSIGN_OR_RETURN(vit.labels, VitLabelsFromJson(model));
  WEFT_ASSIGN_OR_RETURN(vit.weights, RunWeights(path, ParametersOf(vit.config)));
  return vit;
}

absl::StatusOr<PublishedModel> OpenPublished(const std::string& path) {
  const std::string config = path + "/config.json";
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(config);
  if (!json.ok() || !json->contains("command")) return ReadModel(path);
  if (IsRunConfig(*json, "gpt")) {
    WEFT_ASSIGN_OR_RETURN(PublishedGpt gpt, OpenGptRun(path, *json));
    return PublishedModel(std::move(gpt));
  }
  const nlohmann::ordered_json model = ModelOf(*json);  // of other trainings
  const absl::StatusOr<ModelKind> kind = KindOfConfig(model);
  if (kind.ok() && *kind == ModelKind::kTransformer) {
    const absl::StatusOr<TransformerConfig> form = TransformerConfigFromJson(model);
    if (!form.ok()) return Annotate(form.status(), config);
    WEFT_ASSIGN_OR_RETURN(Weights weights, RunWeights(path, ParametersOf(*form)));
    return PublishedModel(PublishedTransformer{*form, std::move(weights)});
  }
  if (kind.ok() && *kind == ModelKind::kBert) {
    absl::StatusOr<PublishedBert> bert = OpenBertRun(path, *json);
    if (!bert.ok()) return Annotate(bert.status(), config);
    return PublishedModel(*std::move(bert));
  }
  const auto found = model.find("model_type");
  return absl::InvalidArgumentError(absl::StrCat(
      config, ": the run is of ", (*json)["command"].dump(), ", and model.model_type is ",
      found == model.end() ? "null" : found->dump(),
      ", which can be neither exported nor used here; wanted a run of train gpt, \"bert\" or \"transformer\""));
}

absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows) {
  if (tokens <= rows && 2 * tokens > rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(whose, ": the tokenizer has ", tokens, " tokens, but the model's table ", rows));
}

}  // namespace weft
