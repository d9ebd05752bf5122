// This file defines the format of llama2.c (https://github.com/karpathy/llama2.c): one file with a header and then
// arrays of f32. Each kind of weight in a layer has one array, which holds the weights of all layers in order.
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr uint32_t kMagic = 0x616b3432;                        // the first number of version 1
constexpr size_t kHeaderBytes[] = {7 * sizeof(int32_t), 256};  // by version
constexpr absl::string_view kFiles[] = {"model.bin"};
constexpr size_t kTiedAt = 9 * sizeof(int32_t);  // offset of the header's byte for a tied head, in version 1

// Returns the model of a file with the sizes of `sizes`.
GptConfig ModelOf(const GptConfig& sizes) {
  return {.vocabulary = sizes.vocabulary,
          .context = sizes.context,
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width,
          .feed_forward = sizes.feed_forward,
          .activation = Activation::kSilu,
          .tied_head = sizes.tied_head,
          .bias = false,
          .norm = {.kind = NormKind::kRmsNorm},
          .gated = true,
          .attention = {.key_value_heads = sizes.attention.key_value_heads, .rotary = RotaryLayout::kPairs},
          .names = GptConfig::Names::kLlama};
}

// Returns the number of rotary cosines and sines in a file.
int64_t TableSize(const GptConfig& config, int version) {
  return version == 0 ? config.context * (config.width / config.heads) : 0;
}

// The names of the tensors of each array, where # is the layer. kTables has the rotary cosines and sines of all
// positions, which are not read; in version 1 it has no bytes.
constexpr absl::string_view kTable = "model.embed_tokens.weight",
                            kAttentionNorm = "model.layers.#.input_layernorm.weight",
                            kQuery = "model.layers.#.self_attn.q_proj.weight",
                            kKey = "model.layers.#.self_attn.k_proj.weight",
                            kValue = "model.layers.#.self_attn.v_proj.weight",
                            kOutput = "model.layers.#.self_attn.o_proj.weight",
                            kNorm = "model.layers.#.post_attention_layernorm.weight",
                            kGate = "model.layers.#.mlp.gate_proj.weight",
                            kDown = "model.layers.#.mlp.down_proj.weight", kUp = "model.layers.#.mlp.up_proj.weight",
                            kLastNorm = "model.norm.weight", kTables = "(rotary tables)", kHead = "lm_head.weight";
// The arrays of both versions in the order of the file.
constexpr absl::string_view kArrays[][13] = {
    {kTable, kAttentionNorm, kQuery, kKey, kValue, kOutput, kNorm, kGate, kDown, kUp, kLastNorm, kTables, kHead},
    {kAttentionNorm, kNorm, kLastNorm, kTable, kQuery, kKey, kValue, kOutput, kGate, kDown, kUp, kTables, kHead}};

// Returns the names of all tensors and kTables, in the order of the file. A tied head is not in the file.
std::vector<std::string> NamesOf(const GptConfig& config, int version) {
  std::vector<std::string> names;
  for (const absl::string_view array : kArrays[version]) {
    if (array == kHead && config.tied_head) continue;
    for (int64_t i = 0; i < (absl::StrContains(array, '#') ? config.layers : 1); ++i) {
      names.push_back(absl::StrReplaceAll(array, {{"#", absl::StrCat(i)}}));
    }
  }
  return names;
}

// Returns the size in bytes of a file for `config`, which is valid, without recording all of its layers.
uint64_t FileSize(GptConfig config, int version) {
  const int64_t layers = std::exchange(config.layers, 1);
  int64_t numbers = TableSize(config, version);
  for (const ParameterSpec& spec : ParametersOf(PublishedGpt{config})) {
    numbers += spec.type.shape.elements() * (absl::StrContains(spec.name, ".layers.") ? layers : 1);
  }
  return kHeaderBytes[version] + sizeof(float) * static_cast<uint64_t>(numbers);
}

