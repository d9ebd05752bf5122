// A TextTask names the kind of result of a classifier's head. LabelScores names the function from logits to scores.
#ifndef WEFT_TEXT_DATA_TEXT_TASK_H_
#define WEFT_TEXT_DATA_TEXT_TASK_H_

#include <cstdint>
#include <utility>

namespace weft {

enum class TextTask : uint8_t {
  kSequence,    // a label for the text
  kPair,        // a label for a pair of texts
  kTokens,      // a label for each word of the text
  kRegression,  // a number for the text or the pair of texts
};

// The function that turns logits into scores. problem_type and the number of labels choose it, as in Hugging Face's
// pipelines.
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

#endif  // WEFT_TEXT_DATA_TEXT_TASK_H_
