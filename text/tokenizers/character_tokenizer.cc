#include "weft/text/tokenizers/character_tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {

CharacterTokenizer::CharacterTokenizer(std::vector<int32_t> characters) : characters_(std::move(characters)) {
  for (size_t i = 0; i < characters_.size(); ++i) ids_.emplace(characters_[i], static_cast<int32_t>(i));
}

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::FromText(absl::string_view text) {
  if (text.empty()) return InvalidArgument("the text is empty");
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::vector<bool> seen(kCodePoints);
  ForEachCharacter(text, [&](int32_t c, absl::string_view) { seen[static_cast<size_t>(c)] = true; });
  std::vector<int32_t> characters;
  for (int32_t code_point = 0; code_point < kCodePoints; ++code_point) {
    if (seen[static_cast<size_t>(code_point)]) characters.push_back(code_point);
  }
  return CharacterTokenizer(std::move(characters));
}

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::FromJson(const nlohmann::json& json) {
  if (!json.is_object() || json.value("type", nlohmann::json()) != "character" || !json.contains("characters") ||
      !json["characters"].is_array() || json["characters"].empty()) {
    return InvalidArgument("not a tokenizer of type \"character\" with a list of \"characters\"");
  }
  std::vector<int32_t> characters;
  for (const nlohmann::json& entry : json["characters"]) {
    const std::string text = entry.is_string() ? entry.get<std::string>() : "";
    const Utf8Character c = CharacterAt(text, 0);
    if (c.bytes == 0 || c.bytes != text.size()) {
      return InvalidArgument("entry ", characters.size(), " is not one character");
    }
    characters.push_back(c.code_point);
  }
  CharacterTokenizer tokenizer(std::move(characters));
  if (tokenizer.ids_.size() != tokenizer.characters_.size()) {
    return InvalidArgument("a character is listed twice");
  }
  return tokenizer;
}

std::string CharacterTokenizer::ToJson() const {
  nlohmann::ordered_json json = {{"type", "character"}, {"characters", nlohmann::ordered_json::array()}};
  for (const int32_t code_point : characters_) json["characters"].push_back(ToUtf8(code_point));
  return json.dump() + "\n";
}

absl::StatusOr<std::vector<int32_t>> CharacterTokenizer::EncodeOrdinary(absl::string_view text, bool /*begins*/) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes == 0) return CheckUtf8(text);
    const auto found = ids_.find(c.code_point);
    if (found == ids_.end()) {
      return InvalidArgument("the vocabulary of ", characters_.size(), " characters does not have ",
                             Describe(c.code_point), ", at byte ", i);
    }
    ids.push_back(found->second);
    i += c.bytes;
  }
  return ids;
}

std::string CharacterTokenizer::Join(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) text += ToUtf8(characters_[static_cast<size_t>(id)]);
  return text;
}

}  // namespace weft
