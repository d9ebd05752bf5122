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
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/distributed/ranks.h"
#include "weft/models/lora.h"
#include "weft/options/hyperparameters.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"
#include "weft/train/loop/options.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/step/task.h"

namespace weft {

// Keys of a run's config.json in addition to those of the job's options.
inline constexpr char kCommandKey[] = "command", kModelKey[] = "model", kVersionKey[] = "version",
                      kFilesKey[] = "files";

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
  // Returns `rows`, then those of the tokenizer, if there is one, of adapters and of TrainingHyperparameters.
  Hyperparameters WithSharedRows(Hyperparameters rows);
  Hyperparameters AdapterRows();  // the options of adapters
  // Reads or learns the tokenizer, and sets the size of the model's vocabulary.
  absl::Status PrepareTokenizer(absl::string_view text);
  // Returns the random numbers of a training step, or of a validation batch.
  RandomStream Random(int64_t step) const { return {.seed = training_.seed, .step = static_cast<uint32_t>(step)}; }
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
};
// Sets the job's options. Returns InvalidArgument if a key is unknown or a value is invalid, if "model" of the
// configuration file contradicts its other keys, or if a file's "command" is not "train NAME".
absl::Status SetOptions(const OptionSources& sources, TrainingJob* job);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_JOB_H_
