// A TextTask is what a classifier's head computes from a text. LabelScores is how the head's logits become scores.
#ifndef WEFT_TEXT_TEXT_TASK_H_
#define WEFT_TEXT_TEXT_TASK_H_

#include <cstdint>
#include <utility>

namespace weft {

enum class TextTask : uint8_t {
  kSequence,    // a label for the text
  kPair,        // a label for a pair of texts
  kTokens,      // a label for each word of the text
  kRegression,  // a number for the text or the pair of texts
};

// What a classifier's logits become. Hugging Face's pipelines choose it by problem_type and the number of labels.
enum class LabelScores : uint8_t {
  kSoftmax,  // probabilities of all labels, whose sum is 1
  kSigmoid,  // a probability of its own for each label
  kNumbers,  // the logits themselves: a regression
};

inline constexpr std::pair<const char*, TextTask> kTextTaskNames[] = {{"sequence", TextTask::kSequence},
                                                                      {"pair", TextTask::kPair},
                                                                      {"tokens", TextTask::kTokens},
                                                                      {"regression", TextTask::kRegression}};

}  // namespace weft

#endif  // WEFT_TEXT_TEXT_TASK_H_
