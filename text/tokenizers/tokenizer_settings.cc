// tokenizer_config.json and special_tokens_map.json say more of the tokenizer beside them, in transformers' words.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

using Json = nlohmann::json;

}  // namespace

absl::StatusOr<AddedToken> ReadAddedToken(const Json& entry) {
  if (entry.is_string()) return AddedToken{.text = entry.get<std::string>(), .id = -1};
  AddedToken token;
  WEFT_ASSIGN_OR_RETURN(token.text, Get<std::string>(entry, "content", ""));
  WEFT_ASSIGN_OR_RETURN(token.id, Get<int32_t>(entry, "id", -1));
  WEFT_ASSIGN_OR_RETURN(token.special, Get(entry, "special", false));
  WEFT_ASSIGN_OR_RETURN(token.strip_before, Get(entry, "lstrip", false));
  WEFT_ASSIGN_OR_RETURN(token.strip_after, Get(entry, "rstrip", false));
  WEFT_ASSIGN_OR_RETURN(token.single_word, Get(entry, "single_word", false));
  WEFT_ASSIGN_OR_RETURN(token.normalized, Get(entry, "normalized", false));
  if (token.text.empty()) return InvalidArgument("it has no content");
  return token;
}

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const Json& json, const Json& special_tokens_map) {
  TokenizerSettings settings;
  WEFT_ASSIGN_OR_RETURN(settings.clean_up, Get(json, "clean_up_tokenization_spaces", false));
  WEFT_ASSIGN_OR_RETURN(settings.split_special, Get(json, "split_special_tokens", false));
  // The classes of no model in particular leave the pre-tokenizer as tokenizer.json says.
  const Json &type = Member(json, "tokenizer_class"), &space = Member(json, "add_prefix_space");
  if (!space.is_null() && type != "PreTrainedTokenizerFast" && type != "TokenizersBackend") {
    WEFT_ASSIGN_OR_RETURN(settings.prefix_space, Get(json, "add_prefix_space", false));
  }
  const Json& all = Member(json, "added_tokens_decoder");
  for (const auto& [id, entry] : all.items()) {
    WEFT_ASSIGN_OR_RETURN(AddedToken token,
                          Annotate(ReadAddedToken(entry), absl::StrCat("added_tokens_decoder, ", id)));
    settings.tokens.push_back(std::move(token));
  }
  const auto read = [&](const Json& entry, const char* key) -> absl::StatusOr<std::string> {
    WEFT_ASSIGN_OR_RETURN(AddedToken token, Annotate(ReadAddedToken(entry), key));
    token.special = true;
    settings.special.push_back(std::move(token));
    return settings.special.back().text;
  };
  const auto find = [&](const char* key) -> const Json* {
    for (const Json* const object : {&special_tokens_map, &json}) {
      if (object->is_object() && object->contains(key) && (object == &json || all.is_null())) return &(*object)[key];
    }
    return nullptr;
  };
  for (const auto& [key, role] : kTokenRoles) {
    const Json* const value = find(key);
    if (value == nullptr) continue;
    std::optional<std::string> text;
    if (!value->is_null()) {
      WEFT_ASSIGN_OR_RETURN(text, read(*value, key));
    }
    settings.roles.emplace_back(role, std::move(text));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* const list = find(key);
    if (list == nullptr) continue;
    for (const Json& entry : *list) WEFT_RETURN_IF_ERROR(read(entry, key).status());
  }
  return settings;
}

}  // namespace weft