absl::StatusOr<PublishedModel> Read(const std::string& path, const Json&) {
  WEFT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view bytes = file.bytes();
  std::array<int32_t, 9> header = {};
  bytes.copy(reinterpret_cast<char*>(header.data()), sizeof(header));
  const int version = static_cast<uint32_t>(header[0]) == kMagic ? 1 : 0;
  if (version == 1 && header[1] != 1) {
    return InvalidArgument(path, ": version ", header[1], " of llama2.c's files, wanted 1");
  }
  const int32_t* const sizes = header.data() + (version == 1 ? 2 : 0);
  PublishedGpt gpt;
  GptConfig& config = gpt.config;
  config = ModelOf({.vocabulary = std::abs(static_cast<int64_t>(sizes[5])),
                    .context = sizes[6],
                    .layers = sizes[2],
                    .heads = sizes[3],
                    .width = sizes[0],
                    .feed_forward = sizes[1],
                    .tied_head = version == 1 ? bytes.size() > kTiedAt && bytes[kTiedAt] != 0 : sizes[5] > 0,
                    .attention = {.key_value_heads = sizes[4]}});
  absl::Status valid = Validate(config);
  if (valid.ok()) valid = CheckSizes({{"feed_forward", config.feed_forward, 1, 16 * kMaxFeatures}});
  const std::string none = absl::StrCat(path, " is not a checkpoint of llama2.c");
  if (!valid.ok()) return Annotate(valid, none);
  if (const uint64_t wanted = FileSize(config, version); wanted != bytes.size()) {
    return InvalidArgument(none, ": it has ", bytes.size(), " bytes, but its header asks for ", wanted);
  }
  absl::flat_hash_map<std::string, TensorType> types;
  for (const ParameterSpec& spec : ParametersOf(gpt)) types[spec.name] = spec.type;
  size_t at = kHeaderBytes[version];
  for (const std::string& name : NamesOf(config, version)) {
    if (name == kTables) {
      at += sizeof(float) * static_cast<size_t>(TableSize(config, version));
      continue;
    }
    const Tensor tensor = {types.at(name), file.data() + at};
    WEFT_RETURN_IF_ERROR(gpt.weights.AddCopy(name, tensor));
    at += tensor.type.bytes();
  }
  return PublishedModel(std::move(gpt));
}

absl::Status Write(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions& options) {
  const GptConfig& config = gpt.config;
  const int version = options.llama2c_version;
  WEFT_RETURN_IF_ERROR(
      CheckExpressible("llama2.c", {{config.names != GptConfig::Names::kLlama, "the model is GPT-2's"},
                                    {!config.attention.rotary, "positions are not rotary"},
                                    {version != 0 && version != 1, "the version is neither 0 nor 1"}}));
  GptConfig in_pairs = config;
  in_pairs.attention.rotary = RotaryLayout::kPairs;
  const absl::StatusOr<GptConfig> written = ModelOf(config);
  WEFT_RETURN_IF_ERROR(CheckReadBack("llama2.c", in_pairs, written, /*training=*/false));
  WEFT_ASSIGN_OR_RETURN(PublishedGpt pairs, WithRotary(gpt, RotaryLayout::kPairs));
  pairs.config = WithFeedForward(pairs.config);
  if (pairs.config.attention.key_value_heads == 0) pairs.config.attention.key_value_heads = config.heads;
  WEFT_RETURN_IF_ERROR(Parameters::Check("the checkpoint", pairs.weights.tensors(), ParametersOf(pairs)));

  std::string header(kHeaderBytes[version], '\0');
  size_t end = 0;
  const auto put = [&](int64_t value) {
    const int32_t number = static_cast<int32_t>(value);
    std::memcpy(header.data() + end, &number, sizeof(number));
    end += sizeof(number);
  };
  if (version == 1) {
    put(kMagic);
    put(version);
    header[kTiedAt] = config.tied_head ? 1 : 0;
  }
  const int64_t vocabulary = version == 0 && !config.tied_head ? -config.vocabulary : config.vocabulary;
  for (int64_t size : {config.width, pairs.config.feed_forward, config.layers, config.heads,
                       pairs.config.attention.key_value_heads, vocabulary, config.context}) {
    put(size);
  }
  std::vector<float> tables(static_cast<size_t>(TableSize(config, version)));
  const size_t half = static_cast<size_t>(config.width / config.heads / 2), cosines = tables.size() / 2;
  for (size_t i = 0; i < cosines; ++i) {
    const float angle =
        static_cast<float>(i / half) / std::pow(10000.0f, static_cast<float>(i % half) / static_cast<float>(half));
    tables[i] = std::cos(angle);
    tables[cosines + i] = std::sin(angle);
  }
  const Tensor rotary = {{kF32, {static_cast<int64_t>(tables.size())}}, reinterpret_cast<std::byte*>(tables.data())};
  std::vector<absl::string_view> parts = {header};
  for (const std::string& name : NamesOf(config, version)) {
    const Tensor& tensor = name == kTables ? rotary : *pairs.weights.Find(name);
    parts.emplace_back(tensor.as<const char>(), tensor.type.bytes());
  }
  return WriteFile(absl::StrCat(folder, "/", kFiles[0]), parts);
}

}  // namespace

constexpr Format kLlama2cFormat = {
    .name = "llama2.c",
    .recognizes = [](const Json& config) { return config.is_null(); },
    .families = kOnlyGpt,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .files = kFiles,
};

}  // namespace weft
