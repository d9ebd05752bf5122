// Where a training of a BERT begins: from first weights, for a model of given sizes, or from weights that others
// trained.
#ifndef WEFT_TRAIN_BERT_SOURCE_H_
#define WEFT_TRAIN_BERT_SOURCE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/formats/weights.h"
#include "weft/models/bert.h"
#include "weft/text/tokenizer.h"

namespace weft {

class BertSource {
 public:
  // The sizes of a model from first weights, unless flags say otherwise.
  explicit BertSource(const BertConfig& defaults) : defaults_(defaults), dropout_(defaults.dropout) {}

  Hyperparameters Table();  // --init, --context, --layers, ...
  const std::string& init() const { return init_; }
  // Settles the sizes: those of `model`, the configuration of a run that goes on, if that says any; else reads the
  // weights of --init. InvalidArgument for a flag that they contradict.
  absl::Status Read(const nlohmann::ordered_json& model);
  // After Read: takes the vocabulary, or checks that it fits the weights.
  absl::Status SetVocabulary(const Tokenizer& tokenizer);
  // Gives the weights of --init to a run that begins. Those whose names begin with one of `heads` stay as they are
  // where the folder has none; what else it has is left out. A classifier is taken only if it is of these labels.
  absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                          Parameters* parameters);

  const BertConfig& config() const { return config_; }

 private:
  BertConfig defaults_, config_;
  std::string init_;
  int64_t context_ = 0, layers_ = 0, heads_ = 0, width_ = 0, feed_forward_ = 0;  // 0: as the source has it
  double dropout_;
  std::optional<PublishedBert> published_;
  bool settled_ = false;  // by weights, or by a run
};

}  // namespace weft

#endif  // WEFT_TRAIN_BERT_SOURCE_H_
