// A list of tokens doesn't say how to split a text into them, so TokenList handles two simple cases: characters, and
// texts that are split already.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

class TokenList final : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(absl::string_view file, const std::string& unknown) {
    WEFT_RETURN_IF_ERROR(CheckUtf8(file));
    std::vector<std::string> tokens;
    // A list in JSON is recognised as such, because a list of lines that begins with "[" is hardly ever valid JSON.
    const nlohmann::json json = ParseJson(file);
    if (json.is_array() && absl::c_all_of(json, [](const auto& token) { return token.is_string(); })) {
      tokens = json.get<std::vector<std::string>>();
    } else if (!file.empty()) {
      tokens = absl::StrSplit(absl::StripSuffix(file, "\n"), '\n');
    }
    for (std::string& token : tokens) {
      if (token.size() > 1 && token.back() == '\r') token.pop_back();
    }
    auto list = std::make_unique<TokenList>();
    WEFT_ASSIGN_OR_RETURN(list->vocabulary_, Vocabulary::Create(std::move(tokens)));
    if (!list->vocabulary_.Find(unknown).has_value()) WEFT_RETURN_IF_ERROR(list->vocabulary_.Add(unknown));
    std::vector<AddedToken> special;
    for (int32_t id = 0; id < list->vocabulary_.size(); ++id) {
      const std::string& token = list->vocabulary_.token(id);
      if (token == "<blank>" || token == "<s>" || token == "</s>" || token == "<unk>" || token == unknown) {
        special.push_back({token, id});
      } else if (token.empty() || CharacterAt(token, 0).bytes != token.size()) {
        list->characters_ = false;
      }
    }
    list->SetAdded(std::move(special));
    SpecialTokens roles = list->special_tokens();
    roles.unknown = list->vocabulary_.Find(unknown);
    list->SetRoles(roles);
    list->KeepUnknown();
    return list;
  }

  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool /*begins*/) const override {
    WEFT_RETURN_IF_ERROR(CheckUtf8(text));
    std::vector<int32_t> ids;
    const int32_t unknown = *special_tokens().unknown;
    const auto add = [&](absl::string_view token) {
      const std::optional<int32_t> id = vocabulary_.Find(token);
      ids.push_back(id.has_value() && !IsSpecial(*id) ? *id : unknown);
    };
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
      if (!characters_) add(word);
      for (size_t i = 0, bytes = 0; characters_ && i < word.size(); i += bytes) {
        bytes = CharacterAt(word, i).bytes;
        add(word.substr(i, bytes));
      }
    }
    return ids;
  }
  std::string Join(absl::Span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (!characters_ && !text.empty()) text += ' ';
      text += vocabulary_.token(id);
    }
    return text;
  }

 private:
  Vocabulary vocabulary_;
  bool characters_ = true;  // whether all ordinary tokens are single characters
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenList(absl::string_view file, const std::string& unknown) {
  return TokenList::Create(file, unknown);
}

}  // namespace weft
