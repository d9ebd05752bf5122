// A BertSource gives the BERT with which a run begins. This is a new model, with sizes from options, or the published
// weights in the folder that the option "init" names.
//
//   BertSource source({.context = 128, .layers = 4, .heads = 4, .width = 256});   // the defaults of the options
//   WEFT_RETURN_IF_ERROR(source.Read(ModelOf(resumed)));
//   WEFT_RETURN_IF_ERROR(source.SetVocabulary(*tokenizer));
//   Bert bert(source.config());
#ifndef WEFT_TRAIN_JOBS_BERT_SOURCE_H_
#define WEFT_TRAIN_JOBS_BERT_SOURCE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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
  // `defaults`: the configuration of a new model, where options give no other sizes or dropout.
  explicit BertSource(const BertConfig& defaults) : defaults_(defaults), dropout_(defaults.dropout) {}

  Hyperparameters Table();  // rows init, context, layers, ...
  const std::string& init() const { return init_; }
  // Sets config(). If `model`, the configuration of a resumed run, is not empty, config() is `model`. Otherwise, if
  // "init" is set, Read reads the published weights, and config() is theirs. Otherwise the sizes follow the options.
  // Dropout always follows the options. Returns InvalidArgument if config() is invalid, or if an option for a size
  // contradicts the run or the weights.
  absl::Status Read(const nlohmann::ordered_json& model);
  // Sets the vocabulary size of a new model. If a run or published weights fix that size, checks that the tokenizer
  // fits. Call SetVocabulary after Read.
  absl::Status SetVocabulary(const Tokenizer& tokenizer);
  // If "init" is set, copies its weights to `parameters`. If the folder lacks a weight whose name begins with one of
  // `heads`, or a weight of a low-rank adapter, the parameter keeps its initial value. Any other missing weight is an
  // error, and surplus weights of the folder are ignored. Weights "classifier.*" are copied only if the folder's labels
  // equal `labels`.
  absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                          Parameters* parameters);

  const BertConfig& config() const { return config_; }

 private:
  BertConfig defaults_, config_;
  std::string init_;
  int64_t context_ = 0, layers_ = 0, heads_ = 0, width_ = 0, feed_forward_ = 0;  // 0: not given
  double dropout_;
  std::optional<PublishedBert> published_;
  bool has_weights_ = false;  // true: weights of `init` or of a run fix the sizes
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_BERT_SOURCE_H_
