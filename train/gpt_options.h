// What `weft train gpt`, `weft generate` and `weft graph` share: the options of a GPT, and its training program.
#ifndef WEFT_TRAIN_GPT_OPTIONS_H_
#define WEFT_TRAIN_GPT_OPTIONS_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/tape.h"
#include "weft/formats/gpt_options.h"
#include "weft/train/optimizer.h"
#include "weft/train/task.h"
#include "weft/train/trainer.h"

namespace weft {

struct GptOptions : GptModelOptions {
  int64_t batch = 12, eval_batches = 200;
  AdamWConfig optimizer = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip = 1.0};
  TrainerOptions trainer;
  std::string data;        // a file; empty: the King James Bible
  double input_noise = 0;  // the part of the inputs of training that are drawn at random
  int64_t sample_length = 500;
  double sample_temperature = 0.8;
};

// Returns the rows of the model (ModelHyperparameters), the data, the training and the sample.
Hyperparameters AllHyperparameters(GptOptions* options);
// Sets what a configuration or a run's config.json has.
absl::Status SetFromConfig(const nlohmann::ordered_json& json, GptOptions* options);

struct GptProgram {
  Tape tape;
  Var tokens, targets;  // inputs i32 [B, T]
  TrainingProgram training;
};
std::unique_ptr<GptProgram> RecordTraining(const GptOptions& options);

}  // namespace weft

#endif  // WEFT_TRAIN_GPT_OPTIONS_H_
