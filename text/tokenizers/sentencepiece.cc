// tokenizer.model and spiece.model: models of SentencePiece.
#include "weft/text/sentencepiece_tokenizer.h"
#include "weft/text/tokenizers/all_kinds.h"

namespace weft {

constexpr TokenizerKind kSentencePieceModel = {
    .file = "tokenizer.model",
    .other_name = "spiece.model",
    .extension = ".model",
    .load = FromOneFile<SentencePieceTokenizer::Create>,
};

}  // namespace weft
