// In training, the end token follows each source and each target. The tokenizer of a run does not say so itself.
#include "weft/formats/translation_tokenizer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/published.h"
#include "weft/formats/token_texts.h"
#include "weft/text/load_tokenizer.h"

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

}  // namespace

absl::StatusOr<TranslationTokens> WriteTranslationTokenizer(const std::string& folder, int64_t context) {
  TranslationTokens tokens;
  const absl::StatusOr<std::vector<TokenizerFile>> files = TokenizerFiles(folder);
  if (absl::IsNotFound(files.status())) return tokens;
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(folder));
  const SpecialTokens& special = tokenizer->special_tokens();
  tokens.begin = special.begin.value_or(tokens.begin);
  tokens.end = special.end.value_or(tokens.end);
  tokens.padding = special.padding.value_or(tokens.end);
  const std::string path = folder + "/tokenizer.json";
  if (!files.ok() || files->front().name != "tokenizer.json" || !special.end.has_value()) return tokens;

  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TokenTexts(path));
  const auto text = [&](int32_t id) { return texts.at(static_cast<size_t>(id)); };
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(nlohmann::json json, ParseLargeJsonObject(contents));
  if (!json.contains("model") || texts.size() <= static_cast<size_t>(tokens.end)) return tokens;
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
  WEFT_RETURN_IF_ERROR(WriteJson(folder + "/tokenizer_config.json", settings));
  return tokens;
}

}  // namespace weft
