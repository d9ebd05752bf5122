// Each kind of file has a list of tokens or a map from tokens to ids.
#include "weft/formats/token_texts.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/sentencepiece_model.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

// Sets the text of `id`. Ids that no token has keep an empty text.
void Set(const Json& id, const std::string& text, Texts* texts) {
  constexpr int64_t kMaxId = 1 << 24;
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxId) return;
  const auto index = id.get<size_t>();
  if (index >= texts->size()) texts->resize(index + 1);
  (*texts)[index] = text;
}

void AddMap(const Json& map, Texts* texts) {
  for (const auto& [text, id] : map.items()) Set(id, text, texts);
}

// Reads the texts of a tokenizer.json: a model with a vocabulary, and added tokens.
Texts OfTokenizerJson(const Json& json) {
  Texts texts;
  if (const auto model = json.find("model"); model != json.end() && model->is_object()) {
    const auto vocabulary = model->find("vocab");
    if (vocabulary != model->end() && vocabulary->is_object()) AddMap(*vocabulary, &texts);
  }
  const auto added = json.find("added_tokens");
  if (added == json.end() || !added->is_array()) return texts;
  for (const Json& token : *added) {
    if (!token.is_object() || !token.contains("id") || !token.contains("content")) continue;
    if (token["content"].is_string()) Set(token["id"], token["content"].get<std::string>(), &texts);
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
  WEFT_ASSIGN_OR_RETURN(const Json json, ParseLargeJsonObject(contents));
  if (name == "tokenizer.json") return OfTokenizerJson(json);
  Texts texts;
  AddMap(json, &texts);
  return texts;
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

}  // namespace weft
