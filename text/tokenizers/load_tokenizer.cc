// This file has the table of the kinds of files that hold a tokenizer, and finds the kind of a path.
//
// A file's name is compared first with the names of all kinds, then with their extensions. Otherwise vocab.json and
// merges.txt, which belong to byte-level BPE, would be taken for the kinds of other .json and .txt files.
#include "weft/text/tokenizers/load_tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// A folder is searched for these kinds in this order.
constexpr const TokenizerKind* kKinds[] = {
    &kTokenizerJson,  &kGpt2Files,        &kByteLevelBpeFiles,  &kMarianFiles,
    &kBertVocabulary, &kLlama2cTokenizer, &kSentencePieceModel, &kGgufTokenizer,
};

// Returns the kind of the file called `name`, or null.
const TokenizerKind* FindKind(absl::string_view name) {
  for (const TokenizerKind* const kind : kKinds) {
    if (name == kind->file || (kind->other_name != nullptr && name == kind->other_name)) return kind;
    if (kind->companion != nullptr && name == kind->companion) return kind;
  }
  for (const TokenizerKind* const kind : kKinds) {
    if (kind->extension != nullptr && absl::EndsWith(name, kind->extension)) return kind;
  }
  return nullptr;
}

// Returns the names that a folder is searched for, in this order.
std::vector<std::string> SearchedNames() {
  std::vector<std::string> names;
  for (const TokenizerKind* const kind : kKinds) {
    names.push_back(kind->file);
    if (kind->other_name != nullptr) names.push_back(kind->other_name);
  }
  return names;
}

// Returns `path` if it is a file. If it is a folder, returns the first file of SearchedNames() that the folder has, or
// the only model with a tokenizer.
absl::StatusOr<fs::path> FindFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return SystemStatus("find", path, error ? error.value() : ENOENT);
  if (!fs::is_directory(status)) return fs::path(path);
  for (const std::string& name : SearchedNames()) {
    if (fs::exists(fs::path(path) / name, error)) return fs::path(path) / name;
  }
  std::vector<fs::path> models;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const TokenizerKind* const kind = FindKind(entry.path().filename().string());
    if (kind != nullptr && kind->files != nullptr && entry.is_regular_file(error)) models.push_back(entry.path());
  }
  if (models.size() == 1) return models[0];
  return absl::NotFoundError(absl::StrCat(path, ": the folder has none of ", absl::StrJoin(SearchedNames(), ", ")));
}

// Files of transformers that say more of the tokenizer beside them, such as the roles of its tokens.
constexpr const char* kSettings[] = {"tokenizer_config.json", "special_tokens_map.json"};
// Those, and files with chat templates, whose names for other cases than the usual one are in a folder.
constexpr const char* kBeside[] = {kSettings[0], kSettings[1], kChatTemplateFile, "chat_template.json", kMarianTargets};
constexpr char kMoreChatTemplates[] = "additional_chat_templates";

// Returns the files of the tokenizer at `path`: its own file, the companion if its kind has one, and those of
// kBeside.
std::vector<TokenizerFile> FilesOf(const TokenizerKind& kind, const fs::path& path) {
  const fs::path folder = path.parent_path();
  std::vector<TokenizerFile> files = {{path.string(), kind.file}};
  if (kind.companion != nullptr) {
    files = {{(folder / kind.file).string(), kind.file}, {(folder / kind.companion).string(), kind.companion}};
  }
  std::error_code error;
  for (const char* name : kBeside) {
    const fs::path beside = folder / name;
    if (kind.of_transformers && fs::is_regular_file(beside, error)) files.push_back({beside.string(), name});
  }
  return files;
}

