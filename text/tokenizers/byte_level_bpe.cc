// The two files of byte-level BPE: the merges and the vocabulary, by GPT-2's names and by those of Hugging Face.
#include "weft/text/byte_level_bpe.h"

#include <utility>
#include <vector>

#include "weft/text/bpe_files.h"
#include "weft/text/tokenizers/all_kinds.h"

namespace weft {
namespace {

Loaded Load(const std::string& merges_path, const std::string& vocabulary_path) {
  WEFT_ASSIGN_OR_RETURN(const std::string vocabulary_file, ReadFile(vocabulary_path));
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, At(vocabulary_path, ReadBpeVocabulary(vocabulary_file)));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, At(merges_path, ReadBpeMerges(merges_file)));
  return At(merges_path, ByteLevelBpe::Create(Gpt2Model(std::move(vocabulary), std::move(merges))));
}

}  // namespace

constexpr TokenizerKind kGpt2Files = {
    .file = "vocab.bpe",
    .companion = "encoder.json",
    .companion_required = true,
    .load = Load,
};

constexpr TokenizerKind kByteLevelBpeFiles = {
    .file = "merges.txt",
    .companion = "vocab.json",
    .companion_required = true,
    .load = Load,
};

}  // namespace weft
