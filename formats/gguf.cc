// This file defines the format of GGUF, the files of llama.cpp: one file with the model's sizes, its weights and its
// tokenizer. The sizes become the keys of a config.json, so that everything else reads them as those of a published
// model. Weights stay where they are in the file, in the dtypes that they have there.
#include "weft/core/gguf.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/all_containers.h"
#include "weft/formats/config_json.h"
#include "weft/formats/generation.h"
#include "weft/formats/gguf_keys.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"

namespace weft {
namespace {

absl::StatusOr<Json> ConfigInFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path, GgufLists::kShort));
  return Annotate(ConfigOfGguf(file.metadata(), file.tensors()), path);
}

// Returns the configuration that the config.json of a file describes.
template <class Config>
absl::StatusOr<Config> ConfigOf(const GgufArchitecture& architecture, Json published) {
  published.erase(kGgufMark);
  published.erase(kGgufPooling);
  WEFT_ASSIGN_OR_RETURN(Config config, ConfigFromJson<Config>(published));
  if (architecture.in_pairs && config.attention.rotary) config.attention.rotary = RotaryLayout::kPairs;
  return config;
}

absl::StatusOr<const ModelFamily*> Family(const Json& config) {
  WEFT_ASSIGN_OR_RETURN(const GgufArchitecture* const found, FindGgufArchitecture(config[kGgufMark]));
  return found->encoder ? &PublishedBert::kFamily : &PublishedGpt::kFamily;
}

template <class Model>
absl::StatusOr<PublishedModel> ReadAs(const GgufArchitecture& architecture, const std::string& path,
                                      const Json& config) {
  Model model;
  WEFT_ASSIGN_OR_RETURN(model.weights, Weights::ReadStored(path));
  WEFT_RETURN_IF_ERROR(Annotate(model.weights.Apply(RulesOf(architecture)), path));
  WEFT_ASSIGN_OR_RETURN(model.config, Annotate(ConfigOf<decltype(model.config)>(architecture, config), path));
  if constexpr (std::is_same_v<Model, PublishedGpt>) {  // files of GPT-2 may have the token table twice
    const std::string table = absl::StrCat(architecture.layers[0].own, ".weight");
    model.config.tied_head = model.weights.Tie(table, "lm_head.weight").ok();
  }
  WEFT_RETURN_IF_ERROR(model.weights.Fit(ParametersOf(model)));
  return PublishedModel(std::move(model));
}

absl::StatusOr<PublishedModel> Read(const std::string& path, const Json& config) {
  WEFT_ASSIGN_OR_RETURN(const GgufArchitecture* const found, FindGgufArchitecture(config[kGgufMark]));
  return found->encoder ? ReadAs<PublishedBert>(*found, path, config) : ReadAs<PublishedGpt>(*found, path, config);
}

constexpr absl::string_view kFiles[] = {"model.gguf"};
constexpr const ModelFamily* kFamilies[] = {&PublishedGpt::kFamily, &PublishedBert::kFamily};

// Adds the tokenizer of `folder`, and the end tokens and the settings of sampling of its generation_config.json.
absl::Status AddTokenizer(const std::string& folder, int64_t vocabulary, Json* metadata) {
  WEFT_ASSIGN_OR_RETURN(const Json tokenizer, GgufOfTokenizer(folder, vocabulary));
  metadata->update(tokenizer);
  const std::string path = absl::StrCat(folder, "/", kGenerationConfig);
  if (!Exists(path)) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const Json settings, ReadJsonFile(path));
  const Json ends = settings.value("eos_token_id", Json()), list = ends.is_array() ? ends : Json::array({ends});
  const Json texts = tokenizer.value("tokenizer.ggml.tokens", Json::array());
  size_t keys = 0;
  for (const Json& each : list) {
    const std::optional<int32_t> id = TokenId(each);
    if (!id.has_value()) continue;
    if (keys < 3) {  // those of infilling are only read
      (*metadata)[kGgufEndTokens[keys++].first] = static_cast<uint32_t>(*id);
    } else if (*id < 0 || *id >= std::ssize(texts) ||
               !absl::c_linear_search(kGgufEndTexts, texts[static_cast<size_t>(*id)].get<std::string>())) {
      return InvalidArgument("a GGUF file has keys for ", keys, " end tokens, but eos_token_id is ", ends.dump());
    }
  }
  const Json samples = settings.value("do_sample", Json());
  if (samples == true) (*metadata)[kGgufTemperature] = 1.0;  // the default of transformers
  for (const auto& [key, published] : kGgufSampling) {
    const Json value = settings.value(published, Json());
    if (value.size() > kGgufShortList) return InvalidArgument(published, " has more than ", kGgufShortList, " values");
    if (!value.is_null()) (*metadata)[key] = value;
  }
  if (samples == false) (*metadata)[kGgufTemperature] = 0.0;  // chooses the likeliest token
  return absl::OkStatus();
}

// Returns the dtype in which a weight is written: `wanted` or, without it, that of the weight. Rows in a file of GGUF
// are whole blocks.
DType WrittenDType(const ParameterSpec& spec, const Tensor& tensor, std::optional<DType> wanted) {
  const DType dtype = wanted ? HeldDType(spec, *wanted) : tensor.type.dtype;
  return tensor.type.shape.cols() % RowOf(dtype).block == 0 && tensor.type.shape.rank() > 1 ? dtype : kF32;
}

