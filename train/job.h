// One kind of training as a library: its options, data and model, whatever asks for it.
#ifndef WEFT_TRAIN_JOB_H_
#define WEFT_TRAIN_JOB_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/train/run_directory.h"
#include "weft/train/task.h"
#include "weft/train/trainer.h"

namespace weft {

// Keys of a run's config.json besides those of its table of hyperparameters.
inline constexpr char kCommandKey[] = "command", kModelKey[] = "model";

// One kind of training: its options, and its task.
class TrainingJob : public TrainingTask {
 public:
  // Rows for all that a flag or a configuration sets; they point into the job, and are the same before each call below.
  virtual Hyperparameters Table() = 0;
  // Checks what belongs together, when everything was set. `resumed` is the run that goes on, with the model and the
  // tokenizer that it has; null for one that begins.
  virtual absl::Status Check(const RunDirectory* resumed) = 0;
  // Reads the data, and records the programs.
  virtual absl::Status Prepare(Parameters* parameters) = 0;
  virtual TrainerOptions trainer() const = 0;
  // What config.json has under "model": the configuration as the field writes it.
  virtual nlohmann::ordered_json Model() const = 0;
  // "a GPT of 809856 parameters on 3840000 characters"
  virtual std::string Title(const Parameters& parameters) const = 0;

  // Gives weights that others trained to a run that begins.
  virtual absl::Status Initialize(Parameters* /*parameters*/) { return absl::OkStatus(); }
  // Writes what belongs to the model besides its weights: tokenizer.json.
  virtual absl::Status WriteFiles(const RunDirectory& run) const = 0;
  // After the training: a sample, a test.
  virtual absl::Status Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) { return absl::OkStatus(); }
};

// config.json's "model" of a run that goes on; an empty object for one that begins.
nlohmann::ordered_json ModelOf(const RunDirectory* resumed);

// A fingerprint of what a model is trained on: of numbers, and of what other fingerprints say.
template <class T>
std::string Fingerprint(absl::Span<const T> values, absl::string_view others = "") {
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return absl::StrFormat("%016x", StableHash(absl::StrCat(others, "\n", bytes)));
}

// Sets what a configuration or a run's config.json has; an error if that is of another command than "train NAME".
absl::Status SetFromConfig(const nlohmann::ordered_json& json, const std::string& name, const Hyperparameters& table);

}  // namespace weft

#endif  // WEFT_TRAIN_JOB_H_
