// GptOptions are the options for training a GPT, and GptProgram is the program that they describe. GptJob trains it,
// and the graph commands print it.
//
//   GptOptions options;
//   options.model.vocabulary = 65;
//   const std::unique_ptr<GptProgram> program = RecordTraining(options);
//   Compile(program->tape, {.fetch = {program->training.loss}});
#ifndef WEFT_TRAIN_JOBS_GPT_PROGRAM_H_
#define WEFT_TRAIN_JOBS_GPT_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "weft/core/tape.h"
#include "weft/formats/model_options.h"
#include "weft/models/gpt.h"
#include "weft/models/lora.h"
#include "weft/train/options.h"
#include "weft/train/task.h"

namespace weft {

struct GptOptions {
  GptConfig model = CharacterGpt();
  int64_t batch = 12, eval_batches = 200;
  TrainingOptions training = {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip = 1.0})};
  int64_t epochs = 0;                // passes over the data, in random windows; 0: `training` has the number of steps
  std::string documents = "across";  // attention "across" documents or within "separate" ones, which needs token files
  // The positions of training windows: "anywhere" in the data; or "by-row": those of row i of B are in part i of B.
  std::string window_positions = "anywhere";
  LoraOptions lora = {.targets = "*.c_attn"};
  double input_noise = 0;  // fraction of the input tokens that are replaced by random tokens in training
  int64_t sample_length = 500;
  double sample_temperature = 0.8;
};

struct GptProgram {
  Tape tape;
  Var tokens, targets;  // inputs i32 [B, T]
  Var documents;        // input i32 [B, T], numbers of the tokens' documents; null unless they are separate
  TrainingProgram training;
};
// Records the loss of a batch of `rows` windows; 0: of options.batch windows.
std::unique_ptr<GptProgram> RecordTraining(const GptOptions& options, int64_t rows = 0);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_GPT_PROGRAM_H_
