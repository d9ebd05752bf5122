// A TrainingJob is one kind of training as a library class: its options, its data and its model. train/jobs/gpt_job.h,
// train/jobs/bert_job.h and so on declare the jobs.
//
//   GptJob job;
//   WEFT_RETURN_IF_ERROR(SetFromText("100", job.Table()[i]));   // options
//   WEFT_RETURN_IF_ERROR(job.Check(nullptr));
//   Parameters parameters({.seed = job.training().seed});
//   WEFT_RETURN_IF_ERROR(job.Prepare(&parameters));             // reads the data, records the programs
//   Trainer::Create(ToTrainerOptions(job.training(), job.batches_per_epoch()), &job, &parameters, &run);
#ifndef WEFT_TRAIN_JOBS_JOB_H_
#define WEFT_TRAIN_JOBS_JOB_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/distributed/ranks.h"
#include "weft/models/lora.h"
#include "weft/train/options.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/task.h"

namespace weft {

// Keys of a run's config.json in addition to those of the job's options.
inline constexpr char kCommandKey[] = "command", kModelKey[] = "model", kVersionKey[] = "version",
                      kFilesKey[] = "files";

// Counts of the micro-batches that each program of a job gets.
struct ProgramCounts {
  std::vector<int64_t> training, evaluation;
};

// The published weights with which a training begins, and how they differ from the weights of the job's model.
struct InitialWeights {
  std::string model;  // the path of the published weights, or ""
  // After Initialize, the names of the weights that the published model does not have and that keep their initial
  // values.
  std::vector<std::string> missing;
  std::vector<std::string> extra;  // Weights::extra of the published model, if the option ignore-extra-tensors is set
};

class TrainingJob : public TrainingTask {
 public:
  // Sets the ranks that run the training together. Must be called before Prepare. Train is then called for this rank's
  // micro-batches only, and Validate for the validation batches rank, rank + size, rank + 2 size, ...
  void set_ranks(const Ranks& ranks) { ranks_ = ranks; }
  // Returns a row for each option of the job, by which the option can be set. The rows point into the job.
  virtual Hyperparameters Table() = 0;
  // Returns the rows of Table() that describe the model.
  virtual Hyperparameters ModelTable() = 0;
  // Sets the model with which the options begin, before any of them is set. `run`: the config.json of the run to
  // resume, or null. `init`: the value of the option init, or "".
  virtual absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init) = 0;
  // Sets options of the model from "model" of a configuration file. `is_run`: whether the file is a run's config.json.
  virtual absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run) = 0;
  // Checks the options after all of them are set. `resumed` is the run to resume, with its model and tokenizer; null
  // for a new run.
  virtual absl::Status Check(const RunDirectory* resumed) = 0;
  // Reads the data and records the programs.
  virtual absl::Status Prepare(Parameters* parameters) = 0;
  virtual const TrainingOptions& training() const = 0;
  // After Prepare, returns the number of batches in an epoch, or 0 if the job has no epochs.
  virtual int64_t batches_per_epoch() const { return 0; }
  // After Prepare, counts the micro-batches of the first `steps` training steps and of one evaluation. By default, all
  // steps and validation batches have the micro-batches of step 0.
  virtual absl::StatusOr<ProgramCounts> CountPrograms(int64_t steps);
  // Returns the model's configuration in the keys of published models, for "model" in config.json. The result is empty
  // if these keys can't express the configuration.
  virtual nlohmann::ordered_json Model() const = 0;
  // Returns a line that describes the training: "a GPT of 809856 parameters on 3840000 characters".
  virtual std::string Title(const Parameters& parameters) const = 0;

  virtual const LoraOptions& lora() const = 0;
  // Returns what the job takes from published weights; all fields are empty if no option names any.
  virtual InitialWeights initial_weights() const { return {}; }
  // Writes the trained adapters, if there are any (SaveAdapter).
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override;

  // Returns InvalidArgument if the job needs whole weights outside its programs, so that ranks can't divide them
  // (Sharding::kWeights).
  virtual absl::Status CheckDivisible() const;
  // If an option names published weights, loads them into `parameters`. Callers that loaded a checkpoint skip this.
  virtual absl::Status Initialize(Parameters* /*parameters*/) { return absl::OkStatus(); }
  // Writes the model's files other than its weights, such as tokenizer.json.
  virtual absl::Status WriteFiles(RunDirectory* run) const = 0;
  // Finishes a run after its last step, for example by writing a sample. Returns lines to print.
  virtual absl::StatusOr<std::string> Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) { return ""; }

 protected:
  const Ranks& ranks() const { return ranks_; }

 private:
  Ranks ranks_;
};

// Returns InvalidArgument "OPTION: no file was given".
absl::Status MissingFile(absl::string_view option);

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
};
// Sets the job's options. Returns InvalidArgument if a key is unknown or a value is invalid, if "model" of the
// configuration file contradicts its other keys, or if a file's "command" is not "train NAME".
absl::Status SetOptions(const OptionSources& sources, TrainingJob* job);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_JOB_H_
