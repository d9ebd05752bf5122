// This file defines the format of CTranslate2 (https://github.com/OpenNMT/CTranslate2), for encoder-decoder
// Transformers. A written folder has the files that the program CTranslate2 opens: model.bin, config.json and the
// vocabularies. A model as OpenNMT trains them also gets a model.safetensors with CTranslate2's names, whose
// config.json has the sizes. The reader reads model.safetensors or, if there is none, model.bin.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/translators.h"
#include "weft/formats/weights.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Positions = TransformerConfig::Positions;

void ListCTranslate2(Keys& keys, TransformerConfig& config) {
  keys.Field("source_vocab", config.source_vocabulary);
  keys.Field("target_vocab", config.target_vocabulary);
  keys.Field("encoder_layers", config.encoder_layers);
  keys.Field("decoder_layers", config.decoder_layers);
  keys.Field("num_heads", config.heads);
  keys.Field("d_model", config.width);
  keys.Field("ffn_dim", config.feed_forward);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Choice("activation", kActivations, config.activation);
}

// The names of layers and of the tensors outside them, in CTranslate2 and in this project.
std::vector<Weights::Rule> OuterNames() {
  std::vector<Weights::Rule> rules;
  for (const char* const side : {"encoder", "decoder"}) {
    rules.push_back({absl::StrCat(side, "/embeddings/weight"), {absl::StrCat(side, ".embed_tokens.weight")}});
    rules.push_back({absl::StrCat(side, "/layer_norm/gamma"), {absl::StrCat(side, ".layer_norm.weight")}});
    rules.push_back({absl::StrCat(side, "/layer_norm/beta"), {absl::StrCat(side, ".layer_norm.bias")}});
    rules.push_back({absl::StrCat(side, "/layer_#"), {absl::StrCat(side, ".layers.#")}});
  }
  rules.push_back({"decoder/projection/#", {"lm_head.#"}});
  return rules;
}

// The names of tensors after that of the layer. If this project has several tensors, CTranslate2's tensor has the rows
// of all of them, in this order. In a norm, CTranslate2 calls the weight "gamma" and the bias "beta".
std::vector<Weights::Rule> InnerNames() {
  const std::pair<const char*, std::vector<const char*>> kParts[] = {
      {"self_attention/layer_norm", {"self_attn_layer_norm"}},
      {"self_attention/linear_0", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {"self_attention/linear_1", {"self_attn.out_proj"}},
      {"attention/layer_norm", {"encoder_attn_layer_norm"}},
      {"attention/linear_0", {"encoder_attn.q_proj"}},
      {"attention/linear_1", {"encoder_attn.k_proj", "encoder_attn.v_proj"}},
      {"attention/linear_2", {"encoder_attn.out_proj"}},
      {"ffn/layer_norm", {"final_layer_norm"}},
      {"ffn/linear_0", {"fc1"}},
      {"ffn/linear_1", {"fc2"}}};
  std::vector<Weights::Rule> rules;
  for (const auto& [theirs, ours] : kParts) {
    const bool norm = absl::EndsWith(theirs, "layer_norm");
    for (const auto& [array, of_norm] : {std::pair{"weight", "gamma"}, {"bias", "beta"}}) {
      Weights::Rule& rule = rules.emplace_back();
      rule.from = absl::StrCat("#/", theirs, "/", norm ? of_norm : array);
      for (const char* const name : ours) rule.to.push_back(absl::StrCat("#.", name, ".", array));
    }
  }
  return rules;
}

// Reads the keys that the program CTranslate2 writes beside model.bin.
absl::StatusOr<TransformerConfig> ConfigOfModelBin(const Json& json) {
  KeyReader keys(json);
  TransformerConfig config;
  ListCTranslate2(keys, config);
  keys.Harmless(kTokenNameKeys);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Only("multi_query_attention", false);
  WEFT_RETURN_IF_ERROR(keys.Finish());
  return config;
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  const std::string bin = folder + "/model.bin";
  const bool safetensors = Exists(WeightsPath(folder)) || !Exists(bin);
  WEFT_ASSIGN_OR_RETURN(
      TransformerConfig config,
      Annotate(safetensors ? CTranslate2ConfigFromJson(json) : ConfigOfModelBin(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(std::optional<TokenNames> tokens, Annotate(ReadTokenNames(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, safetensors ? ReadFolderWeights(folder, {}) : ReadModelBin(bin, &config));
  const bool usual = !safetensors && json.value("layer_norm_epsilon", Json()).is_null();
  if (usual && config.norm.kind == NormKind::kRmsNorm) config.norm.epsilon = 1e-6;  // the default of CTranslate2
  const std::string path = safetensors ? weights.path() : bin;
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), path));
  WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(OuterNames()), path));
  WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(InnerNames()), path));
  const absl::Status fits = weights.Fit(ParametersOf(PublishedTransformer{config}));
  if (!fits.ok()) return safetensors ? fits : Annotate(fits, bin);
  return PublishedModel(PublishedTransformer{config, std::move(weights), std::move(tokens)});
}

