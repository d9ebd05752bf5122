// tokenizer.bin: the pieces and scores of llama2.c.
#include <utility>
#include <vector>

#include "weft/text/scored_bpe.h"
#include "weft/text/tokenizers/all_kinds.h"

namespace weft {
namespace {

Loaded Create(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(std::vector<ScoredPiece> pieces, ReadLlama2cFile(contents));
  return ScoredBpe::Create(std::move(pieces));
}

}  // namespace

constexpr TokenizerKind kLlama2cTokenizer = {
    .file = "tokenizer.bin",
    .extension = ".bin",
    .of_transformers = false,
    .load = FromOneFile<Create>,
};

}  // namespace weft
