// Each file is read by a KeyReader of its own, so that an error names the file. A later file has only the keys that
// earlier files lack.
#include "weft/formats/generation.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/gguf.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/gguf_keys.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Settings = GenerationSettings;

// `off` is the value that disables what the key controls. The options of sampling check the ranges of these numbers.
constexpr struct {
  const char* key;
  std::optional<double> Settings::*field;
  double off;
} kNumbers[] = {
    {"temperature", &Settings::temperature, 1},
    {"top_p", &Settings::top_p, 1},
    {"min_p", &Settings::min_p, 0},
    {"typical_p", &Settings::typical_p, 1},
    {"repetition_penalty", &Settings::repetition_penalty, 1},
    {"length_penalty", &Settings::length_penalty, 1},
};
constexpr struct {
  const char* key;
  std::optional<int64_t> Settings::*field;
  int64_t low, off;
} kCounts[] = {
    {"top_k", &Settings::top_k, 0, 0},
    {"num_beams", &Settings::num_beams, 1, 1},
    {"max_new_tokens", &Settings::max_new_tokens, 1, -1},
    {"max_length", &Settings::max_length, 0, -1},
    {"min_length", &Settings::min_length, 0, 0},
    {"no_repeat_ngram_size", &Settings::no_repeat_ngram_size, 0, 0},
};
// Values that disable keys without a field.
constexpr std::pair<const char*, double> kOtherOff[] = {
    {"num_beam_groups", 1},      {"diversity_penalty", 0},
    {"epsilon_cutoff", 0},       {"eta_cutoff", 0},
    {"guidance_scale", 1},       {"encoder_no_repeat_ngram_size", 0},
    {"num_return_sequences", 1}, {"encoder_repetition_penalty", 1},
    {"min_new_tokens", 0},
};
// These keys tell how to compute and what else to return, and change no text.
constexpr absl::string_view kHarmless[] = {
    "_from_model_config", "_commit_hash", "transformers_version", "use_cache", "cache_implementation", "cache_config",
    "max_cache_len", "compile_config", "disable_compile", "output_attentions", "output_hidden_states", "output_scores",
    "output_logits", "return_dict_in_generate",
    // Of drafts, which change no token.
    "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    "assistant_early_exit", "assistant_lookbehind", "target_lookbehind", "prompt_lookup_num_tokens",
    "max_matching_ngram_size"};

struct Source {
  std::string path;
  Json keys = Json::object();
};

bool IsGguf(const std::string& model) { return absl::EndsWith(BaseOf(model), kGgufEnding) && !IsFolder(BaseOf(model)); }

bool IsOff(const std::string& key, const Json& value) {
  const auto off = [&](const auto& row) { return key == row.key && value == row.off; };
  if (value.is_null() || value == false || value == "" || (value.is_structured() && value.empty())) return true;
  return absl::c_any_of(kNumbers, off) || absl::c_any_of(kCounts, off) ||
         absl::c_any_of(kOtherOff, [&](const auto& row) { return key == row.first && value == row.second; });
}

// Returns the files of `model` that have settings, each with the keys that count.
absl::StatusOr<std::vector<Source>> Sources(const std::string& model) {
  const std::string folder = BaseOf(model), path = absl::StrCat(folder, "/", kGenerationConfig);
  std::vector<Source> sources;
  const bool is_folder = IsFolder(folder), exists = Exists(path);
  if (exists) {
    WEFT_ASSIGN_OR_RETURN(Json json, ReadJsonFile(path));
    sources.push_back({path, std::move(json)});
  }
  WEFT_ASSIGN_OR_RETURN(const Json config, is_folder ? ReadConfig(folder) : ReadFileConfig(folder));
  if (FindModelType(config) == nullptr) return sources;
  Source rest = {.path = is_folder ? ConfigPath(folder) : folder};
  for (const char* const key : kGenerationKeys) {
    const bool special = absl::EndsWith(key, "_token_id") && !absl::StartsWith(key, "forced_") &&
                         key != absl::string_view("eos_token_id");
    const bool counts = !exists || (special && sources[0].keys.value(key, Json()).is_null());
    const auto found = config.find(key);
    if (counts && found != config.end()) rest.keys[key] = *found;
  }
  sources.push_back(std::move(rest));
  return sources;
}

// Appends the tokens that are the value of `key`: a number or a list of numbers.
void ReadTokens(KeyReader& keys, const char* key, std::vector<int32_t>* tokens) {
  const Json* const json = keys.Find(key);
  if (json == nullptr) return;
  for (const Json& each : json->is_array() ? *json : Json::array({*json})) {
    const std::optional<int32_t> token = TokenId(each);
    if (!token) return keys.Refuse(key, "a token's number, or a list of them");
    tokens->push_back(*token);
  }
}

void ReadToken(KeyReader& keys, const char* key, int64_t vocabulary, std::optional<int32_t>* token) {
  std::vector<int32_t> tokens;
  ReadTokens(keys, key, &tokens);
  if (tokens.empty()) return;
  if (tokens.size() > 1 || tokens[0] < 0 || tokens[0] >= vocabulary) {
    return keys.Refuse(key, absl::StrCat("a token of the vocabulary, 0 to ", vocabulary - 1));
  }
  *token = tokens[0];
}

// Reads a token that the model may never need. It is unset if it is not in the vocabulary.
void ReadUnneeded(KeyReader& keys, const char* key, int64_t vocabulary, std::optional<int32_t>* token) {
  const Json* const json = keys.Find(key);
  const std::optional<int32_t> id = json == nullptr ? std::nullopt : TokenId(*json);
  if (id >= 0 && id < vocabulary) *token = id;
}

