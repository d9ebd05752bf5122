// Converts a tokenizer.json to the metadata of a GGUF file.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"
#include "weft/text/tokenizers/gguf_vocabulary.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Metadata = nlohmann::ordered_json;

// Returns `json` with the defaults of keys that some files leave out, so that equal meanings are equal.
Json Full(Json json) {
  if (json.is_object() && json.value("type", "") == "ByteLevel") {
    json["trim_offsets"] = true;  // changes no token
    json.emplace("use_regex", true);
  }
  if (json.is_structured()) {
    for (Json& item : json) item = Full(std::move(item));
  }
  return json;
}

absl::Status CannotSay(absl::string_view what) {
  return InvalidArgument("the tokenizer can't be written to a GGUF file: ", what);
}

// Each of these functions writes the model of tokenizer.json and what surrounds it. They may change the `tokens`.
absl::Status WriteByteLevel(const Json& json, GgufTokens*, Metadata* metadata) {
  const Json pre_tokenizer = Full(json.value("pre_tokenizer", Json()));
  const Json& model = json["model"];
  const auto found = absl::c_find_if(kGgufPreTokenizers, [&](const GgufPreTokenizer& each) {
    return Full(Json::parse(each.json)) == pre_tokenizer && each.whole_words == model.value("ignore_merges", false);
  });
  const Json normalizer = json.value("normalizer", Json());
  if (found == std::end(kGgufPreTokenizers) ||
      !(normalizer.is_null() || normalizer == Json::parse(found->normalizer))) {
    return CannotSay("it is none of the kinds of byte-level BPE that have a name there");
  }
  Metadata merges = Metadata::array();
  for (const Json& merge : model.value("merges", Json::array())) {
    const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    merges.push_back(pair ? absl::StrCat(merge[0].get<std::string>(), " ", merge[1].get<std::string>())
                          : merge.get<std::string>());
  }
  (*metadata)[absl::StrCat(kGgufPrefix, "pre")] = std::string(found->names[0]);
  (*metadata)[absl::StrCat(kGgufPrefix, "merges")] = std::move(merges);
  return absl::OkStatus();
}

// GGUF marks the pieces that begin a word, not those that continue one.
absl::Status WriteWordPiece(const Json& json, GgufTokens* tokens, Metadata* metadata) {
  const Json normalizer = json.value("normalizer", Json());
  if (!normalizer.is_object() || normalizer.value("type", "") != "BertNormalizer" ||
      normalizer.value("clean_text", Json()) == false || normalizer.value("handle_chinese_chars", Json()) == false ||
      json.value("pre_tokenizer", Json()) != Json{{"type", "BertPreTokenizer"}} ||
      json["model"].value("continuing_subword_prefix", "##") != "##") {
    return CannotSay("its WordPiece is not that of a BERT");
  }
  const bool lowercase = normalizer.value("lowercase", true);
  const Json accents = normalizer.value("strip_accents", Json());
  (*metadata)[absl::StrCat(kGgufPrefix, kLowercase)] = lowercase;
  (*metadata)[absl::StrCat(kGgufPrefix, kStripAccents)] = accents.is_boolean() ? accents.get<bool>() : lowercase;
  for (size_t id = 0; id < tokens->size(); ++id) {
    if (tokens->types[id] != kNormalToken) continue;
    std::string& text = tokens->texts[id];
    text = absl::StartsWith(text, "##") ? text.substr(2) : absl::StrCat(kSpace, text);
  }
  return absl::OkStatus();
}

// The type of the model in tokenizer.json, the value of the key model, and the function that writes it.
constexpr struct {
  const char *name, *model;
  absl::Status (*write)(const Json& json, GgufTokens* tokens, Metadata* metadata);
} kWriters[] = {{"BPE", "gpt2", WriteByteLevel}, {"WordPiece", "bert", WriteWordPiece}};

