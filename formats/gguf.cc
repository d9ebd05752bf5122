// This file defines the format of GGUF, the files of llama.cpp: one file with the model's sizes, its weights and its
// tokenizer. The sizes become the keys of a config.json, so that everything else reads them as those of a published
// model. Weights stay where they are in the file, in the dtypes that they have there.
#include "weft/core/gguf.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/formats/all_containers.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Name = std::pair<const char*, const char*>;  // in a GGUF file and in a published model

// Marks a config.json that a GGUF file gives. The value is its general.architecture.
constexpr char kMark[] = "gguf";
constexpr char kArchitectureKey[] = "general.architecture", kTokenTable[] = "token_embd.weight",
               kHead[] = "output.weight";

// An architecture of llama.cpp has the same name as the model_type of config.json.
struct Architecture {
  const char* name;
  absl::Span<const Name> keys;    // without the name of the architecture and a dot
  absl::Span<const Name> layers;  // the names of weights and biases without their endings, as in Weights::Rule
  Name activation;                // the key of config.json and the value that llama.cpp computes with
  bool in_pairs = false;          // whether rotary positions turn neighbouring features
};

constexpr Name kGpt2Keys[] = {
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr Name kGpt2Layers[] = {{"token_embd", "wte"},
                                {"position_embd", "wpe"},
                                {"blk.#.attn_norm", "h.#.ln_1"},
                                {"blk.#.attn_qkv", "h.#.attn.c_attn"},
                                {"blk.#.attn_output", "h.#.attn.c_proj"},
                                {"blk.#.ffn_norm", "h.#.ln_2"},
                                {"blk.#.ffn_up", "h.#.mlp.c_fc"},
                                {"blk.#.ffn_down", "h.#.mlp.c_proj"},
                                {"output_norm", "ln_f"},
                                {"output", "lm_head"}};

constexpr Name kLlamaKeys[] = {{"context_length", "max_position_embeddings"},
                               {"embedding_length", "hidden_size"},
                               {"block_count", "num_hidden_layers"},
                               {"feed_forward_length", "intermediate_size"},
                               {"attention.head_count", "num_attention_heads"},
                               {"attention.head_count_kv", "num_key_value_heads"},
                               {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                               {"attention.key_length", "head_dim"},
                               {"rope.freq_base", "rope_theta"}};
constexpr Name kLlamaLayers[] = {{"token_embd", "model.embed_tokens"},
                                 {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                                 {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                                 {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                                 {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                                 {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                                 {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                                 {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
                                 {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
                                 {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"},
                                 {"output_norm", "model.norm"},
                                 {"output", "lm_head"}};

constexpr Architecture kArchitectures[] = {
    {.name = "gpt2", .keys = kGpt2Keys, .layers = kGpt2Layers, .activation = {"activation_function", "gelu_new"}},
    {.name = "llama",
     .keys = kLlamaKeys,
     .layers = kLlamaLayers,
     .activation = {"hidden_act", "silu"},
     .in_pairs = true},
};

absl::StatusOr<const Architecture*> FindArchitecture(const Json& name) {
  std::vector<absl::string_view> known;
  for (const Architecture& each : kArchitectures) {
    if (name == each.name) return &each;
    known.push_back(each.name);
  }
  return InvalidArgument(kArchitectureKey, " is ", JsonLine(name), ", which is not supported; wanted ",
                         absl::StrJoin(known, ", "));
}

// The keys that all have the width of a head in the models that are supported.
constexpr const char* kHeadWidths[] = {"attention.key_length", "attention.value_length", "rope.dimension_count"};

// Returns the rules from the names of GGUF to those of the model.
std::vector<Weights::Rule> RulesOf(const Architecture& architecture) {
  std::vector<Weights::Rule> rules;
  for (const auto& [from, to] : architecture.layers) {
    for (const char* const ending : {".weight", ".bias"}) {
      rules.push_back({absl::StrCat(from, ending), {absl::StrCat(to, ending)}});
    }
  }
  return rules;
}

// The tokens that generation needs.
constexpr Name kTokens[] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                            {"tokenizer.ggml.padding_token_id", "pad_token_id"}};
constexpr const char* kEndTokens[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                      "tokenizer.ggml.eom_token_id"};

// Returns the keys of `metadata` that begin with the name of the architecture, without that.
Json OwnKeys(const Json& metadata, const std::string& name) {
  Json own = Json::object();
  for (const auto& [key, value] : metadata.items()) {
    if (absl::StartsWith(key, name + ".")) own[key.substr(name.size() + 1)] = value;
  }
  return own;
}

// Returns the config.json of a model with this metadata and these tensors, whose shapes alone are read.
absl::StatusOr<Json> ConfigOf(const Json& metadata, absl::Span<const NamedTensor> tensors) {
  WEFT_ASSIGN_OR_RETURN(const Architecture* const found, FindArchitecture(metadata.value(kArchitectureKey, Json())));
  KeyReader general(metadata);
  general.Only("general.type", "model");
  general.Only("split.count", 1);
  const Json own = OwnKeys(metadata, found->name);
  KeyReader keys(own);
  Json config = {{kMark, found->name}, {"model_type", found->name}};
  config[found->activation.first] = found->activation.second;
  for (const auto& [key, published] : found->keys) {
    if (const Json* const value = keys.Find(key)) config[published] = *value;
  }
  const auto find = [&](absl::string_view name) {
    return absl::c_find_if(tensors, [&](const NamedTensor& each) { return each.name == name; });
  };
  if (const auto table = find(kTokenTable); table != tensors.end()) {
    config["vocab_size"] = table->tensor.type.shape.dim(0);
  }
  config["tie_word_embeddings"] = find(kHead) == tensors.end();

  int64_t width = 0, heads = 1;
  keys.Field("embedding_length", width);
  keys.Field("attention.head_count", heads);
  int64_t head_width = heads > 0 ? width / heads : 0;
  keys.Field("attention.key_length", head_width);
  for (const char* const key : kHeadWidths) keys.Only(key, head_width);
  keys.Only("expert_count", 0);
  keys.Only("attention.causal", true);
  keys.Only("rope.scaling.type", "none");
  keys.Harmless({"vocab_size", "tensor_data_layout"});
  WEFT_RETURN_IF_ERROR(general.Refused());
  WEFT_RETURN_IF_ERROR(Annotate(keys.Finish(), found->name));
  for (const auto& [key, published] : kTokens) {
    if (metadata.contains(key)) config[published] = metadata[key];
  }
  for (const char* const key : kEndTokens) {
    if (metadata.contains(key)) config["eos_token_id"].push_back(metadata[key]);
  }
  return config;
}

absl::StatusOr<TensorFile> OpenGguf(const std::string& path, WantedChecksum) {
  WEFT_ASSIGN_OR_RETURN(GgufFile opened, GgufFile::Open(path, GgufLists::kShort));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  return TensorFile{.tensors = {file->tensors().begin(), file->tensors().end()},
                    .unread = {file->unread().begin(), file->unread().end()},
                    .bytes = file};
}

absl::StatusOr<Json> ConfigInFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path, GgufLists::kShort));
  return Annotate(ConfigOf(file.metadata(), file.tensors()), path);
}

// Returns the GPT that a published config.json describes, in the layout of rotary positions that llama.cpp has.
absl::StatusOr<GptConfig> GptOf(const Architecture& architecture, const Json& config) {
  Json published = config;
  published.erase(kMark);
  WEFT_ASSIGN_OR_RETURN(GptConfig gpt, ConfigFromJson<GptConfig>(published));
  if (gpt.attention.rotary && architecture.in_pairs) gpt.attention.rotary = RotaryLayout::kPairs;
  return gpt;
}

absl::StatusOr<PublishedModel> Read(const std::string& path, const Json& config) {
  WEFT_ASSIGN_OR_RETURN(const Architecture* const found, FindArchitecture(config[kMark]));
  WEFT_ASSIGN_OR_RETURN(Weights weights, Weights::ReadStored(path));
  WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(RulesOf(*found)), path));
  PublishedGpt gpt;
  WEFT_ASSIGN_OR_RETURN(gpt.config, Annotate(GptOf(*found, config), path));
  // Files of GPT-2 may have the token table twice.
  gpt.config.tied_head = weights.Tie(absl::StrCat(found->layers[0].second, ".weight"), "lm_head.weight").ok();
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(gpt)));
  gpt.weights = std::move(weights);
  return PublishedModel(std::move(gpt));
}

constexpr absl::string_view kFiles[] = {"model.gguf"};

// The values of general.file_type: the format of most matrices. Readers need it for messages only.
constexpr std::pair<DType, uint32_t> kFileTypes[] = {{kF32, 0},   {kF16, 1},   {kQ4_0, 2}, {kQ4_1, 3},
                                                     {kQ8_0, 7},  {kQ5_0, 8},  {kQ5_1, 9}, {kQ4_K, 14},
                                                     {kQ5_K, 16}, {kQ6_K, 18}, {kBF16, 32}};

// Returns the metadata of a model with the published configuration `config`, except the tokenizer.
Json MetadataOf(const Architecture& architecture, const Json& config, DType dtype) {
  Json metadata = {{kArchitectureKey, architecture.name}, {"general.type", "model"}};
  const auto set = [&](absl::string_view key, const Json& value) {
    if (value.is_null()) return;
    metadata[absl::StrCat(architecture.name, ".", key)] =
        value.is_number_integer() ? Json(value.get<uint64_t>()) : value;  // sizes are unsigned
  };
  for (const auto& [key, published] : architecture.keys) set(key, config.value(published, Json()));
  if (architecture.in_pairs) {
    const int64_t width = config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>();
    for (const char* const key : kHeadWidths) set(key, width);
    set("vocab_size", config["vocab_size"]);
  }
  for (const auto& [type, number] : kFileTypes) {
    if (type == dtype) metadata["general.file_type"] = number;
  }
  if (IsBlockFormat(dtype)) metadata["general.quantization_version"] = uint32_t{2};
  return metadata;
}

// Adds the tokenizer of `folder` and the end tokens of its generation_config.json.
absl::Status AddTokenizer(const std::string& folder, int64_t vocabulary, Json* metadata) {
  WEFT_ASSIGN_OR_RETURN(const Json tokenizer, GgufOfTokenizer(folder, vocabulary));
  metadata->update(tokenizer);
  const std::string path = absl::StrCat(folder, "/", kGenerationConfig);
  if (!Exists(path)) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const Json settings, ReadJsonFile(path));
  const Json ends = settings.value("eos_token_id", Json()), list = ends.is_array() ? ends : Json::array({ends});
  if (list.size() > std::size(kEndTokens)) {
    return InvalidArgument("a GGUF file has at most ", std::size(kEndTokens), " end tokens, but eos_token_id is ",
                           ends.dump());
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int32_t> id = TokenId(list[i]);
    if (id.has_value()) (*metadata)[kEndTokens[i]] = static_cast<uint32_t>(*id);
  }
  return absl::OkStatus();
}

// Returns the dtype in which a weight is written: `wanted` or, without it, that of the weight. Rows in a file of GGUF
// are whole blocks.
DType WrittenDType(const ParameterSpec& spec, const Tensor& tensor, std::optional<DType> wanted) {
  const DType dtype = wanted ? HeldDType(spec, *wanted) : tensor.type.dtype;
  return tensor.type.shape.cols() % RowOf(dtype).block == 0 && tensor.type.shape.rank() > 1 ? dtype : kF32;
}

// Converts and writes one weight after the other, so that no second copy of all weights is in memory.
absl::Status WriteTensors(const std::string& path, const Json& metadata, const std::vector<NamedTensor>& tensors,
                          const std::vector<DType>& dtypes) {
  std::vector<GgufWriter::NamedType> types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    types.emplace_back(tensors[i].name, TensorType{dtypes[i], tensors[i].tensor.type.shape});
  }
  WEFT_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(path, metadata, types));
  for (size_t i = 0; i < tensors.size(); ++i) {
    Arena arena;
    const Tensor to = {types[i].second, arena.Allocate(types[i].second.bytes())};
    if (to.data == nullptr) return absl::ResourceExhaustedError("no memory for the weight '" + tensors[i].name + "'");
    ConvertWeight(tensors[i].tensor, to);
    WEFT_RETURN_IF_ERROR(writer.Add(to));
  }
  return writer.Finish();
}

