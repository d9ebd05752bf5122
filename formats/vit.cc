// This file defines PublishedVit::kFamily. The functions read and write Hugging Face's classes of ViT and DeiT that
// classify pictures or guess masked patches. FromRun describes the ViT of a training run.
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

// A model_type, its class that classifies pictures and its class that guesses masked patches.
struct VitType {
  const char *name, *classifier, *masked;
};
constexpr VitType kVit = {"vit", "ViTForImageClassification", "ViTForMaskedImageModeling"},
                  kDeit = {"deit", "DeiTForImageClassification", "DeiTForMaskedImageModeling"},
                  kTeacher = {"deit", "DeiTForImageClassificationWithTeacher", kDeit.masked};

const VitType& TypeOf(const VitConfig& config) {
  if (config.distillation == Distillation::kNone) return kVit;
  return config.distillation == Distillation::kToken ? kDeit : kTeacher;
}

void ListVit(Keys& keys, VitConfig& config) {
  ListEncoder(keys, config);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Field("patch_size", config.patch_size);
  keys.Field("num_channels", config.channels);
  keys.Only("attention_probs_dropout_prob", 0.0);
  keys.Only("qkv_bias", true);
  keys.Harmless({"encoder_stride", "pooler_act", "pooler_output_size"});  // belong to heads that no model here has
}

// Reads one number, or height and width.
void ReadImageSize(KeyReader* keys, VitConfig* config) {
  const Json* const size = keys->Find("image_size");
  if (size == nullptr) return;
  const bool two = size->is_array() && size->size() == 2;
  const std::optional<int64_t> height = WholeNumber(two ? (*size)[0] : *size);
  const std::optional<int64_t> width = WholeNumber(two ? (*size)[1] : *size);
  if (height && width) {
    config->image_height = *height;
    config->image_width = *width;
  } else {
    keys->Refuse("image_size", "a whole number, or two");
  }
}

void RecordModel(const PublishedVit& vit, int64_t, bool, Tape* tape) {
  const VitConfig& config = vit.config;
  const Shape images = {1, config.image_height, config.image_width, config.channels};
  Vit(config).Predict(vit.task, tape->Input("images", {kF32, images}));
}

ModelSizes SizesOf(const PublishedVit& vit) {
  const VitConfig c = WithFeedForward(vit.config);
  ModelSizes sizes = {.sizes = {{"C", "width", c.width},
                                {"F", "feed-forward width", c.feed_forward},
                                {"N", "patches", c.patches()},
                                {"P", "side of a patch", c.patch_size}},
                      .context = c.patches()};
  if (vit.task == VitTask::kClassify) sizes.sizes.push_back({"L", "labels", c.classes});
  return sizes;
}

absl::Status ReadLabels(const Json& json, PublishedVit* vit) {
  WEFT_ASSIGN_OR_RETURN(vit->labels, LabelsFromJson(json));
  if (vit->labels.empty()) vit->labels = UsualLabels(2);
  WEFT_ASSIGN_OR_RETURN(vit->scores, LabelScoresFromJson(json, vit->labels.size()));
  return absl::OkStatus();
}

