// A ModelSource gives the model with which a training begins: a new model with the options' sizes, the published
// weights that the option "init" names, or the model of a resumed run. Published: PublishedGpt, PublishedBert,
// PublishedTransformer or PublishedVit.
//
//   ModelSource<PublishedBert> source({.context = 128, .layers = 4, .heads = 4, .width = 256});   // defaults
//   WEFT_RETURN_IF_ERROR(source.Begin(run_config, init));                // before options are set
//   ...                                                                  // sets rows of source.Table()
//   WEFT_RETURN_IF_ERROR(source.Check());
//   WEFT_RETURN_IF_ERROR(source.SetVocabulary(tokenizer->vocabulary_size()));
//   Bert bert(source.config());
//   WEFT_RETURN_IF_ERROR(source.Initialize({"cls."}, {}, &parameters));
#ifndef WEFT_TRAIN_JOBS_MODEL_SOURCE_H_
#define WEFT_TRAIN_JOBS_MODEL_SOURCE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/formats/weights.h"
#include "weft/train/jobs/job.h"

namespace weft {

template <class Published>
class ModelSource {
 public:
  using Config = decltype(Published::config);

  // `defaults`: the configuration of a new model, where options give nothing else.
  explicit ModelSource(const Config& defaults);

  // Returns the rows init and ignore-extra-tensors, and the rows of models/options.h.
  Hyperparameters Table();
  const std::string& init() const { return init_; }
  std::string tokenizer() const;  // the file or folder of the tokenizer of the model that init names, or ""

  // Sets config() to the model with which options begin. If `run`, the config.json of a resumed run, has a "model",
  // config() is that model. Otherwise, if `init` is not empty, config() is that of the published weights; its dropout
  // is that of the defaults.
  absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init);
  // Sets options from "model" of a configuration file (ReadModelConfig). The size of the vocabulary counts only if the
  // file is not the config.json of a run, because a run takes the size from its tokenizer.
  absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run);
  // Returns InvalidArgument if config() is invalid, or if an option contradicts the weights of the run or of init. Then
  // only dropout, initialisers, attention patterns and a smaller context may differ. Returns FailedPrecondition if init
  // has tensors that its model does not have, unless ignore-extra-tensors is set.
  absl::Status Check() const;
  // Sets the sizes of the vocabularies of a new model. If weights or a configuration file fix the size, checks that a
  // tokenizer of `tokens` tokens fits.
  absl::Status SetVocabulary(int64_t tokens);
  // If "init" is set, copies its weights to `parameters`. If the model lacks a weight whose name begins with one of
  // `heads`, or a weight of a low-rank adapter, the parameter keeps its initial value. Any other missing weight is an
  // error, and surplus weights are ignored. Weights "classifier.*" are copied only if the classes are `labels`. Of
  // a table of positions, the first rows are copied.
  absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                          Parameters* parameters);

  // InitialWeights::missing does not name adapters' weights.
  InitialWeights initial_weights() const;

  bool has_weights() const { return !owner_.empty(); }  // whether the weights of a run or of init fix the sizes
  const Config& config() const { return config_; }
  Config* mutable_config() { return &config_; }

 private:
  absl::Status ReadInit();
  absl::Status CheckExtra() const;

  Config defaults_, base_, config_;
  std::string init_;
  bool ignore_extra_tensors_ = false;
  std::string owner_;  // "the run", or the path of the published weights; "" for a new model
  std::optional<Published> published_;
  std::vector<std::string> missing_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_MODEL_SOURCE_H_
