// In training, the end token follows each source and each target. The tokenizer of a run does not say so itself.
#include "weft/formats/translation_tokenizer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/formats/token_texts.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns the post_processor "texts, end token" of Hugging Face's tokenizers.
Json EndAfterText(const std::string& end, int32_t id) {
  const auto text = [](const char* name, int type) { return Json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  const Json token = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
  Json post = {{"type", "TemplateProcessing"}};
  post["single"] = Json::array({text("A", 0), token});
  post["pair"] = Json::array({text("A", 0), text("B", 1), token});
  post["special_tokens"][end] = {{"id", end}, {"ids", Json::array({id})}, {"tokens", Json::array({end})}};
  return post;
}

// Returns the first token of `key`, a number or a list of numbers.
std::optional<int32_t> FirstToken(const Json& json, const char* key) {
  Json token = json.value(key, Json());
  if (token.is_array() && !token.empty()) token = token.front();
  return TokenId(token);
}

}  // namespace

absl::StatusOr<TranslationTokens> ReadTranslationTokens(const std::string& folder,
                                                        const std::optional<TokenNames>& names) {
  TranslationTokens tokens;
  const absl::StatusOr<Json> published = ReadJsonFile(absl::StrCat(folder, "/", kGenerationConfig));
  const absl::StatusOr<std::unique_ptr<Tokenizer>> loaded = LoadTokenizer(folder);
  if (absl::IsNotFound(loaded.status()) && !published.ok()) return tokens;
  if (!loaded.ok() && !published.ok()) return loaded.status();
  const Tokenizer* const tokenizer = loaded.ok() ? loaded->get() : nullptr;
  const SpecialTokens special = tokenizer == nullptr ? SpecialTokens() : tokenizer->special_tokens();
  tokens.begin = special.begin.value_or(tokens.begin);
  tokens.end = special.end.value_or(tokens.end);
  tokens.padding = special.padding.value_or(tokens.end);
  if (names.has_value() && tokenizer != nullptr) {
    tokens.begin = FindToken(*tokenizer, names->start).value_or(tokens.begin);
    tokens.end = FindToken(*tokenizer, names->end).value_or(tokens.end);
    tokens.source_begin = names->source_begin;
    tokens.source_end = names->source_end;
  }
  if (!published.ok()) return tokens;
  tokens.published = true;
  for (const char* const key : {"bos_token_id", "decoder_start_token_id"}) {
    tokens.begin = FirstToken(*published, key).value_or(tokens.begin);
  }
  tokens.end = FirstToken(*published, "eos_token_id").value_or(tokens.end);
  tokens.padding = FirstToken(*published, "pad_token_id").value_or(tokens.padding);
  if (tokenizer == nullptr) return tokens;
  constexpr int32_t kText = -1;
  const std::vector<int32_t> format = tokenizer->Wrap({kText}).ids;
  tokens.source_begin = format.front() != kText;
  tokens.source_end = format.back() != kText;
  return tokens;
}

absl::Status WriteTranslationTokenizer(const std::string& folder, int64_t context, const TranslationTokens& tokens) {
  const absl::StatusOr<std::vector<TokenizerFile>> files = TokenizerFiles(folder);
  if (!files.ok() || files->front().name != "tokenizer.json") return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(folder));
  const SpecialTokens& special = tokenizer->special_tokens();
  if (!special.end.has_value()) return absl::OkStatus();
  const std::string path = folder + "/tokenizer.json";
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TokenTexts(path));
  const auto text = [&](int32_t id) { return texts.at(static_cast<size_t>(id)); };
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(nlohmann::json json, ParseLargeJsonObject(contents));
  if (!json.contains("model") || texts.size() <= static_cast<size_t>(tokens.end)) return absl::OkStatus();
  json["post_processor"] = EndAfterText(text(tokens.end), tokens.end);
  WEFT_RETURN_IF_ERROR(WriteFile(path, {json.dump(2), "\n"}));
  Json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"model_max_length", context},
                   {"clean_up_tokenization_spaces", false},
                   {"model_input_names", {"input_ids", "attention_mask"}}};
  if (special.begin.has_value()) settings["bos_token"] = text(*special.begin);
  settings["eos_token"] = text(tokens.end);
  settings["pad_token"] = text(tokens.padding);
  if (special.unknown.has_value()) settings["unk_token"] = text(*special.unknown);
  return WriteJson(folder + "/tokenizer_config.json", settings);
}

}  // namespace weft