// Writes a model whose published configuration is `config`, and whose weights have the published names. Weights beside
// those of the configuration are written in f32.
template <class Model>
absl::Status WriteAs(const GgufArchitecture& architecture, const Json& config, Model model, const std::string& folder,
                     const WriteModelOptions& options) {
  const std::vector<ParameterSpec> specs = ParametersOf(Model{.config = model.config});
  std::vector<DType> dtypes;
  for (const auto& [name, tensor] : model.weights.tensors()) {
    const ParameterSpec* const spec = FindRow(specs, name);
    dtypes.push_back(spec == nullptr ? kF32 : WrittenDType(*spec, tensor, options.weights));
  }
  WEFT_RETURN_IF_ERROR(model.weights.Revert(RulesOf(architecture)));
  const absl::Span<const NamedTensor> tensors = model.weights.tensors();
  const auto least =
      absl::c_min_element(dtypes, [](DType a, DType b) { return BytesOfElement(a) < BytesOfElement(b); });
  Json metadata = GgufOfConfig(architecture, config, *least);
  WEFT_ASSIGN_OR_RETURN(const Json read, ConfigOfGguf(metadata, tensors));
  WEFT_RETURN_IF_ERROR(CheckReadBack(absl::StrCat("a GGUF file of ", architecture.name), model.config,
                                     ConfigOf<decltype(model.config)>(architecture, read), /*training=*/false));
  WEFT_RETURN_IF_ERROR(AddTokenizer(folder, model.config.vocabulary, &metadata));
  return WriteConverted(tensors, dtypes, [&](const auto& types) {
    return GgufWriter::Create(absl::StrCat(folder, "/", kFiles[0]), metadata, types);
  });
}

absl::Status WriteGpt(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions& options) {
  PublishedGpt halves = {.config = WithFeedForward(gpt.config)};
  if (halves.config.attention.rotary) halves.config.attention.rotary = RotaryLayout::kHalves;
  WEFT_ASSIGN_OR_RETURN(const Json config, ToJson(halves.config));
  WEFT_ASSIGN_OR_RETURN(const GgufArchitecture* const found,
                        Annotate(FindGgufArchitecture(config["model_type"]), "GGUF"));
  const RotaryLayout layout = found->in_pairs ? RotaryLayout::kPairs : RotaryLayout::kHalves;
  WEFT_ASSIGN_OR_RETURN(PublishedGpt written, WithRotary(gpt, layout));
  if (gpt.config.names == GptConfig::Names::kGpt2) {
    WEFT_ASSIGN_OR_RETURN(written, WithBiases(written));
  }
  WEFT_RETURN_IF_ERROR(Parameters::Check("the model", written.weights.tensors(), ParametersOf(written)));
  if (const RotaryScaling& scaling = gpt.config.attention.rotary_scaling; scaling.kind == RotaryScalingKind::kLlama3) {
    const AttentionVariant head =
        WithWidths(gpt.config.attention, gpt.config.ablation, gpt.config.heads, gpt.config.width);
    const std::vector<float> factors = RotaryFactors(head.key_width, head.rotary_base, scaling);
    WEFT_ASSIGN_OR_RETURN(const Tensor to,
                          written.weights.Add(kGgufFactors, {kF32, {static_cast<int64_t>(factors.size())}}));
    absl::c_copy(factors, to.span<float>().begin());
  }
  return WriteAs(*found, config, std::move(written), folder, options);
}

// llama.cpp makes embeddings with encoders. A pooler has no part in these, and other heads have no place in a file.
absl::Status WriteBert(const PublishedBert& bert, const std::string& folder, const WriteModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Json config, ToJson(bert.config));
  WEFT_ASSIGN_OR_RETURN(const GgufArchitecture* const found,
                        Annotate(FindGgufArchitecture(config["model_type"]), "GGUF"));
  Weights weights = bert.weights;
  WEFT_RETURN_IF_ERROR(weights.Apply({{"pooler.#", {}}}));
  for (const auto& [name, tensor] : weights.tensors()) {
    if (absl::StartsWith(name, "embeddings.") || absl::StartsWith(name, "encoder.")) continue;
    return InvalidArgument("a GGUF file of ", found->name, " has no place for the head '", name, "'");
  }
  WEFT_ASSIGN_OR_RETURN(const SentenceFormat format, ReadSentenceFormat(folder, bert.config));
  if (!format.prompt.empty()) {
    return InvalidArgument("a GGUF file has no place for the prompt ", Quoted(format.prompt));
  }
  if (format.lower_case) return InvalidArgument("a GGUF file has no place for do_lower_case");
  config[kGgufPooling] = {{"pooling_mode", format.pooling == Pooling::kFirst ? "cls" : "mean"}};
  return WriteAs(*found, config, PublishedBert{.config = bert.config, .weights = weights}, folder, options);
}

absl::Status Write(const PublishedModel& model, const std::string& folder, const WriteModelOptions& options) {
  if (const auto* const gpt = std::get_if<PublishedGpt>(&model)) return WriteGpt(*gpt, folder, options);
  return WriteBert(std::get<PublishedBert>(model), folder, options);
}

}  // namespace

constexpr Container kGguf = {
    .what = "a GGUF file",
    .beginnings = {"GGUF"},
    .endings = {kGgufEnding},
    .advice = "Wanted this file as the model, or a folder with no other such file and no config.json",
    .open = [](const std::string& path, WantedChecksum) { return Shared(GgufFile::Open(path, GgufLists::kShort)); },
    .config = ConfigInFile};

constexpr Format kGgufFormat = {
    .name = "gguf",
    .recognizes = [](const Json& config) { return config.contains(kGgufMark); },
    .families = kFamilies,
    .family = Family,
    .read = Read,
    .write = Write,
    .files = kFiles,
    .keeps_dtypes = true,
    .is_whole = true,
};

}  // namespace weft