// Reads the lists of single tokens in bad_words_ids. If a list has several tokens, the key is not used.
void ReadBadWords(KeyReader& keys, Settings* settings) {
  const Json* const json = keys.Find("bad_words_ids");
  if (json == nullptr || !json->is_array()) return;
  std::vector<int32_t> tokens;
  for (const Json& each : *json) {
    const std::optional<int32_t> token = each.is_array() && each.size() == 1 ? TokenId(each[0]) : std::nullopt;
    if (!token) return;
    if (!absl::c_linear_search(settings->end, *token)) tokens.push_back(*token);
  }
  settings->excluded.insert(settings->excluded.end(), tokens.begin(), tokens.end());
}

void Read(KeyReader& keys, int64_t vocabulary, Settings* settings) {
  ReadTokens(keys, "eos_token_id", &settings->end);
  ReadTokens(keys, "forced_eos_token_id", &settings->forced_end);
  ReadToken(keys, "decoder_start_token_id", vocabulary, &settings->decoder_start);
  ReadToken(keys, "forced_bos_token_id", vocabulary, &settings->forced_begin);
  ReadUnneeded(keys, "bos_token_id", vocabulary, &settings->begin);
  ReadUnneeded(keys, "pad_token_id", vocabulary, &settings->padding);
  ReadTokens(keys, "suppress_tokens", &settings->excluded);
  ReadBadWords(keys, settings);
  keys.Field("do_sample", settings->do_sample);
  if (const Json* const json = keys.Find("early_stopping")) {
    settings->early_stopping = json->is_string() ? json->get<std::string>() : json->dump();
    if (!json->is_boolean() && *json != "never") keys.Refuse("early_stopping", "true, false or \"never\"");
  }
  for (const auto& row : kNumbers) keys.Field(row.key, settings->*row.field);
  for (const auto& row : kCounts) {
    keys.Field(row.key, settings->*row.field);
    const bool given = keys.Find(row.key) != nullptr;
    if (given && *(settings->*row.field) < row.low) keys.Refuse(row.key, absl::StrCat("a number from ", row.low));
  }
}

}  // namespace

std::vector<std::string> GenerationSettings::Unused(absl::Span<const absl::string_view> used) const {
  std::vector<std::string> notes;
  for (const auto& [file, key, value] : given) {
    if (absl::c_linear_search(used, key)) continue;
    notes.push_back(absl::StrCat(file, ": ", key, " is ", value, ", which is not used"));
  }
  return notes;
}

std::optional<int32_t> FindToken(const Tokenizer& tokenizer, absl::string_view text) {
  for (const AddedToken& token : tokenizer.special_token_list()) {
    if (token.text == text) return token.id;
  }
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.TokenText(id) == text) return id;
  }
  return std::nullopt;
}

absl::StatusOr<GenerationSettings> ReadGenerationSettings(const std::string& model, const Tokenizer& tokenizer,
                                                          int64_t vocabulary) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Source> sources, Sources(model));
  Settings settings = {.published = !sources.empty()};
  const auto unknown = [&](int32_t id) { return id < 0 || id >= vocabulary; };
  for (const auto& [path, json] : sources) {
    KeyReader keys(json);
    Read(keys, vocabulary, &settings);
    if (!keys.Refused().ok()) return Annotate(keys.Refused(), path);
    for (const auto& [key, value] : json.items()) {
      const bool token = absl::EndsWith(key, "_token_id") && !absl::StartsWith(key, "forced_") &&
                         (key != "eos_token_id" || absl::c_none_of(settings.end, unknown));
      if (token || IsOff(key, value) || absl::c_linear_search(kHarmless, key)) continue;
      settings.given.push_back({fs::path(path).filename().string(), key, JsonLine(value)});
    }
  }
  if (settings.end.empty() && (sources.empty() || fs::path(sources[0].path).filename() != kGenerationConfig)) {
    const SpecialTokens& special = tokenizer.special_tokens();
    if (special.end.has_value()) settings.end.push_back(*special.end);
    // A model without such files may separate texts with a begin token.
    if (sources.empty() && special.begin.has_value() && special.begin != special.end) {
      settings.end.push_back(*special.begin);
    }
  }
  if (settings.do_sample == true && !IsGguf(model)) {  // the defaults of transformers
    settings.temperature = settings.temperature.value_or(1);
    settings.top_k = settings.top_k.value_or(50);
  }
  if (IsGguf(model)) {
    for (const AddedToken& token : tokenizer.special_token_list()) {
      const bool ends = absl::c_linear_search(kGgufEndTexts, token.text);
      if (ends && !absl::c_linear_search(settings.end, token.id)) settings.end.push_back(token.id);
    }
  }
  for (std::vector<int32_t>* const tokens : {&settings.end, &settings.forced_end, &settings.excluded}) {
    tokens->erase(std::remove_if(tokens->begin(), tokens->end(), unknown), tokens->end());
  }
  return settings;
}

absl::StatusOr<Json> GenerationConfigOf(const std::string& model) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Source> sources, Sources(model));
  Json config = Json::object();
  for (const Source& source : sources) config.update(source.keys);
  return config;
}

absl::Status AddEndTokens(const std::string& model, const Tokenizer& tokenizer, int64_t vocabulary, Json* config) {
  if (config->contains("eos_token_id") && !IsGguf(model)) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const GenerationSettings settings, ReadGenerationSettings(model, tokenizer, vocabulary));
  if (!settings.end.empty()) (*config)["eos_token_id"] = settings.end;
  return absl::OkStatus();
}

}  // namespace weft
