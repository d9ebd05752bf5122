// A ModelSource gives the model with which a training begins: a new model with the options' sizes, the published
// weights that the option "init" names, or the model of a resumed run. SourceOf has the code for one family of models.
//
//   SourceOf<PublishedBert> source({.context = 128, .layers = 4, .heads = 4, .width = 256});   // defaults
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
#include "weft/core/parameters.h"
#include "weft/formats/weights.h"
#include "weft/options/hyperparameters.h"

namespace weft {

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  // Returns the rows init and ignore-extra-tensors, and the rows of models/options.h.
  virtual Hyperparameters Table() = 0;
  const std::string& init() const { return init_; }  // the path of the published weights, or ""
  std::string tokenizer() const;  // the file or folder of the tokenizer of the model that init names, or ""

  // Sets the configuration to the model with which options begin. If `run`, the config.json of a resumed run, has a
  // "model", it is that model. Otherwise, if `init` is not empty, it is that of the published weights; its dropout is
  // that of the defaults.
  virtual absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init) = 0;
  // Sets options from "model" of a configuration file (ReadModelConfig). The size of the vocabulary counts only if the
  // file is not the config.json of a run, because a run takes the size from its tokenizer.
  virtual absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run) = 0;
  // Returns InvalidArgument if the configuration is invalid, or if an option contradicts the weights of the run or of
  // init. Then only dropout, initialisers, attention patterns and a smaller context may differ. Returns
  // FailedPrecondition if init has tensors that its model does not have, unless ignore-extra-tensors is set.
  virtual absl::Status Check() const = 0;
  // Sets the sizes of the vocabularies of a new model. If weights or a configuration file fix the size, checks that a
  // tokenizer of `tokens` tokens fits.
  virtual absl::Status SetVocabulary(int64_t tokens) = 0;
  // Returns the configuration in the keys of published models. The result is empty if they can't express it. A GPT
  // whose positions need no table, such as rotary ones, keeps the context of its weights if it is trained on shorter
  // windows.
  virtual nlohmann::ordered_json Model() const = 0;
  // If "init" is set, copies its weights to `parameters`. If the model lacks a weight whose name begins with one of
  // `heads`, or a weight of a low-rank adapter, the parameter keeps its initial value. Any other missing weight is an
  // error, and surplus weights are ignored. Weights "classifier.*" are copied only if the classes are `labels`. Of
  // a table of positions, the first rows are copied.
  virtual absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                                  Parameters* parameters) = 0;
  // After Initialize, returns the names of the weights that the published model does not have and that keep their
  // initial values, except those of adapters.
  const std::vector<std::string>& missing() const { return missing_; }
  // Returns Weights::extra of the published model, if the option ignore-extra-tensors is set.
  virtual std::vector<std::string> extra() const = 0;
  bool has_weights() const { return !owner_.empty(); }  // whether the weights of a run or of init fix the sizes

 protected:
  std::string init_;
  bool ignore_extra_tensors_ = false;
  std::string owner_;  // "the run", or the path of the published weights; "" for a new model
  std::vector<std::string> missing_;
};

// Published: PublishedGpt, PublishedBert, PublishedTransformer or PublishedVit.
template <class Published>
class SourceOf final : public ModelSource {
 public:
  using Config = decltype(Published::config);

  // `defaults`: the configuration of a new model, where options give nothing else.
  explicit SourceOf(const Config& defaults);

  Hyperparameters Table() override;
  absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init) override;
  absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run) override;
  absl::Status Check() const override;
  absl::Status SetVocabulary(int64_t tokens) override;
  nlohmann::ordered_json Model() const override;
  absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                          Parameters* parameters) override;
  std::vector<std::string> extra() const override;

  const Config& config() const { return config_; }
  Config* mutable_config() { return &config_; }

 private:
  absl::Status ReadInit();
  absl::Status CheckExtra() const;

  Config defaults_, base_, config_;
  std::optional<Published> published_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_MODEL_SOURCE_H_
