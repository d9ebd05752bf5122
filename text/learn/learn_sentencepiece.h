// LearnSentencePiece learns SentencePiece models by Google's own trainer. The header avoids Abseil, as
// sentencepiece_model.h explains.
#ifndef WEFT_TEXT_LEARN_LEARN_SENTENCEPIECE_H_
#define WEFT_TEXT_LEARN_LEARN_SENTENCEPIECE_H_

#include <map>
#include <string>
#include <vector>

namespace weft {

struct LearntSentencePiece {
  std::string model;  // the contents of a .model file; "" if the training failed
  std::string error;  // the trainer's message; "" on success
};

// Learns a model from `lines`, which are UTF-8. `options`: the flags of spm_train without "--", such as {"vocab_size",
// "8000"}. The trainer's sums depend on its number of threads, so the result is the same on each machine only with an
// equal "num_threads".
LearntSentencePiece LearnSentencePiece(const std::vector<std::string>& lines,
                                       const std::map<std::string, std::string>& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_LEARN_SENTENCEPIECE_H_
