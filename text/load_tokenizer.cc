// The table of tokenizers: for each kind the names of its files and the function that loads it.
//
// A path is matched with the kinds' file names first and with their extensions second, because vocab.json and
// merges.txt belong to byte-level BPE although other .json and .txt files are of other kinds.
#include "weft/text/load_tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/text/bpe_files.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/byte_tokenizer.h"
#include "weft/text/character_tokenizer.h"
#include "weft/text/scored_bpe.h"
#include "weft/text/sentencepiece_tokenizer.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/word_piece.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

using Loaded = absl::StatusOr<std::unique_ptr<Tokenizer>>;

// Returns `result`; an error gets `path` before its message.
template <class T>
absl::StatusOr<T> At(const std::string& path, absl::StatusOr<T> result) {
  if (!result.ok()) return Annotate(result.status(), path);
  return result;
}

// Loads a tokenizer that is all in one file, whose contents `create` takes.
template <auto create>
Loaded FromOneFile(const std::string& file, const std::string& /*companion*/) {
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
  return At(file, create(contents));
}

Loaded LoadGpt2(const std::string& merges_path, const std::string& vocabulary_path) {
  WEFT_ASSIGN_OR_RETURN(const std::string vocabulary_file, ReadFile(vocabulary_path));
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, At(vocabulary_path, ReadBpeVocabulary(vocabulary_file)));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, At(merges_path, ReadBpeMerges(merges_file)));
  return At(merges_path, ByteLevelBpe::Create(Gpt2Model(std::move(vocabulary), std::move(merges))));
}

Loaded LoadBertVocabulary(const std::string& path, const std::string& settings) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, At(path, ReadVocabularyText(file)));
  WordPieceModel model = BertModel(std::move(vocabulary));
  if (!settings.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(settings));
    WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, At(settings, ParseLargeJsonObject(contents)));
    WEFT_ASSIGN_OR_RETURN(model.normalizer, At(settings, ReadBertSettings(json)));
  }
  return At(path, WordPiece::Create(std::move(model)));
}

Loaded CreateBytes(absl::string_view /*contents*/) { return std::make_unique<ByteTokenizer>(); }

Loaded CreateCharacters(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromJson(contents));
  return std::make_unique<CharacterTokenizer>(std::move(tokenizer));
}

// The kinds of tokenizer.json that only Weft writes, by their "type".
constexpr struct {
  const char* type;
  Loaded (*create)(absl::string_view contents);
} kWeftTypes[] = {{"byte", CreateBytes}, {"character", CreateCharacters}};

Loaded CreateFromJson(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseLargeJsonObject(contents));
  if (json.contains("type")) {
    for (const auto& [type, create] : kWeftTypes) {
      if (json["type"] == type) return create(contents);
    }
    return absl::InvalidArgumentError("not a tokenizer of type \"byte\" or \"character\"");
  }
  if (json.contains("model")) return ReadTokenizerJson(json);
  return absl::InvalidArgumentError("it has neither the \"type\" nor the \"model\" of a tokenizer");
}

Loaded CreateLlama2c(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(std::vector<ScoredPiece> pieces, ReadLlama2cFile(contents));
  return ScoredBpe::Create(std::move(pieces));
}

constexpr TokenizerKind kKinds[] = {
    // Hugging Face's byte-level BPE and WordPiece; Weft's bytes and characters.
    {.name = "tokenizer.json", .file = "tokenizer.json", .extension = ".json", .load = FromOneFile<CreateFromJson>},
    {.name = "byte-level BPE of GPT-2",
     .file = "vocab.bpe",
     .companion = "encoder.json",
     .companion_required = true,
     .load = LoadGpt2},
    {.name = "byte-level BPE as Hugging Face names its files",
     .file = "merges.txt",
     .companion = "vocab.json",
     .companion_required = true,
     .load = LoadGpt2},
    // Lowercases as BERT does, unless the settings beside the vocabulary say otherwise.
    {.name = "WordPiece of BERT",
     .file = "vocab.txt",
     .extension = ".txt",
     .companion = "tokenizer_config.json",
     .load = LoadBertVocabulary},
    {.name = "llama2.c", .file = "tokenizer.bin", .extension = ".bin", .load = FromOneFile<CreateLlama2c>},
    {.name = "SentencePiece",
     .file = "tokenizer.model",
     .other_name = "spiece.model",
     .extension = ".model",
     .load = FromOneFile<SentencePieceTokenizer::Create>},
};

// Returns the kind of the file called `name`, or null.
const TokenizerKind* FindKind(absl::string_view name) {
  for (const TokenizerKind& kind : kKinds) {
    if (name == kind.file || (kind.other_name != nullptr && name == kind.other_name)) return &kind;
    if (kind.companion_required && name == kind.companion) return &kind;
  }
  for (const TokenizerKind& kind : kKinds) {
    if (kind.extension != nullptr && absl::EndsWith(name, kind.extension)) return &kind;
  }
  return nullptr;
}

// Returns the names that a folder is searched for, in this order.
std::vector<std::string> SearchedNames() {
  std::vector<std::string> names;
  for (const TokenizerKind& kind : kKinds) {
    names.push_back(kind.file);
    if (kind.other_name != nullptr) names.push_back(kind.other_name);
  }
  return names;
}

// Returns the file that `path` means: itself or, of a folder, the file of the first kind that is there.
absl::StatusOr<fs::path> FindFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return SystemStatus("find", path, error ? error.value() : ENOENT);
  if (!fs::is_directory(status)) return fs::path(path);
  for (const std::string& name : SearchedNames()) {
    if (fs::exists(fs::path(path) / name, error)) return fs::path(path) / name;
  }
  return absl::NotFoundError(absl::StrCat(path, ": the folder has none of ", absl::StrJoin(SearchedNames(), ", ")));
}

// The two files of a kind. `companion` is empty if the kind has none, or if its optional one doesn't exist.
struct KindFiles {
  fs::path file, companion;
};

KindFiles FilesOf(const TokenizerKind& kind, const fs::path& path) {
  KindFiles files = {path, {}};
  const fs::path folder = path.parent_path();
  if (kind.companion_required) return {folder / kind.file, folder / kind.companion};
  std::error_code error;
  if (kind.companion != nullptr && fs::exists(folder / kind.companion, error))
    files.companion = folder / kind.companion;
  return files;
}

}  // namespace

absl::Span<const TokenizerKind> TokenizerKinds() { return kKinds; }

std::vector<std::string> TokenizerFileNames() {
  std::vector<std::string> names = SearchedNames();
  for (const TokenizerKind& kind : kKinds) {
    if (kind.companion != nullptr) names.push_back(kind.companion);
  }
  return names;
}

Loaded LoadTokenizer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const TokenizerKind* const kind = FindKind(file.filename().string());
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.string(), ": its name is none of a tokenizer's: ", absl::StrJoin(SearchedNames(), ", ")));
  }
  const KindFiles files = FilesOf(*kind, file);
  return kind->load(files.file.string(), files.companion.string());
}

absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const TokenizerKind* const kind = FindKind(file.filename().string());
  if (kind == nullptr) return {{{file.string(), "tokenizer" + file.extension().string()}}};
  const KindFiles files = FilesOf(*kind, file);
  std::vector<TokenizerFile> list = {{files.file.string(), kind->file}};
  if (!files.companion.empty()) list.push_back({files.companion.string(), kind->companion});
  return list;
}

}  // namespace weft