// Returns the tokens of tokenizer.json by their numbers, filled up to `size`.
absl::StatusOr<GgufTokens> TokensOf(const Json& json, int64_t size) {
  GgufTokens tokens;
  const auto set = [&](const std::string& text, const Json& number, GgufTokenType type) {
    const std::optional<int64_t> id = WholeNumber(number);
    if (!id || *id < 0 || *id >= size)
      return CannotSay(absl::StrCat("the id of ", Quoted(text), " is ", number.dump()));
    tokens.texts[static_cast<size_t>(*id)] = text;
    tokens.types[static_cast<size_t>(*id)] = type;
    return absl::OkStatus();
  };
  for (int64_t id = 0; id < size; ++id) tokens.texts.push_back(absl::StrCat("[PAD", id, "]"));
  tokens.types.assign(tokens.size(), kUnusedToken);
  for (const auto& [text, id] : json["model"]["vocab"].items()) WEFT_RETURN_IF_ERROR(set(text, id, kNormalToken));
  for (const Json& token : json.value("added_tokens", Json::array())) {
    for (const char* const key : {"lstrip", "rstrip", "single_word"}) {
      if (token.value(key, Json()) == true) return CannotSay(absl::StrCat(token["content"].dump(), " has ", key));
    }
    WEFT_RETURN_IF_ERROR(
        set(token["content"], token["id"], token.value("special", false) ? kControlToken : kUserDefinedToken));
  }
  return tokens;
}

}  // namespace

absl::StatusOr<Metadata> GgufOfTokenizer(const std::string& folder, int64_t size) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder);
  if (absl::IsNotFound(tokenizer.status())) return Metadata{{absl::StrCat(kGgufPrefix, "model"), "none"}};
  if (!tokenizer.ok()) return tokenizer.status();
  const absl::StatusOr<std::string> text = ReadFile(folder + "/tokenizer.json");
  if (!text.ok()) return CannotSay("it is not in a tokenizer.json");
  WEFT_ASSIGN_OR_RETURN(const Json json, ParseLargeJsonObject(*text));
  const std::string type = json.contains("model") ? json["model"].value("type", "") : "";
  const auto* const writer = FindRow(kWriters, type);
  if (writer == nullptr || !json["model"]["vocab"].is_object()) {
    return CannotSay("it is neither byte-level BPE nor WordPiece");
  }
  WEFT_ASSIGN_OR_RETURN(GgufTokens tokens, TokensOf(json, size));
  Metadata metadata = {{absl::StrCat(kGgufPrefix, "model"), writer->model}};
  WEFT_RETURN_IF_ERROR(writer->write(json, &tokens, &metadata));
  metadata[absl::StrCat(kGgufPrefix, "tokens")] = tokens.texts;
  metadata[absl::StrCat(kGgufPrefix, "token_type")] = tokens.types;
  // As llama.cpp's converter does, the tokens around the texts of a BERT count as begin and end tokens, too.
  SpecialTokens special = (*tokenizer)->special_tokens();
  if (!special.begin) special.begin = special.classification;
  if (!special.end) special.end = special.separator;
  for (const auto& [key, role] : kGgufRoles) {
    const std::optional<int32_t> id = special.*role;
    if (id.has_value()) metadata[absl::StrCat(kGgufPrefix, key)] = static_cast<uint32_t>(*id);
  }
  const std::vector<int32_t> wrapped = (*tokenizer)->Wrap({-1}).ids;
  const bool begins = wrapped.front() >= 0, ends = wrapped.back() >= 0, bert = type == "WordPiece";
  if (wrapped.size() != 1u + begins + ends || (bert && !(begins && ends)) ||
      (begins && wrapped.front() != special.begin) || (ends && wrapped.back() != special.end)) {
    return CannotSay("its texts have other tokens around them than the begin and the end token");
  }
  metadata[absl::StrCat(kGgufPrefix, "add_bos_token")] = begins;
  metadata[absl::StrCat(kGgufPrefix, "add_eos_token")] = ends;
  const absl::StatusOr<std::string> config = ReadFile(folder + "/tokenizer_config.json");
  Json chat = config.ok() ? ParseJson(*config).value("chat_template", Json()) : Json();
  for (const Json& each : chat.is_array() ? Json(chat) : Json::array()) {
    if (each.is_object() && each.value("name", Json()) == "default") chat = each.value("template", Json());
  }
  const absl::StatusOr<std::string> own = ReadFile(folder + "/chat_template.jinja");
  if (own.ok()) chat = *own;
  if (chat.is_array() && !chat.empty()) return CannotSay("none of its chat templates is called default");
  if (chat.is_string()) metadata[kGgufTemplate] = chat.get<std::string>();
  return metadata;
}

}  // namespace weft
