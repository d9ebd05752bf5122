// This file has the lists of formats and families, and finds the format and family of a model.
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/adapters.h"
#include "weft/formats/generation.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/published.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/weight_files.h"

namespace weft {
namespace {

template <class... Models>
absl::Span<const ModelFamily* const> FamiliesOf(const std::variant<Models...>*) {
  static constexpr const ModelFamily* kFamilies[] = {&Models::kFamily...};
  return kFamilies;
}

// Returns the config.json of the folder `model`, or what the file `model` says in its place (ReadFileConfig). If the
// folder has adapters without a model, returns the keys of adapter_config.json that `Format` needs, with the path of
// the base model.
absl::StatusOr<Json> ReadConfigOf(const std::string& model) {
  const std::string path = ModelFile(ParseRunPath(model).folder);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return SystemStatus("find", path, error ? error.value() : ENOENT);
  if (!std::filesystem::is_directory(status)) return ReadFileConfig(path);
  if (IsAdapter(path)) {
    WEFT_ASSIGN_OR_RETURN(const AdapterConfig adapter, ReadAdapterConfig(path));
    return Json{{"peft_type", "LORA"}, {"base_model_name_or_path", adapter.base}};
  }
  if (!Exists(ConfigPath(path))) WEFT_RETURN_IF_ERROR(CheckNotForeign(path));
  WEFT_ASSIGN_OR_RETURN(Json config, ReadConfig(path));
  if (!config.contains("peft_type")) return config;
  return InvalidArgument(ConfigPath(path), ": it describes an adapter; rename it to ", kAdapterConfig);
}

absl::StatusOr<const ModelFamily*> FamilyOfConfig(const Json& config) {
  const Json& type = *FindModelType(config);
  if (const ModelFamily* const family = FamilyOfType(type)) return family;
  std::vector<absl::string_view> known;
  for (const ModelFamily* const family : ModelFamilies()) {
    known.insert(known.end(), family->model_types.begin(), family->model_types.end());
  }
  return InvalidArgument("model_type is ", JsonLine(type), ", which is not supported; wanted one of ",
                         absl::StrJoin(known, ", "));
}

constexpr absl::string_view kHuggingFaceFiles[] = {kConfigFile, kWeightsFile, kGenerationConfig};

// A model has the first of these formats that recognizes it.
constexpr const Format* kFormats[] = {&kRunFormat,  &kWeftFormat,        &kPeftFormat,
                                      &kGgufFormat, &kHuggingFaceFormat, &kNanoGptFormat,
                                      &kOnnxFormat, &kLlama2cFormat,     &kCTranslate2Format};

absl::StatusOr<const Format*> Recognize(const std::string& path, const Json& config) {
  std::string marks;
  for (const Format* const format : kFormats) {
    if (format->recognizes != nullptr && format->recognizes(config)) return format;
    const bool last = format == *std::prev(std::end(kFormats));
    if (!format->mark.empty()) absl::StrAppend(&marks, marks.empty() ? "" : last ? " or " : ", ", format->mark);
  }
  return InvalidArgument(ConfigPath(path), ": it is of no model that is known: it has no ", marks);
}

absl::StatusOr<const ModelFamily*> FamilyIn(const std::string& path, const Format& format, const Json& config) {
  if (format.families.size() == 1) return format.families[0];
  return Annotate(format.family(config), IsAdapter(path) ? absl::StrCat(path, "/", kAdapterConfig) : ConfigPath(path));
}

}  // namespace

// The format of Hugging Face: a folder with config.json, whose key model_type tells the family, and model.safetensors.
constexpr Format kHuggingFaceFormat = {
    .name = "huggingface",
    .mark = "model_type (Hugging Face)",
    .recognizes = [](const Json& config) { return FindModelType(config) != nullptr; },
    .family = FamilyOfConfig,
    .read = [](const std::string& folder, const Json& config) -> absl::StatusOr<PublishedModel> {
      WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, Annotate(FamilyOfConfig(config), ConfigPath(folder)));
      return family->read(folder, config);
    },
    .write = [](const PublishedModel& model, const std::string& folder,
                const WriteModelOptions& options) { return FamilyOf(model).write(model, folder, options); },
    .files = kHuggingFaceFiles,
};

absl::Span<const ModelFamily* const> ModelFamilies() { return FamiliesOf(static_cast<PublishedModel*>(nullptr)); }

absl::Span<const Format* const> Formats() { return kFormats; }

const ModelFamily* FamilyOfType(const Json& model_type) {
  for (const ModelFamily* const family : ModelFamilies()) {
    for (const absl::string_view name : family->model_types) {
      if (model_type.is_string() && model_type.get_ref<const std::string&>() == name) return family;
    }
  }
  return nullptr;
}

const ModelFamily& FamilyOf(const PublishedModel& model) { return *ModelFamilies()[model.index()]; }

absl::StatusOr<const Format*> FormatToWrite(absl::string_view name, const ModelFamily& family) {
  std::vector<absl::string_view> possible;
  for (const Format* const format : kFormats) {
    const bool fits = format->families.empty() || absl::c_linear_search(format->families, &family);
    if (format->write == nullptr || !fits || (format->is_own && family.to_run == nullptr)) continue;
    if (format->name == name) return format;
    if (!format->is_own) possible.push_back(format->name);
  }
  return InvalidArgument(family.name, " can't be written as ", name, "; possible: ", absl::StrJoin(possible, ", "));
}

absl::StatusOr<const ModelFamily*> FindFamily(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Json config, ReadConfigOf(path));
  WEFT_ASSIGN_OR_RETURN(const Format* const format, Recognize(path, config));
  return FamilyIn(path, *format, config);
}

absl::StatusOr<PublishedModel> ReadModel(const std::string& path, const ReadModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Json config, ReadConfigOf(path));
  WEFT_ASSIGN_OR_RETURN(const Format* const format, Recognize(path, config));
  if (options.family != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FamilyIn(path, *format, config));
    if (family != options.family) {
      return InvalidArgument(path, ": the model is ", family->name, ", not ", options.family->name);
    }
  }
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, format->read(ModelFile(path), config));
  if (!options.ignore_extra_tensors) WEFT_RETURN_IF_ERROR(WeightsOf(model).CheckNoExtra());
  return model;
}

absl::Status WriteModel(const std::string& folder, const PublishedModel& model, absl::string_view format,
                        const WriteModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Format* const found, FormatToWrite(format, FamilyOf(model)));
  return found->write(model, folder, options);
}

std::vector<ParameterSpec> ParametersOf(const PublishedModel& model) {
  Tape tape;
  FamilyOf(model).record(model, /*tokens=*/1, /*heads=*/true, &tape);
  std::vector<ParameterSpec> weights;
  for (const ParameterSpec& spec : tape.program().parameters) {
    if (spec.kind == ParameterKind::kWeight || spec.kind == ParameterKind::kStatistic) weights.push_back(spec);
  }
  return weights;
}

absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows) {
  if (tokens <= rows && 2 * tokens > rows) return absl::OkStatus();
  return InvalidArgument(whose, ": the tokenizer has ", tokens, " tokens, but the model's table ", rows);
}

}  // namespace weft
