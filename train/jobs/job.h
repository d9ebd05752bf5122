// A TrainingJob is one kind of training as a library class: its options, its data and its model. train/jobs/job_list.h
// makes the jobs by their names.
//
//   const std::unique_ptr<TrainingJob> job = MakeJob("gpt");
//   WEFT_RETURN_IF_ERROR(SetFromText("100", job->Table()[i]));   // options
//   WEFT_RETURN_IF_ERROR(job->Check(nullptr));
//   Parameters parameters({.seed = job->training().seed});
//   WEFT_RETURN_IF_ERROR(job->Prepare(&parameters));             // reads the data, records the programs
//   Trainer::Create(ToTrainerOptions(job->training(), job->batches_per_epoch()), job.get(), &parameters, &run);
#ifndef WEFT_TRAIN_JOBS_JOB_H_
#define WEFT_TRAIN_JOBS_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/distributed/ranks.h"
#include "weft/formats/weights.h"
#include "weft/models/lora.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/train/loop/options.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/step/task.h"

namespace weft {

// Keys of a run's config.json in addition to those of the job's options.
inline constexpr char kCommandKey[] = "command", kModelKey[] = "model", kVersionKey[] = "version",
                      kFilesKey[] = "files";

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
class ModelSource {
 public:
  virtual ~ModelSource() = default;

  // Returns the rows init and ignore-extra-tensors, and the rows of models/options.h.
  virtual Hyperparameters Table() = 0;
  const std::string& init() const { return init_; }  // the path of the published weights, or ""
  std::string tokenizer() const;  // the file or folder of the tokenizer of the model that init names, or ""

  // Sets the configuration before options are set. `run`: config.json of the resumed run, or null. If `run` has the key
  // "model", takes that model. Otherwise, if `init` is not empty, takes the published model, with the dropout of the
  // defaults.
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
  // error, and surplus weights are ignored. Weights whose names contain "classifier." are copied only if
  // the published model's classes are `labels`. A longer table of positions gives its first rows.
  virtual absl::Status Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                                  Parameters* parameters) = 0;
  // After Initialize, returns the names of the weights that the published model does not have and that keep their
  // initial values, except those of adapters.
  const std::vector<std::string>& missing() const { return missing_; }
  // Returns Weights::extra of the published model, if the option ignore-extra-tensors is set.
  const std::vector<std::string>& extra() const { return extra_; }
  bool has_weights() const { return !owner_.empty(); }  // whether the weights of a run or of init fix the sizes

 protected:
  std::string init_;
  bool ignore_extra_tensors_ = false;
  std::string owner_;  // "the run", or the path of the published weights; "" for a new model
  std::vector<std::string> missing_, extra_;
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

  const Config& config() const { return config_; }
  Config* mutable_config() { return &config_; }

 private:
  absl::Status ReadInit();
  absl::Status CheckExtra() const;

  Config defaults_, base_, config_;
  std::optional<Published> published_;
};

// Tokenizers that are made from the data: byte-level BPE, and those of a text's characters and of bytes.
inline constexpr char kBpe[] = "bpe", kCharacters[] = "characters", kBytes[] = "bytes";

// A TrainingTokenizer is the tokenizer of a training run on text. It is read from a resumed run, from the file that an
// option names, or from a default folder. If there is none of these, it is made from the data.
//
//   TrainingTokenizer tokenizer({"<pad>", "<s>", "</s>"});
//   WEFT_RETURN_IF_ERROR(tokenizer.Prepare(text));
//   tokenizer->Encode(...);
class TrainingTokenizer {
 public:
  // The first two arguments apply to a learnt BPE. `special`: its special tokens; a tokenizer of characters has them
  // too, unless it is the default kind. `set_format`: called with the learnt model, for example to set the input
  // formats. `kinds`: values of the option that name no file; the first is the default.
  explicit TrainingTokenizer(std::vector<std::string> special, std::function<void(BpeModel*)> set_format = nullptr,
                             std::vector<std::string> kinds = {kBpe})
      : special_(std::move(special)), set_format_(std::move(set_format)), kinds_(std::move(kinds)) {}

