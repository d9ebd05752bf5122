// Each kind of file has a list of tokens or a map from tokens to ids. In the training of a translation, the end token
// follows each source and each target; the tokenizer of a run does not say so itself.
#include "weft/formats/token_texts.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/sentencepiece_model.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

using LargeJson = nlohmann::json;  // Its keys are sorted, so that a search among a tokenizer's many keys is fast.
using Texts = std::vector<std::string>;

// Sets the text of `id`. Ids that no token has keep an empty text.
void Set(const LargeJson& id, const std::string& text, Texts* texts) {
  constexpr int64_t kMaxId = 1 << 24;
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxId) return;
  const auto index = id.get<size_t>();
  if (index >= texts->size()) texts->resize(index + 1);
  (*texts)[index] = text;
}

void AddMap(const LargeJson& map, Texts* texts) {
  for (const auto& [text, id] : map.items()) Set(id, text, texts);
}

// Reads the texts of a tokenizer.json: a model with a vocabulary, and added tokens.
Texts OfTokenizerJson(const LargeJson& json) {
  Texts texts;
  const LargeJson &vocabulary = Member(Member(json, "model"), "vocab"), &added = Member(json, "added_tokens");
  if (vocabulary.is_object()) AddMap(vocabulary, &texts);
  if (vocabulary.is_array()) {  // of Unigram: texts with their scores
    for (const LargeJson& each : vocabulary) {
      const bool has_text = each.is_array() && !each.empty() && each[0].is_string();
      texts.push_back(has_text ? each[0].get<std::string>() : "");
    }
  }
  if (!added.is_array()) return texts;
  for (const LargeJson& token : added) {
    const LargeJson& text = Member(token, "content");
    if (text.is_string()) Set(Member(token, "id"), text.get<std::string>(), &texts);
  }
  return texts;
}

absl::StatusOr<Texts> OfSentencePiece(absl::string_view contents) {
  SentencePieceModel model;
  if (const std::string error = model.Load({contents.data(), contents.size()}); !error.empty()) {
    return InvalidArgument(error);
  }
  Texts texts;
  for (int32_t id = 0; id < model.size(); ++id) texts.push_back(model.piece(id));
  return texts;
}

absl::StatusOr<Texts> OfFile(const std::string& name, const std::string& contents) {
  if (absl::EndsWith(name, ".model")) return OfSentencePiece(contents);
  if (name == "vocab.txt") return Texts(absl::StrSplit(absl::StripSuffix(contents, "\n"), '\n'));
  WEFT_ASSIGN_OR_RETURN(const LargeJson json, ParseLargeJsonObject(contents));
  if (name == "tokenizer.json") return OfTokenizerJson(json);
  Texts texts;
  AddMap(json, &texts);
  return texts;
}

// Returns the first token of `key`, a number or a list of numbers.
std::optional<int32_t> FirstToken(const Json& json, const char* key) {
  Json token = json.value(key, Json());
  if (token.is_array() && !token.empty()) token = token.front();
  return TokenId(token);
}

}  // namespace

absl::StatusOr<Texts> TokenTexts(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<TokenizerFile> files, TokenizerFiles(path));
  for (const TokenizerFile& file : files) {
    const bool known = absl::EndsWith(file.name, ".json") || absl::EndsWith(file.name, ".model");
    if (!known && file.name != "vocab.txt") continue;
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file.path));
    WEFT_ASSIGN_OR_RETURN(Texts texts, Annotate(OfFile(file.name, contents), file.path));
    if (!texts.empty()) return texts;
  }
  return InvalidArgument(files[0].path, ": this file does not spell the texts of its tokens; wanted tokenizer.json, ",
                         "vocab.json, vocab.txt or a .model of SentencePiece");
}

std::vector<std::string> TokenListNames(absl::string_view side) {
  std::vector<std::string> names;
  for (const absl::string_view each : {side, absl::string_view("shared")}) {
    for (const char* const ending : {".json", ".txt"}) names.push_back(absl::StrCat(each, "_vocabulary", ending));
  }
  return names;
}

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
  const auto text = [&](int32_t id) -> const std::string& { return texts.at(static_cast<size_t>(id)); };
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(LargeJson json, ParseLargeJsonObject(contents));
  if (!json.contains("model") || texts.size() <= static_cast<size_t>(tokens.end)) return absl::OkStatus();
  const WrapItem first = {WrapItem::kFirst}, second = {WrapItem::kSecond, 0, 1}, end = {WrapItem::kToken, tokens.end};
  json["post_processor"] = TemplateJson({first, end}, {first, second, end}, text);
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