// Prints a note on stderr, once in a program.
void PrintNote(const std::string& note) {
  static auto* const mutex = new std::mutex();
  static auto* const printed = new std::set<std::string>{""};
  const std::lock_guard lock(*mutex);
  if (printed->insert(note).second) std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace

absl::StatusOr<AddedToken> ReadAddedToken(const nlohmann::json& entry) {
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

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const nlohmann::json& json,
                                                        const nlohmann::json& special_tokens_map) {
  TokenizerSettings settings;
  WEFT_ASSIGN_OR_RETURN(settings.clean_up, Get(json, "clean_up_tokenization_spaces", false));
  WEFT_ASSIGN_OR_RETURN(settings.split_special, Get(json, "split_special_tokens", false));
  // The classes of no model in particular leave the pre-tokenizer as tokenizer.json says.
  const nlohmann::json &type = Member(json, "tokenizer_class"), &space = Member(json, "add_prefix_space");
  if (!space.is_null() && type != "PreTrainedTokenizerFast" && type != "TokenizersBackend") {
    WEFT_ASSIGN_OR_RETURN(settings.prefix_space, Get(json, "add_prefix_space", false));
  }
  for (const auto& [key, add] :
       {std::pair{"add_bos_token", &settings.add_begin}, std::pair{"add_eos_token", &settings.add_end}}) {
    if (Member(json, key).is_null()) continue;
    WEFT_ASSIGN_OR_RETURN(*add, Get(json, key, false));
  }
  const nlohmann::json& all = Member(json, "added_tokens_decoder");
  for (const auto& [id, entry] : all.items()) {
    WEFT_ASSIGN_OR_RETURN(settings.tokens.emplace_back(),
                          Annotate(ReadAddedToken(entry), absl::StrCat("added_tokens_decoder, ", id)));
  }
  const auto read = [&](const nlohmann::json& entry, const char* key) -> absl::StatusOr<std::string> {
    WEFT_ASSIGN_OR_RETURN(AddedToken token, Annotate(ReadAddedToken(entry), key));
    token.special = true;
    settings.special.push_back(std::move(token));
    return settings.special.back().text;
  };
  const auto find = [&](const char* key) -> const nlohmann::json* {
    for (const nlohmann::json* const object : {&special_tokens_map, &json}) {
      if (object->is_object() && object->contains(key) && (object == &json || all.is_null())) return &(*object)[key];
    }
    return nullptr;
  };
  for (const auto& [key, role] : kTokenRoles) {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) continue;
    std::optional<std::string> text;
    if (!value->is_null()) {
      WEFT_ASSIGN_OR_RETURN(text, read(*value, key));
    }
    settings.roles.emplace_back(role, std::move(text));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const nlohmann::json* const list = find(key);
    if (list == nullptr) continue;
    for (const nlohmann::json& entry : *list) WEFT_RETURN_IF_ERROR(read(entry, key).status());
  }
  return settings;
}

std::vector<std::string> TokenizerFileNames() {
  std::vector<std::string> names = SearchedNames();
  for (const TokenizerKind* const kind : kKinds) {
    if (kind->companion != nullptr) names.push_back(kind->companion);
  }
  names.insert(names.end(), std::begin(kBeside), std::end(kBeside));
  return names;
}

