// A BertSource gives the model that a training of a BERT begins with: a new model of the sizes that options give, or
// published weights in a folder that the option "init" names.
//
//   BertSource source({.context = 128, .layers = 4, .heads = 4, .width = 256});   // and an option for each size
//   WEFT_RETURN_IF_ERROR(source.Read(ModelOf(resumed)));
//   WEFT_RETURN_IF_ERROR(source.SetVocabulary(*tokenizer));
//   Bert bert(source.config());
#ifndef WEFT_TRAIN_BERT_SOURCE_H_
#define WEFT_TRAIN_BERT_SOURCE_H_

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
  // `defaults`: the sizes of a new model, unless options give others.
  explicit BertSource(const BertConfig& defaults) : defaults_(defaults), dropout_(defaults.dropout) {}

  Hyperparameters Table();  // rows init, context, layers, ...
  const std::string& init() const { return init_; }
  // Sets config(): to `model`, the configuration of a resumed run, unless it is empty; otherwise to that of the weights
  // in `init`, which are read; otherwise to the options. InvalidArgument if an option contradicts the weights.
  absl::Status Read(const nlohmann::ordered_json& model);
  // Sets the size of a new model's vocabulary, or checks that the tokenizer fits the weights. Call it after Read.
  absl::Status SetVocabulary(const Tokenizer& tokenizer);
  // Copies the weights of `init` to a run that begins. A weight that the folder lacks keeps its initial value if its
  // name begins with one of `heads`, and is an error otherwise. Other weights of the folder are ignored. A classifier
  // is copied only if it has these `labels`.
  absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                          Parameters* parameters);

  const BertConfig& config() const { return config_; }

 private:
  BertConfig defaults_, config_;
  std::string init_;
  int64_t context_ = 0, layers_ = 0, heads_ = 0, width_ = 0, feed_forward_ = 0;  // 0: not given
  double dropout_;
  std::optional<PublishedBert> published_;
  bool has_weights_ = false;  // of `init` or of a run: the sizes can't change
};

}  // namespace weft

#endif  // WEFT_TRAIN_BERT_SOURCE_H_
