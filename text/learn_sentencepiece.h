// LearnSentencePiece learns SentencePiece models for tests. It avoids Abseil, as sentencepiece_model.h explains.
#ifndef WEFT_TEXT_LEARN_SENTENCEPIECE_H_
#define WEFT_TEXT_LEARN_SENTENCEPIECE_H_

#include <string>
#include <vector>

namespace weft {

// Learns a model from `lines` and returns the contents of its .model file, or "" if the training fails. `options` are
// the flags of spm_train.
std::string LearnSentencePiece(const std::vector<std::string>& lines, const std::string& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_SENTENCEPIECE_H_