std::vector<std::string> ChatTemplateFiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  if (fs::is_regular_file(fs::path(folder) / kChatTemplateFile, error)) names.emplace_back(kChatTemplateFile);
  for (fs::directory_iterator i(fs::path(folder) / kMoreChatTemplates, error), end; !error && i != end;
       i.increment(error)) {
    if (i->path().extension() != ".jinja" || !i->is_regular_file(error)) continue;
    names.push_back(absl::StrCat(kMoreChatTemplates, "/", i->path().filename().string()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const TokenizerKind* const kind = FindKind(file.filename().string());
  if (kind == nullptr) {
    return InvalidArgument(file.string(),
                           ": its name is none of a tokenizer's: ", absl::StrJoin(SearchedNames(), ", "));
  }
  const std::vector<TokenizerFile> files = FilesOf(*kind, file);
  nlohmann::json settings[2];
  for (const TokenizerFile& each : files) {
    for (int i = 0; i < 2; ++i) {
      if (each.name != kSettings[i]) continue;
      WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(each.path));
      WEFT_ASSIGN_OR_RETURN(settings[i], Annotate(ParseLargeJsonObject(contents), each.path));
    }
  }
  absl::StatusOr<TokenizerSettings> read = ReadTokenizerSettings(settings[0], settings[1]);
  const bool of_map = ReadTokenizerSettings(settings[0], {}).ok();  // whether an error is of special_tokens_map.json
  if (!read.ok()) return Annotate(read.status(), (file.parent_path() / kSettings[of_map ? 1 : 0]).string());
  WEFT_ASSIGN_OR_RETURN(auto tokenizer,
                        kind->load(files[0].path, kind->companion == nullptr ? "" : files[1].path, settings[0]));
  if (kind->has_format) read->add_begin = read->add_end = std::nullopt;
  tokenizer->Configure(*read);
  if (read->prefix_space && !tokenizer->SetPrefixSpace(*read->prefix_space)) {
    tokenizer->set_note(absl::StrCat((file.parent_path() / kSettings[0]).string(), ": add_prefix_space is ",
                                     *read->prefix_space ? "true" : "false", ", which is not used"));
  }
  PrintNote(tokenizer->note());
  return tokenizer;
}

absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const TokenizerKind* const kind = FindKind(file.filename().string());
  if (kind == nullptr) return {{{file.string(), "tokenizer" + file.extension().string()}}};
  if (kind->files != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<NamedContents> contents, kind->files(file.string()));
    std::vector<TokenizerFile> files;
    for (const auto& [name, text] : contents) files.push_back({file.string(), name, text});
    return files;
  }
  return FilesOf(*kind, file);
}

absl::StatusOr<std::string> ReadContents(const TokenizerFile& file) {
  if (file.contents.has_value()) return *file.contents;
  return ReadFile(file.path);
}

absl::StatusOr<std::vector<NamedContents>> ReadTokenizerFiles(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<TokenizerFile> files, TokenizerFiles(path));
  std::vector<NamedContents> read;
  for (const TokenizerFile& file : files) {
    WEFT_ASSIGN_OR_RETURN(std::string contents, ReadContents(file));
    read.push_back({file.name, std::move(contents)});
  }
  return read;
}

absl::Status CheckTokenizerFolder(const std::string& folder, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) {
    fs::path ancestor = fs::absolute(folder, error);
    while (!fs::exists(ancestor, error) && ancestor.has_relative_path()) ancestor = ancestor.parent_path();
    return Annotate(CheckWritable((ancestor / "tokenizer").string()), "out");
  }
  if (!fs::is_directory(status)) return absl::AlreadyExistsError(absl::StrCat("out: ", folder, " is not a folder"));
  const std::vector<std::string> known = TokenizerFileNames();
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (!overwrite) {
      return absl::AlreadyExistsError(
          absl::StrCat("out: ", folder, " has files already, such as ", name, "; overwrite replaces a tokenizer"));
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::AlreadyExistsError(
          absl::StrCat("out: ", folder, " has ", name, ", which is not a file of a tokenizer"));
    }
  }
  return Annotate(CheckWritable((fs::path(folder) / "tokenizer").string()), "out");
}

absl::Status WriteTokenizerFolder(const std::string& folder, const NamedContents& file) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return SystemStatus("create", folder, error.value());
  WEFT_RETURN_IF_ERROR(WriteFile((fs::path(folder) / file.name).string(), {file.contents}));
  for (const std::string& name : TokenizerFileNames()) {
    const fs::path other = fs::path(folder) / name;
    if (name != file.name) fs::remove(other, error);
    if (error) return SystemStatus("remove", other.string(), error.value());
  }
  WEFT_RETURN_IF_ERROR(SyncFolder(folder));
  return SyncParent(folder);
}

}  // namespace weft
