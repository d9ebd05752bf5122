// vocab.txt has the vocabulary of BERT's WordPiece. Texts are lowercased and lose their accents, unless
// tokenizer_config.json in the same folder says otherwise.
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/core/json.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/word_piece.h"

namespace weft {
namespace {

Loaded Load(const std::string& path, const std::string& settings) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Annotate(ReadVocabularyText(file), path));
  WordPieceModel model = BertModel(std::move(vocabulary));
  if (!settings.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(settings));
    WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, Annotate(ParseLargeJsonObject(contents), settings));
    WEFT_ASSIGN_OR_RETURN(model.normalizer, Annotate(ReadBertSettings(json), settings));
  }
  return Annotate(WordPiece::Create(std::move(model)), path);
}

}  // namespace

constexpr TokenizerKind kBertVocabulary = {
    .file = "vocab.txt",
    .extension = ".txt",
    .companion = "tokenizer_config.json",
    .load = Load,
};

}  // namespace weft
