// A TrainingJob is one kind of training as a library class: its options, its data and its model. train/gpt_job.h and
// its neighbours declare the jobs.
//
//   GptJob job;
//   WEFT_RETURN_IF_ERROR(SetFromText("100", job.Table()[i]));   // options
//   WEFT_RETURN_IF_ERROR(job.Check(nullptr));
//   Parameters parameters({.seed = job.training().seed});
//   WEFT_RETURN_IF_ERROR(job.Prepare(&parameters));             // reads the data, records the programs
//   Trainer::Create(ToTrainerOptions(job.training(), job.batches_per_epoch()), &job, &parameters, &run);
#ifndef WEFT_TRAIN_JOB_H_
#define WEFT_TRAIN_JOB_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/train/options.h"
#include "weft/train/run_directory.h"
#include "weft/train/task.h"

namespace weft {

// Keys of a run's config.json beside those of the job's table of options.
inline constexpr char kCommandKey[] = "command", kModelKey[] = "model";

class TrainingJob : public TrainingTask {
 public:
  // Returns a row for each option that a flag or a configuration sets. The rows point into the job.
  virtual Hyperparameters Table() = 0;
  // Checks the options when all of them are set. `resumed` is the run to resume, with its model and tokenizer; null if
  // a run begins.
  virtual absl::Status Check(const RunDirectory* resumed) = 0;
  // Reads the data and records the programs.
  virtual absl::Status Prepare(Parameters* parameters) = 0;
  virtual const TrainingOptions& training() const = 0;
  // Returns the number of batches in an epoch, after Prepare; 0 if the job has no epochs.
  virtual int64_t batches_per_epoch() const { return 0; }
  // Returns the model's configuration for the key "model" of config.json, in the keys of published models; empty if
  // they can't express it.
  virtual nlohmann::ordered_json Model() const = 0;
  // Returns a line that describes the training: "a GPT of 809856 parameters on 3840000 characters".
  virtual std::string Title(const Parameters& parameters) const = 0;

  // Loads published weights into a new run, if an option names some. Not called if a checkpoint was resumed.
  virtual absl::Status Initialize(Parameters* /*parameters*/) { return absl::OkStatus(); }
  // Writes the model's files other than its weights, such as tokenizer.json.
  virtual absl::Status WriteFiles(const RunDirectory& run) const = 0;
  // Runs after the training, for example to write a sample. Returns lines to print.
  virtual absl::StatusOr<std::string> Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) { return ""; }
};

// Returns "model" of the config.json of a run; an empty object if `resumed` is null.
nlohmann::ordered_json ModelOf(const RunDirectory* resumed);

// Returns InvalidArgument "OPTION: no file was given".
absl::Status MissingFile(absl::string_view option);

// Returns a fingerprint of the bytes and of a previous fingerprint.
std::string FingerprintOfBytes(absl::string_view bytes, absl::string_view previous);
// The same for numbers. A fingerprint of several arrays is made one after the other.
template <class T>
std::string Fingerprint(absl::Span<const T> values, absl::string_view previous = "") {
  return FingerprintOfBytes({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, previous);
}

// Sets the options that a configuration or a run's config.json has. InvalidArgument if that was written by another
// command than "train NAME".
absl::Status SetFromConfig(const nlohmann::ordered_json& json, const std::string& name, const Hyperparameters& table);

}  // namespace weft

#endif  // WEFT_TRAIN_JOB_H_
