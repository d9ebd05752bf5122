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

// The result with the path before its error.
template <class T>
absl::StatusOr<T> Of(const std::string& path, absl::StatusOr<T> result) {
  if (!result.ok()) return Annotate(result.status(), path);
  return result;
}

// What a folder is searched for, in this order.
constexpr const char* kNames[] = {"tokenizer.json", "vocab.bpe",       "merges.txt",  "vocab.txt",
                                  "tokenizer.bin",  "tokenizer.model", "spiece.model"};

constexpr char kSettings[] = "tokenizer_config.json";  // of a vocab.txt

constexpr struct {
  const char *vocabulary, *merges;
} kBpeNames[] = {{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}};

Loaded LoadGpt2(const std::string& vocabulary_path, const std::string& merges_path) {
  WEFT_ASSIGN_OR_RETURN(const std::string vocabulary_file, ReadFile(vocabulary_path));
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Of(vocabulary_path, ReadBpeVocabulary(vocabulary_file)));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, Of(merges_path, ReadBpeMerges(merges_file)));
  return Of(merges_path, ByteLevelBpe::Create(Gpt2Model(std::move(vocabulary), std::move(merges))));
}

Loaded LoadVocabularyText(const fs::path& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path.string()));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Of(path.string(), ReadVocabularyText(file)));
  WordPieceModel model = BertModel(std::move(vocabulary));
  const std::string settings = (path.parent_path() / kSettings).string();
  std::error_code error;
  if (fs::exists(settings, error)) {
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(settings));
    WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, Of(settings, ParseLargeJsonObject(contents)));
    WEFT_ASSIGN_OR_RETURN(model.normalizer, Of(settings, ReadBertSettings(json)));
  }
  return Of(path.string(), WordPiece::Create(std::move(model)));
}

Loaded FromTokenizerJson(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseLargeJsonObject(contents));
  if (json.contains("type")) {
    if (json["type"] == "byte") return std::make_unique<ByteTokenizer>();
    WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromJson(contents));
    return std::make_unique<CharacterTokenizer>(std::move(tokenizer));
  }
  if (json.contains("model")) return ReadTokenizerJson(json);
  return absl::InvalidArgumentError("it has neither the \"type\" nor the \"model\" of a tokenizer");
}

Loaded FromLlama2cFile(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(std::vector<ScoredPiece> pieces, ReadLlama2cFile(contents));
  return ScoredBpe::Create(std::move(pieces));
}

Loaded FromSentencePieceModel(absl::string_view contents) { return SentencePieceTokenizer::Create(contents); }

Loaded LoadFile(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const auto& [vocabulary, merges] : kBpeNames) {
    if (name != vocabulary && name != merges) continue;
    return LoadGpt2((path.parent_path() / vocabulary).string(), (path.parent_path() / merges).string());
  }
  if (absl::EndsWith(name, ".txt")) return LoadVocabularyText(path);
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path.string()));
  if (absl::EndsWith(name, ".model")) return Of(path.string(), FromSentencePieceModel(contents));
  if (absl::EndsWith(name, ".bin")) return Of(path.string(), FromLlama2cFile(contents));
  if (absl::EndsWith(name, ".json")) return Of(path.string(), FromTokenizerJson(contents));
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), ": its name is none of a tokenizer's: ", absl::StrJoin(kNames, ", ")));
}

// The file that a path means: itself, or the first that a folder has.
absl::StatusOr<fs::path> FindFile(const std::string& path) {
  std::error_code error;
  const fs::file_status about = fs::status(path, error);
  if (!fs::exists(about)) return SystemStatus("find", path, error ? error.value() : ENOENT);
  if (!fs::is_directory(about)) return fs::path(path);
  for (const char* name : kNames) {
    fs::path file = fs::path(path) / name;
    if (fs::exists(file, error)) return file;
  }
  return absl::NotFoundError(absl::StrCat(path, ": the folder has none of ", absl::StrJoin(kNames, ", ")));
}

}  // namespace

Loaded LoadTokenizer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  return LoadFile(file);
}

absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const fs::path folder = file.parent_path();
  const auto in_folder = [&](const char* name) { return TokenizerFile{(folder / name).string(), name}; };
  for (const auto& [vocabulary, merges] : kBpeNames) {
    if (file.filename() == vocabulary || file.filename() == merges) return {{in_folder(vocabulary), in_folder(merges)}};
  }
  const std::string extension = file.extension().string();
  std::vector<TokenizerFile> files = {{file.string(), extension == ".txt" ? "vocab.txt" : "tokenizer" + extension}};
  std::error_code error;
  if (extension == ".txt" && fs::exists(folder / kSettings, error)) files.push_back(in_folder(kSettings));
  return files;
}

}  // namespace weft
