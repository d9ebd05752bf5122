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
#include "weft/formats/config_json.h"
#include "weft/models/gpt.h"
#include "weft/models/lora.h"
#include "weft/train/loop/options.h"
#include "weft/train/step/task.h"

namespace weft {

struct GptOptions {
  GptConfig model = CharacterGpt();
  int64_t batch = 12;
  LoraOptions lora = {.targets = "*.c_attn"};
  TrainingOptions training = {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip = 1.0})};
  std::string documents = "across";  // attention "across" documents or within "separate" ones, which needs token files
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
