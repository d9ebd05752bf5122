// SentencePiece models for tests. No Abseil here: see sentencepiece_model.h.
#ifndef WEFT_TEXT_LEARN_SENTENCEPIECE_H_
#define WEFT_TEXT_LEARN_SENTENCEPIECE_H_

#include <string>
#include <vector>

namespace weft {

// The contents of a .model learnt from `lines`. `options` are those of spm_train; empty if it refuses them.
std::string LearnSentencePiece(const std::vector<std::string>& lines, const std::string& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_SENTENCEPIECE_H_
