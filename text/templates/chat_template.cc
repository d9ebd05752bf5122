#include "weft/text/templates/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kDefault[] = "default";
// Of private use, as in transformers: no text has them after MarkSpecialTokens except around a special token.
constexpr absl::string_view kBegin = "\xF3\xB0\x80\x80", kEnd = "\xF3\xB0\x80\x81";

struct Source {
  std::string path, text;
};
using Sources = std::map<std::string, Source>;  // templates by name

// Adds the templates of the key chat_template in the file `path`: one text, or a list of texts with names.
absl::Status AddFromJson(const std::string& path, const nlohmann::json& json, Sources* sources) {
  const nlohmann::json& found = Member(json, "chat_template");
  if (found.is_null()) return absl::OkStatus();
  if (found.is_string()) {
    (*sources)[kDefault] = {path, found.get<std::string>()};
    return absl::OkStatus();
  }
  for (const nlohmann::json& each : found.is_array() ? found : nlohmann::json::array({found})) {
    const nlohmann::json &name = Member(each, "name"), &text = Member(each, "template");
    if (!name.is_string() || !text.is_string()) {
      return InvalidArgument(path, ": chat_template: wanted a text, or a list of objects with a name and a template");
    }
    (*sources)[name] = {path, text.get<std::string>()};
  }
  return absl::OkStatus();
}

absl::StatusOr<Sources> FindTemplates(const fs::path& folder, const nlohmann::json& config) {
  Sources sources;
  for (const std::string& name : ChatTemplateFiles(folder.string())) {
    const fs::path path = folder / name;
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadFile(path.string()));
    sources[name == kChatTemplateFile ? kDefault : path.stem().string()] = {path.string(), std::move(text)};
  }
  if (!sources.empty()) return sources;
  WEFT_RETURN_IF_ERROR(AddFromJson((folder / "tokenizer_config.json").string(), config, &sources));
  const std::string other = (folder / "chat_template.json").string();
  if (!sources.empty() || !Exists(other)) return sources;
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(other));
  WEFT_RETURN_IF_ERROR(AddFromJson(other, json, &sources));
  return sources;
}

}  // namespace

absl::StatusOr<std::string> ChatTemplate::Render(const Json& messages, bool answers) const {
  Json variables = {
      {"messages", messages}, {"tools", nullptr}, {"documents", nullptr}, {"add_generation_prompt", answers}};
  variables.update(tokens);
  return Annotate(jinja.Render(variables), path);
}

absl::StatusOr<std::optional<ChatTemplate>> ReadChatTemplate(const std::string& path, const Tokenizer& tokenizer) {
  const fs::path folder = IsFolder(path) ? fs::path(path) : fs::path(path).parent_path();
  nlohmann::json config = nlohmann::json::object(), map = config;
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedContents> files, ReadTokenizerFiles(path));
  for (const NamedContents& file : files) {  // a file of GGUF has them in itself
    nlohmann::json* const json = file.name == "tokenizer_config.json"     ? &config
                                 : file.name == "special_tokens_map.json" ? &map
                                                                          : nullptr;
    if (json == nullptr) continue;
    WEFT_ASSIGN_OR_RETURN(*json, Annotate(ParseLargeJsonObject(file.contents), file.name));
  }
  WEFT_ASSIGN_OR_RETURN(const Sources sources, FindTemplates(folder, config));
  if (sources.empty()) return std::nullopt;
  const auto found = sources.find(kDefault);
  if (found == sources.end()) {
    const auto name = [](std::string* out, const auto& source) { out->append(source.first); };
    return InvalidArgument(sources.begin()->second.path, ": no template is called default, but there are ",
                           absl::StrJoin(sources, ", ", name));
  }
  ChatTemplate chat = {.path = found->second.path, .tokens = Json::object()};
  WEFT_ASSIGN_OR_RETURN(chat.jinja, Annotate(JinjaTemplate::Parse(found->second.text), chat.path));
  // A tokenizer of no model's class has only the special tokens that its files name.
  const nlohmann::json& type = Member(config, "tokenizer_class");
  const bool named_only = type == "PreTrainedTokenizerFast" || type == "TokenizersBackend";
  for (const auto& [name, role] : kTokenRoles) {
    const std::optional<int32_t> id = tokenizer.special_tokens().*role;
    if (id.has_value() && (!named_only || config.contains(name) || map.contains(name))) {
      chat.tokens[name] = tokenizer.TokenText(*id);
    }
  }
  return chat;
}

std::string MarkSpecialTokens(absl::string_view text, const Tokenizer& tokenizer) {
  const std::string plain = absl::StrReplaceAll(text, {{kBegin, ""}, {kEnd, ""}});
  const absl::Span<const AddedToken> special = tokenizer.special_token_list();
  std::string marked;
  for (const auto& [piece, token] : AddedTokenFinder({special.begin(), special.end()}).Split(plain, true)) {
    absl::StrAppend(&marked, token == nullptr ? "" : kBegin, piece, token == nullptr ? "" : kEnd);
  }
  return marked;
}

absl::StatusOr<std::vector<int32_t>> EncodeMarked(absl::string_view text, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  // A piece in the middle of a text is encoded after a line break, so that a tokenizer puts no space before it.
  const absl::StatusOr<std::vector<int32_t>> newline = tokenizer.Encode("\n");
  const auto encode = [&](absl::string_view piece, bool special) -> absl::Status {
    if (piece.empty()) return absl::OkStatus();
    absl::StatusOr<std::vector<int32_t>> more =
        ids.empty() || !newline.ok() ? absl::UnknownError("") : tokenizer.Encode(absl::StrCat("\n", piece), special);
    if (more.ok() && more->size() >= newline->size() && std::equal(newline->begin(), newline->end(), more->begin())) {
      ids.insert(ids.end(), more->begin() + static_cast<ptrdiff_t>(newline->size()), more->end());
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(more, tokenizer.Encode(piece, special));
    ids.insert(ids.end(), more->begin(), more->end());
    return absl::OkStatus();
  };
  for (size_t begin; (begin = text.find(kBegin)) != text.npos;) {
    const size_t end = std::min(text.find(kEnd, begin), text.size());
    WEFT_RETURN_IF_ERROR(encode(text.substr(0, begin), true));
    WEFT_RETURN_IF_ERROR(encode(text.substr(begin + kBegin.size(), end - begin - kBegin.size()), false));
    text.remove_prefix(std::min(end + kEnd.size(), text.size()));
  }
  WEFT_RETURN_IF_ERROR(encode(text, true));
  return ids;
}

}  // namespace weft