// Sets the task by the class that wrote the configuration `json`, and for a classifier its labels.
absl::Status ReadTask(const Json& json, PublishedVit* vit) {
  if (json.value("architectures", Json()) != Json{TypeOf(vit->config).masked}) return ReadLabels(json, vit);
  vit->task = VitTask::kMasked;
  const Json stride = json.value("encoder_stride", Json(16));
  if (stride == vit->config.patch_size) return absl::OkStatus();
  return InvalidArgument("encoder_stride is ", stride.dump(), ", but must be patch_size, ", vit->config.patch_size);
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  PublishedVit vit;
  WEFT_ASSIGN_OR_RETURN(vit.config, Annotate(ConfigFromJson<VitConfig>(json), ConfigPath(folder)));
  WEFT_RETURN_IF_ERROR(Annotate(ReadTask(json, &vit), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(vit.weights, ReadFolderWeights(folder, {}));
  WEFT_RETURN_IF_ERROR(vit.weights.Fit(ParametersOf(vit)));
  return PublishedModel(std::move(vit));
}

void AddTask(const PublishedVit& vit, Json* json) {
  if (vit.task == VitTask::kClassify) AddLabels(vit.labels, json);
  AddLabelScores(vit.scores, json);
  SetVitTask(vit.task, json);
}

absl::Status Write(const PublishedVit& vit, const std::string& folder, const WriteModelOptions&) {
  if (vit.task == VitTask::kOrder) {
    return InvalidArgument("a ViT of the task order can't be written as huggingface, which has no class for it");
  }
  WEFT_ASSIGN_OR_RETURN(Json json, ToJson(vit.config));
  AddTask(vit, &json);
  return WriteModelFolder(folder, json, vit.weights);
}

constexpr absl::string_view kModelTypes[] = {kVit.name, kDeit.name};

absl::StatusOr<PublishedModel> FromRun(const std::string&, const Json& run) {
  PublishedVit vit;
  WEFT_RETURN_IF_ERROR(ReadRunModel(run, &vit.config));
  WEFT_RETURN_IF_ERROR(Validate(vit.config));
  KeyReader(run).Choice("task", Choices<VitTask>(kVitTaskNames), vit.task);  // missing in old runs
  if (vit.task == VitTask::kClassify) WEFT_RETURN_IF_ERROR(ReadLabels(run.at("model"), &vit));
  return PublishedModel(std::move(vit));
}

absl::StatusOr<Json> ToRun(const PublishedVit& vit) {
  WEFT_ASSIGN_OR_RETURN(Json config, WriteModelConfig(vit.config));
  AddTask(vit, &config);
  return Json{{"model", std::move(config)}, {"task", NameOf(kVitTaskNames, vit.task)}};
}

}  // namespace

template <>
absl::StatusOr<VitConfig> ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  VitConfig config = {.classes = 2, .feed_forward = 3072};
  if (const Json* const name = keys.Find("model_type"); name != nullptr && *name == kDeit.name) {
    const Json* const classes = keys.Find("architectures");
    const bool head = classes != nullptr && *classes == Json{kTeacher.classifier};
    config.distillation = head ? Distillation::kHead : Distillation::kToken;
  }
  const VitType& type = TypeOf(config);
  keys.Only("model_type", type.name);
  ReadImageSize(&keys, &config);
  ListVit(keys, config);
  keys.Harmless({"id2label", "label2id"});
  ReadUsualKeys(keys, {type.classifier, type.masked});
  WEFT_RETURN_IF_ERROR(keys.Finish());
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> labels, LabelsFromJson(json));
  if (!labels.empty()) config.classes = static_cast<int64_t>(labels.size());
  WEFT_RETURN_IF_ERROR(Validate(config));
  return config;
}

absl::StatusOr<Json> ToJson(const VitConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  const VitType& type = TypeOf(config);
  KeyWriter keys(type.name, type.classifier);
  if (config.image_height == config.image_width) {
    keys.Write("image_size", config.image_height);
  } else {
    keys.Write("image_size", std::vector<int64_t>{config.image_height, config.image_width});
  }
  VitConfig full = WithFeedForward(config);
  ListVit(keys, full);
  keys.Write("attention_probs_dropout_prob", 0.0);
  Json json = std::move(keys).Finish();
  std::vector<std::string> labels;
  for (int64_t i = 0; i < config.classes; ++i) labels.push_back(absl::StrCat(i));
  AddLabels(labels, &json);
  WEFT_RETURN_IF_ERROR(CheckReadBack(type.name, config, ConfigFromJson<VitConfig>(json)));
  return json;
}

void SetVitTask(VitTask task, Json* json) {
  if (task == VitTask::kClassify) return;
  for (const char* key : {"architectures", "id2label", "label2id"}) json->erase(key);
  if (task == VitTask::kOrder) return;
  (*json)["architectures"] = {(*json)["model_type"] == kVit.name ? kVit.masked : kDeit.masked};
  (*json)["encoder_stride"] = (*json)["patch_size"];
}

const ModelFamily PublishedVit::kFamily = {
    .name = "a ViT",
    .model_types = kModelTypes,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
};

}  // namespace weft