  Hyperparameters Table();  // rows tokenizer, vocabulary and special-tokens
  // Sets the folder to read from if no option names a tokenizer; "" for none.
  void set_default(const std::string& folder) { default_ = folder; }
  // Sets the folder of a resumed run. If the folder has a tokenizer, Prepare reads that one and no other.
  void set_run(const std::string& folder) { run_ = folder; }

  // Reads the tokenizer of the resumed run, if there is one. Otherwise reads the tokenizer that the option names, or
  // else that of the default folder. If neither is set, or the option names a kind, makes a tokenizer with Learn.
  // Returns InvalidArgument if the default folder has a tokenizer of other tokens than one that Learn made.
  absl::Status Prepare(absl::string_view text, absl::string_view learnt_from);
  absl::Status Prepare(absl::string_view text) { return Prepare(text, text); }
  // Makes a tokenizer of the kind that the option names, or else of the default kind: of the characters of `text`, or
  // BPE from `learnt_from`.
  absl::Status Learn(absl::string_view text, absl::string_view learnt_from);
  // Reads the tokenizer of a file or folder.
  absl::Status Read(const std::string& path);
  // Writes the tokenizer's files into the run's folder.
  absl::Status Write(RunDirectory* run) const;

  const std::string& path() const { return path_; }  // the option's value
  // After Prepare, returns the run or the default folder from which the tokenizer was read, or "". Token ids in the
  // folder's generation_config.json belong to this tokenizer.
  const std::string& owner() const { return owner_; }
  bool is_resumed() const { return !run_.empty(); }  // whether set_run was called
  // Returns the tokenizer's files.
  absl::Span<const NamedContents> files() const { return files_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const Tokenizer& operator*() const { return *tokenizer_; }

 private:
  absl::Status CheckLearnt() const;

  std::string path_, default_, run_, owner_;
  int64_t vocabulary_ = 8000;  // maximum number of tokens of a learnt BPE
  std::vector<std::string> special_;
  std::optional<bool> special_tokens_;  // Tokenizer::ReadSpecial
  std::function<void(BpeModel*)> set_format_;
  std::vector<std::string> kinds_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<NamedContents> files_;
};

// Returns a tokenizer for BERTs. If it is learnt, it has BERT's special tokens and input formats.
TrainingTokenizer BertTokenizer();
// Returns tokenizers for GPTs: of characters, of bytes, or BPE with the special token <|endoftext|>.
TrainingTokenizer GptTokenizer();

// Returns `id`, or InvalidArgument "the tokenizer has no NAME token" if it is not set.
absl::StatusOr<int32_t> NeededToken(const std::optional<int32_t>& id, absl::string_view name);

// Counts of the micro-batches that each program of a job gets.
struct ProgramCounts {
  std::vector<int64_t> training, evaluation;
};

// What a job adds to this class: its data, the programs of its model, and its figures.
class TrainingJob : public TrainingTask {
 public:
  // Sets the ranks that run the training together. Must be called before Prepare. Train is then called for this rank's
  // micro-batches only, and Validate for the validation batches rank, rank + size, rank + 2 size, ...
  void set_ranks(const Ranks& ranks) { ranks_ = ranks; }
  // Returns a row for each option of the job, by which the option can be set. The rows point into the job.
  virtual Hyperparameters Table() = 0;
  // Returns the model with which the training begins. Its rows are among those of Table().
  ModelSource& source() const { return *model_source_; }
  // Checks the options after all of them are set. `resumed` is the run to resume, with its model and tokenizer; null
  // for a new run.
  virtual absl::Status Check(const RunDirectory* resumed);
  // Reads the data and records the programs.
  virtual absl::Status Prepare(Parameters* parameters) = 0;
  const TrainingOptions& training() const { return training_; }
  int64_t batch() const { return batch_; }  // examples of a step
  // After Prepare, returns the number of batches in an epoch, or 0 if the job has no epochs.
  virtual int64_t batches_per_epoch() const { return 0; }
  // After Prepare, counts the micro-batches of the first `steps` training steps and of one evaluation. By default, all
  // steps and validation batches have the micro-batches of step 0.
  virtual absl::StatusOr<ProgramCounts> CountPrograms(int64_t steps);
  // Returns the model's configuration in the keys of published models, for "model" in config.json. The result is empty
  // if these keys can't express the configuration.
  virtual nlohmann::ordered_json Model() const;
  // Returns a line that describes the training: "a GPT of 809856 parameters on 3840000 characters".
  virtual std::string Title(const Parameters& parameters) const = 0;

