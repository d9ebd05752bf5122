// WriteTokenizerJson writes all the keys that Hugging Face's tokenizers write.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "weft/base/json.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Appends a new key to an object in constant time: operator[] would search all keys first.
void Append(Json* object, std::string key, Json value) {
  object->get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json ItemsOf(const WrapFormat& format, absl::FunctionRef<const std::string&(int32_t id)> text_of, Json* special) {
  Json list = Json::array();
  for (const WrapItem& item : format) {
    if (item.kind != WrapItem::kToken) {
      list.push_back({{"Sequence", {{"id", item.kind == WrapItem::kFirst ? "A" : "B"}, {"type_id", item.segment}}}});
      continue;
    }
    const std::string& text = text_of(item.id);
    list.push_back({{"SpecialToken", {{"id", text}, {"type_id", item.segment}}}});
    (*special)[text] = {{"id", text}, {"ids", Json::array({item.id})}, {"tokens", Json::array({text})}};
  }
  return list;
}

// Returns the template of the model's input formats, or `otherwise` if a text stands alone in them.
template <class Model>
Json PostProcessor(const Model& model, Json otherwise) {
  if (model.single.size() <= 1 && model.pair.empty()) return otherwise;
  return TemplateJson(
      model.single, model.pair, [&](int32_t id) -> auto& { return model.vocabulary.token(id); });
}

// Returns the text of a file with `sections` after the keys that are the same in all files.
std::string Write(const Json& sections) {
  Json json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json.update(sections);
  return json.dump(2) + "\n";
}

}  // namespace

Json AddedTokensJson(absl::Span<const AddedToken> tokens) {
  Json added = Json::array();
  for (const AddedToken& token : tokens) {
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", token.single_word},
                     {"lstrip", token.strip_before},
                     {"rstrip", token.strip_after},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  return added;
}

Json BertNormalizerJson(const BertNormalizer& normalizer) {
  return {{"type", "BertNormalizer"},
          {"clean_text", normalizer.clean_text},
          {"handle_chinese_chars", normalizer.separate_cjk},
          {"strip_accents", normalizer.strip_accents},
          {"lowercase", normalizer.lowercase}};
}

Json ByteLevelJson(bool prefix_space) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
}

Json TemplateJson(const WrapFormat& single, const WrapFormat& pair,
                  absl::FunctionRef<const std::string&(int32_t id)> text) {
  const WrapFormat no_pair = {{WrapItem::kFirst}, {WrapItem::kSecond, 0, 1}};  // TemplateProcessing needs one
  Json special = Json::object();
  Json post_processor = {{"type", "TemplateProcessing"},
                         {"single", ItemsOf(single, text, &special)},
                         {"pair", ItemsOf(pair.empty() ? no_pair : pair, text, &special)}};
  post_processor["special_tokens"] = special;
  return post_processor;
}

std::string WriteTokenizerJson(const BpeModel& model) {
  Json vocabulary = Json::object(), merges = Json::array();
  absl::flat_hash_map<int32_t, std::string> special;
  for (const AddedToken& token : model.special) special[token.id] = token.text;
  for (int32_t id = 0; id < model.vocabulary.size(); ++id) {
    const auto found = special.find(id);
    Append(&vocabulary, found == special.end() ? ToByteAlphabet(model.vocabulary.token(id)) : found->second, id);
  }
  for (const auto& [left, right] : model.merges) {
    merges.push_back(ToByteAlphabet(left) + " " + ToByteAlphabet(right));
  }
  return Write({{"added_tokens", AddedTokensJson(model.special)},
                {"normalizer", nullptr},
                {"pre_tokenizer", ByteLevelJson(model.prefix_space)},
                {"post_processor", PostProcessor(model, ByteLevelJson(model.prefix_space))},
                {"decoder", ByteLevelJson(model.prefix_space)},
                {"model",
                 {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", model.unknown ? Json(model.vocabulary.token(*model.unknown)) : Json()},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", model.fuse_unknown},
                  {"byte_fallback", false},
                  {"ignore_merges", model.whole_words},
                  {"vocab", vocabulary},
                  {"merges", merges}}}});
}

std::optional<std::string> PublishedCharacters(absl::string_view contents, const std::vector<std::string>& special) {
  const absl::StatusOr<nlohmann::json> own = ParseLargeJsonObject(contents);
  if (!own.ok() || !CharacterTokenizer::FromJson(*own).ok()) return std::nullopt;
  Json vocabulary = Json::object();
  std::vector<AddedToken> added;
  for (const std::string& token : special) {
    added.push_back({token, static_cast<int32_t>(added.size())});
    Append(&vocabulary, token, vocabulary.size());
  }
  for (const auto& character : (*own)["characters"]) Append(&vocabulary, character, vocabulary.size());
  return Write({{"added_tokens", AddedTokensJson(added)},
                {"normalizer", nullptr},
                {"pre_tokenizer",
                 {{"type", "Split"}, {"pattern", {{"Regex", ".|\\n"}}}, {"behavior", "Isolated"}, {"invert", false}}},
                {"post_processor", nullptr},
                {"decoder", {{"type", "Fuse"}}},
                {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}}}});
}

std::string WriteTokenizerJson(const WordPieceModel& model) {
  Json vocabulary = Json::object();
  for (int32_t id = 0; id < model.vocabulary.size(); ++id) Append(&vocabulary, model.vocabulary.token(id), id);
  return Write({{"added_tokens", AddedTokensJson(model.special)},
                {"normalizer", BertNormalizerJson(model.normalizer)},
                {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                {"post_processor", PostProcessor(model, nullptr)},
                {"decoder", {{"type", "WordPiece"}, {"prefix", model.prefix}, {"cleanup", true}}},
                {"model",
                 {{"type", "WordPiece"},
                  {"unk_token", model.unknown},
                  {"continuing_subword_prefix", model.prefix},
                  {"max_input_chars_per_word", model.max_word_length},
                  {"vocab", vocabulary}}}});
}

}  // namespace weft
