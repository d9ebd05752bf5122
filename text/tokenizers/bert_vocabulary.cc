// vocab.txt has the vocabulary of BERT's WordPiece. Texts are lowercased and lose their accents, unless
// tokenizer_config.json in the same folder says otherwise.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/tokenizers/word_piece.h"

namespace weft {
namespace {

Loaded Load(const std::string& path, const std::string& /*companion*/, const nlohmann::json& settings) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  std::string note;
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Annotate(ReadVocabularyText(file, &note), path));
  const std::string config = std::filesystem::path(path).replace_filename("tokenizer_config.json").string();
  WEFT_ASSIGN_OR_RETURN(WordPieceModel model, Annotate(ReadBertModel(std::move(vocabulary), settings), config));
  WEFT_ASSIGN_OR_RETURN(auto tokenizer, Annotate(WordPiece::Create(std::move(model)), path));
  if (!note.empty()) tokenizer->set_note(absl::StrCat(path, ": ", note));
  return tokenizer;
}

}  // namespace

constexpr TokenizerKind kBertVocabulary = {
    .file = "vocab.txt",
    .extension = ".txt",
    .load = Load,
};

}  // namespace weft