// Adds the keys of CTranslate2's own config.json. If `folder` has a tokenizer and no vocabularies, writes the
// vocabulary, with unused tokens up to the number of rows of the model's tables.
absl::Status AddVocabulary(const std::string& folder, const PublishedTransformer& model, Json* json) {
  const TransformerConfig& config = model.config;
  TokenNames names = model.tokens.value_or(TokenNames());
  const bool lists = absl::c_any_of(TokenListNames("source"),
                                    [&](const std::string& name) { return Exists(absl::StrCat(folder, "/", name)); });
  if (!lists && !absl::IsNotFound(TokenizerFiles(folder).status())) {
    WEFT_ASSIGN_OR_RETURN(std::vector<std::string> texts, TokenTexts(folder));
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(folder));
    const SpecialTokens& special = tokenizer->special_tokens();
    WEFT_ASSIGN_OR_RETURN(const TranslationTokens tokens, ReadTranslationTokens(folder, model.tokens));
    std::vector<int32_t> format = tokenizer->Wrap({tokens.end}).ids;
    if (tokens.source_begin && format.front() == special.begin) format.erase(format.begin());
    const bool usual = !tokens.published || static_cast<size_t>(absl::c_count(format, tokens.end)) == format.size();
    WEFT_RETURN_IF_ERROR(
        CheckExpressible("CTranslate2's Transformer", {{!usual, "sources have other special tokens"}}));
    const auto text = [&](const std::optional<int32_t>& id, const std::string& otherwise) {
      return id.has_value() && static_cast<size_t>(*id) < texts.size() ? texts[static_cast<size_t>(*id)] : otherwise;
    };
    names = {.unknown = text(special.unknown, text(special.padding, names.unknown)),
             .begin = text(special.begin, text(tokens.begin, names.begin)),
             .end = text(tokens.end, names.end),
             .start = text(tokens.begin, names.start),
             .source_begin = tokens.source_begin,
             .source_end = tokens.source_end};
    for (const auto& [side, rows] :
         {std::pair{"source", config.source_vocabulary}, {"target", config.target_vocabulary}}) {
      WEFT_RETURN_IF_ERROR(CheckVocabulary(folder, static_cast<int64_t>(texts.size()), rows));
      Json tokens = texts;
      for (int64_t id = static_cast<int64_t>(texts.size()); id < rows; ++id) {
        tokens.push_back(absl::StrCat("<unused", id, ">"));
      }
      const bool shared = config.source_vocabulary == config.target_vocabulary;
      const std::string name = TokenListNames(shared ? "shared" : side).front();
      WEFT_RETURN_IF_ERROR(WriteJson(absl::StrCat(folder, "/", name), tokens));
    }
  }
  WriteTokenNames(names, json);
  json->update({{"layer_norm_epsilon", config.norm.epsilon}, {"multi_query_attention", false}});
  return absl::OkStatus();
}

absl::Status Write(const PublishedTransformer& given, const std::string& folder, const WriteModelOptions&) {
  PublishedTransformer model = given;
  model.config.positions = Resolve(model.config.positions, model.config.attention, Positions::kSinusoidal);
  WEFT_RETURN_IF_ERROR(Validate(model.config));
  const std::string unusual = UnusualOption(model.config);
  WEFT_RETURN_IF_ERROR(CheckExpressible(
      "CTranslate2's Transformer", {{!unusual.empty(), unusual.c_str()},
                                    {model.config.dtype != kF32, "dtype is f64"},
                                    {model.config.activation == Activation::kReluSquared, "activation is relu2"}}));
  Weights weights = model.weights;
  WEFT_RETURN_IF_ERROR(Annotate(weights.Revert(InnerNames()), "the model"));
  WEFT_RETURN_IF_ERROR(weights.Revert(OuterNames()));
  WEFT_RETURN_IF_ERROR(WriteModelBin(folder + "/model.bin", model.config, weights));
  const absl::StatusOr<Json> open_nmt = ToCTranslate2Json(model.config);
  Json json = open_nmt.ok() ? *open_nmt : Json::object();
  WEFT_RETURN_IF_ERROR(AddVocabulary(folder, model, &json));
  if (open_nmt.ok()) return WriteModelFolder(folder, json, weights);
  return WriteJson(ConfigPath(folder), json);
}

constexpr absl::string_view kFiles[] = {kConfigFile, kWeightsFile, "model.bin"};

constexpr const ModelFamily* kFamilies[] = {&PublishedTransformer::kFamily};

}  // namespace

absl::StatusOr<TransformerConfig> CTranslate2ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  TransformerConfig config = {.pre_norm = true,
                              .positions = Positions::kSinusoidalHalves,
                              .first_position = 1,
                              .tied_head = false,
                              .head_bias = true};
  ListCTranslate2(keys, config);
  keys.Only("source_has_bos_eos", false);
  keys.Only("multi_query_attention", false);
  WEFT_RETURN_IF_ERROR(keys.Refused());  // not Finish, because all other keys are annotations
  WEFT_RETURN_IF_ERROR(Validate(config));
  return config;
}

absl::StatusOr<Json> ToCTranslate2Json(const TransformerConfig& config) {
  constexpr char kName[] = "CTranslate2's Transformer";
  WEFT_RETURN_IF_ERROR(Validate(config));
  WEFT_RETURN_IF_ERROR(CheckExpressible(kName, {{!config.pre_norm, "pre_norm is false"}}));
  KeyWriter keys;
  TransformerConfig full = WithFeedForward(config);
  ListCTranslate2(keys, full);
  Json json = std::move(keys).Finish();
  absl::StatusOr<TransformerConfig> read = CTranslate2ConfigFromJson(json);
  if (read.ok()) read->context = config.context;  // sinusoids have no end
  WEFT_RETURN_IF_ERROR(CheckReadBack(kName, config, read, /*training=*/false));
  return json;
}

constexpr Format kCTranslate2Format = {
    .name = "ctranslate2",
    .mark = "ffn_dim or add_source_eos (CTranslate2)",
    .recognizes = [](const Json& config) { return config.contains("ffn_dim") || config.contains("add_source_eos"); },
    .families = kFamilies,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .files = kFiles,
};

}  // namespace weft
