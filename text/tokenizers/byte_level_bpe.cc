// Byte-level BPE is in two files, the merges and the vocabulary. GPT-2 and Hugging Face give these files other names.
#include "weft/text/byte_level_bpe.h"

#include <utility>
#include <vector>

#include "weft/text/bpe_files.h"
#include "weft/text/tokenizers/all_kinds.h"

namespace weft {
namespace {

Loaded Load(const std::string& merges_path, const std::string& vocabulary_path, const nlohmann::json& /*config*/) {
  WEFT_ASSIGN_OR_RETURN(const std::string vocabulary_file, ReadFile(vocabulary_path));
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Annotate(ReadBpeVocabulary(vocabulary_file), vocabulary_path));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, Annotate(ReadBpeMerges(merges_file), merges_path));
  return Annotate(ByteLevelBpe::Create(Gpt2Model(std::move(vocabulary), std::move(merges))), merges_path);
}

}  // namespace

constexpr TokenizerKind kGpt2Files = {
    .file = "vocab.bpe",
    .companion = "encoder.json",
    .load = Load,
};

constexpr TokenizerKind kByteLevelBpeFiles = {
    .file = "merges.txt",
    .companion = "vocab.json",
    .load = Load,
};

}  // namespace weft
