// This file reads how sentence-transformers (https://www.sbert.net) makes one vector of a text. In a model's folder,
// modules.json lists the modules that process a text, and names the folder of the pooling's config.json.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/gguf_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

// Old folders have a key for each kind of pooling, which pooling_mode replaces.
absl::Status ReadPooling(const Json& json, int64_t width, SentenceFormat* format) {
  KeyReader keys(json);
  bool mean = false, first = false, root = false, include_prompt = true;
  std::string mode;
  keys.Field("pooling_mode", mode);
  keys.Field("pooling_mode_mean_tokens", mean);
  keys.Field("pooling_mode_mean_sqrt_len_tokens", root);  // has the same direction as the mean
  keys.Field("pooling_mode_cls_token", first);
  const bool several = mode.empty() && mean + root + first > 1;
  mean = mode.empty() ? mean || root : mode == "mean" || mode == "mean_sqrt_len_tokens";
  first = mode.empty() ? first : mode == "cls";
  if (!mode.empty() && !mean && !first) keys.Refuse("pooling_mode", "mean or cls");
  keys.Only("word_embedding_dimension", width);
  keys.Only("embedding_dimension", width);
  keys.Field("include_prompt", include_prompt);
  if (!include_prompt && !format->prompt.empty()) keys.Refuse("include_prompt", "true, because there is a prompt");
  WEFT_RETURN_IF_ERROR(keys.Finish());
  if (several) return InvalidArgument("pooling must be the mean or the first token's vector, but several are set");
  format->pooling = first ? Pooling::kFirst : Pooling::kMean;
  return absl::OkStatus();
}

// Returns the pooling of the GGUF file `path`, or of the one in the folder `path`, as the config.json of a Pooling
// module has it. Returns null if there is no such file or it names no pooling.
Json GgufPooling(const std::string& path) {
  const absl::StatusOr<Json> config = ReadFileConfig(ModelFile(path));
  return config.ok() && config->is_object() ? config->value(kGgufPooling, Json()) : Json();
}

// Reads config_sentence_transformers.json. Without a `name`, the default prompt is used.
absl::Status ReadPrompt(const Json& json, std::string name, SentenceFormat* format) {
  KeyReader keys(json);
  keys.Only("model_type", "SentenceTransformer");
  keys.Only("truncate_dim", Json());
  keys.Harmless({"__version__", "requirements", "similarity_fn_name"});  // an embedding does not depend on them
  const Json* const prompts = keys.Find("prompts");
  std::string usual;
  keys.Field("default_prompt_name", usual);
  WEFT_RETURN_IF_ERROR(keys.Finish());
  if (prompts != nullptr ? !prompts->is_object() : keys.IsNull("prompts")) {
    return InvalidArgument("prompts is ", prompts == nullptr ? "null" : JsonLine(*prompts), ", wanted an object");
  }
  if (name.empty()) name = usual;
  if (name.empty()) return absl::OkStatus();
  if (prompts != nullptr && prompts->contains(name)) {
    const Json& prompt = (*prompts)[name];
    if (prompt.is_string()) format->prompt = prompt;
    if (prompt.is_string() || prompt.is_null()) return absl::OkStatus();
  }
  return InvalidArgument("prompts has no text '", name, "'; it is ",
                         prompts == nullptr ? "missing" : JsonLine(*prompts));
}

// Reads sentence_bert_config.json. Models of other families had other names for this file.
absl::Status ReadTransformer(const Json& json, SentenceFormat* format) {
  KeyReader keys(json);
  keys.Field("max_seq_length", format->max_length);
  keys.Field("do_lower_case", format->lower_case);
  keys.Only("transformer_task", "feature-extraction");
  keys.Only("module_output_name", "token_embeddings");
  keys.Only("modality_config", {{"text", {{"method", "forward"}, {"method_output_name", "last_hidden_state"}}}});
  for (const char* const key : {"model_args", "model_kwargs"}) {
    Json rest = keys.Find(key) == nullptr ? Json() : *keys.Find(key);
    if (rest.is_object()) rest.erase("attn_implementation");  // which changes no embedding
    if (!rest.empty()) keys.Refuse(key, "at most attn_implementation");
  }
  keys.Harmless({"query_length", "document_length", "unpad_inputs"});  // for other kinds of encoders, or only for speed
  return keys.Finish();
}

}  // namespace

std::vector<TokenizerFile> PoolingFiles(const std::string& gguf) {
  const Json pooling = GgufPooling(gguf);
  if (pooling.is_null()) return {};
  constexpr char kModules[] =
      R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  return {{gguf, "modules.json", kModules}, {gguf, "1_Pooling/config.json", JsonLine(pooling)}};
}

absl::StatusOr<SentenceFormat> ReadSentenceFormat(const std::string& folder, const BertConfig& config,
                                                  const std::string& prompt) {
  SentenceFormat format;
  if (!IsRun(folder)) format.max_length = config.context;
  if (const Json pooling = GgufPooling(folder); !pooling.is_null()) {
    WEFT_RETURN_IF_ERROR(ReadPooling(pooling, config.width, &format));
  }
  const auto read = [&](const std::string& name, auto&& of_json) -> absl::Status {
    const std::string file = absl::StrCat(folder, "/", name);
    Json json = Json::object();
    if (Exists(file)) {
      WEFT_ASSIGN_OR_RETURN(json, ReadJsonFile(file));
    }
    return Annotate(of_json(json), file);
  };
  WEFT_RETURN_IF_ERROR(read("tokenizer_config.json", [&](const Json& json) {
    const std::optional<int64_t> length = WholeNumber(json.value("model_max_length", Json()));  // 1e30: no limit
    if (length) format.max_length = std::min(*length, config.context);
    return absl::OkStatus();
  }));
  const std::string path = folder + "/modules.json";
  if (!Exists(path)) {
    if (prompt.empty()) return format;
    return InvalidArgument(folder, ": there is no prompt '", prompt, "', because modules.json is missing");
  }
  WEFT_RETURN_IF_ERROR(
      read("config_sentence_transformers.json", [&](const Json& json) { return ReadPrompt(json, prompt, &format); }));
  for (const char* const name : kSentenceConfigs) {
    if (!Exists(absl::StrCat(folder, "/", name))) continue;
    WEFT_RETURN_IF_ERROR(read(name, [&](const Json& json) { return ReadTransformer(json, &format); }));
    break;
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(const Json parsed, Annotate(ParseJsonObject(absl::StrCat("{\"modules\":", text, "}")), path));
  for (const Json& module : parsed["modules"]) {
    std::string type, place;
    if (module.is_object()) {
      KeyReader keys(module);
      keys.Field("type", type);
      keys.Field("path", place);
      if (!keys.Refused().ok()) return Annotate(keys.Refused(), path);
    }
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Pooling") {
      const std::string pooling = absl::StrCat(folder, "/", place);
      WEFT_ASSIGN_OR_RETURN(const Json json, ReadConfig(pooling));
      WEFT_RETURN_IF_ERROR(Annotate(ReadPooling(json, config.width, &format), ConfigPath(pooling)));
    } else if (name != "Normalize" && (name != "Transformer" || !place.empty())) {
      return InvalidArgument(path, ": the module ", module.dump(),
                             " is not supported; wanted a Transformer in the folder itself, "
                             "Pooling and Normalize");
    }
  }
  return format;
}

}  // namespace weft