absl::Status Write(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions& options) {
  PublishedGpt halves = {.config = WithFeedForward(gpt.config)};
  if (halves.config.attention.rotary) halves.config.attention.rotary = RotaryLayout::kHalves;
  WEFT_ASSIGN_OR_RETURN(const Json config, ToJson(halves.config));
  WEFT_ASSIGN_OR_RETURN(const Architecture* const found, Annotate(FindArchitecture(config["model_type"]), "GGUF"));
  const RotaryLayout layout = found->in_pairs ? RotaryLayout::kPairs : RotaryLayout::kHalves;
  WEFT_ASSIGN_OR_RETURN(PublishedGpt written, WithRotary(gpt, layout));
  if (gpt.config.names == GptConfig::Names::kGpt2) {
    WEFT_ASSIGN_OR_RETURN(written, WithBiases(written));
  }
  const std::vector<ParameterSpec> specs = ParametersOf(written);
  WEFT_RETURN_IF_ERROR(Parameters::Check("the model", written.weights.tensors(), specs));
  std::vector<DType> dtypes;
  for (const auto& [name, tensor] : written.weights.tensors()) {
    const auto spec =
        absl::c_find_if(specs, [&, &name = name](const ParameterSpec& each) { return each.name == name; });
    dtypes.push_back(WrittenDType(*spec, tensor, options.weights));
  }
  WEFT_RETURN_IF_ERROR(written.weights.Revert(RulesOf(*found)));
  const absl::Span<const NamedTensor> tensors = written.weights.tensors();
  const auto least =
      absl::c_min_element(dtypes, [](DType a, DType b) { return BytesOfElement(a) < BytesOfElement(b); });
  Json metadata = MetadataOf(*found, config, *least);
  WEFT_ASSIGN_OR_RETURN(const Json read, ConfigOf(metadata, tensors));
  WEFT_RETURN_IF_ERROR(CheckReadBack(absl::StrCat("a GGUF file of ", found->name), written.config, GptOf(*found, read),
                                     /*training=*/false));
  WEFT_RETURN_IF_ERROR(AddTokenizer(folder, gpt.config.vocabulary, &metadata));
  return WriteTensors(absl::StrCat(folder, "/", kFiles[0]), metadata, {tensors.begin(), tensors.end()}, dtypes);
}

}  // namespace

constexpr Container kGguf = {
    .what = "a GGUF file",
    .beginnings = {"GGUF"},
    .endings = {kGgufEnding},
    .advice = "Wanted this file as the model, or a folder with no other such file and no config.json",
    .open = OpenGguf,
    .config = ConfigInFile};

constexpr Format kGgufFormat = {
    .name = "gguf",
    .mark = "",
    .recognizes = [](const Json& config) { return config.contains(kMark); },
    .only_family = &PublishedGpt::kFamily,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .files = kFiles,
    .keeps_dtypes = true,
    .is_whole = true,
};

}  // namespace weft