  // Returns InvalidArgument if the job needs whole weights outside its programs, so that ranks can't divide them
  // (Sharding::kWeights).
  virtual absl::Status CheckDivisible() const;
  // If an option names published weights, loads them into `parameters`. Callers that loaded a checkpoint skip this.
  virtual absl::Status Initialize(Parameters* parameters) { return source().Initialize({}, {}, parameters); }
  // Writes the model's files other than its weights: by default, those of the tokenizer.
  virtual absl::Status WriteFiles(RunDirectory* run) const;
  // Finishes a run after its last step, for example by writing a sample. Returns lines to print.
  virtual absl::StatusOr<std::string> Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) { return ""; }

  absl::Span<const TrainingProgram> programs() const final { return programs_; }
  std::string data() const final { return fingerprint_; }
  // Writes the trained adapters, if there are any, as PEFT does (formats/adapters.h).
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override;

 protected:
  // Takes the defaults of the options that all jobs have. `tokenizer`: a member of the derived job, or null if the job
  // has none.
  TrainingJob(TrainingTokenizer* tokenizer, int64_t batch, LoraOptions lora, TrainingOptions training);
  // Sets source() to a member of the derived job, whose constructor calls this: only then is the member a ModelSource.
  void set_source(ModelSource* source) { model_source_ = source; }

  const Ranks& ranks() const { return ranks_; }
  int64_t micro_batches() const { return training_.trainer.micro_batches; }
  // Returns `rows`, those of source(), `training` in the group "Training", and those of the tokenizer, if there is one,
  // of adapters and of TrainingHyperparameters.
  Hyperparameters WithSharedRows(Hyperparameters rows, Hyperparameters training = {});
  Hyperparameters AdapterRows();  // the options of adapters
  // Reads or learns the tokenizer, and sets the size of the model's vocabulary.
  absl::Status PrepareTokenizer(absl::string_view text);
  // Returns the random numbers of a training step, or of a validation batch.
  RandomStream Random(int64_t step) const { return {.seed = training_.seed, .step = static_cast<uint32_t>(step)}; }
  // Returns "1 batch" or "2 batches".
  static std::string Count(size_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
  }
  // Returns "809856 parameters"; with adapters, "809856 parameters (1024 of them trained)".
  std::string CountParameters(const Parameters& parameters) const;

  int64_t batch_;
  LoraOptions lora_;
  TrainingOptions training_;
  std::string fingerprint_;                // of the training data
  std::vector<TrainingProgram> programs_;  // set by Prepare

 private:
  ModelSource* model_source_ = nullptr;
  TrainingTokenizer* text_tokenizer_;
  Ranks ranks_;
};

// Returns a fingerprint of `previous` and `bytes`. For several arrays, pass the result of each call as the next
// `previous`.
std::string FingerprintOfBytes(absl::string_view bytes, absl::string_view previous);
// Returns a fingerprint of `previous` and the bytes of numbers.
template <class T>
std::string Fingerprint(absl::Span<const T> values, absl::string_view previous = "") {
  return FingerprintOfBytes({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, previous);
}

// Where the options of a job come from. Later sources win: the config.json of the run to resume, a configuration file,
// and texts by the options' names.
struct OptionSources {
  std::string name;                       // of the job: "gpt"
  const RunDirectory* resumed = nullptr;  // null for a new run
  std::string config;                     // path of a configuration file, or ""
  std::map<std::string, std::string> given;
  nlohmann::ordered_json* contents = nullptr;  // if not null, keeps the contents of `config`
};
// Sets the job's options. Returns InvalidArgument if a key is unknown or a value is invalid, if "model" of the
// configuration file contradicts its other keys, or if a file's "command" is not "train NAME".
absl::Status SetOptions(const OptionSources& sources, TrainingJob* job);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_JOB_H_
