#include "weft/train/jobs/gpt_program.h"

#include "weft/models/gpt.h"
#include "weft/ops/ops.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {

Hyperparameters AllHyperparameters(GptOptions* options) {
  Hyperparameters table = {{"data",
                            "a UTF-8 text, or folders of token files (weft tokenize --out) as DIR,DIR or "
                            "DIR:WEIGHT,DIR:WEIGHT; without it, the King James Bible",
                            &options->data,
                            {.may_change = true, .is_path_list = true}},
                           {"documents",
                            "attention across all documents in a window, or within separate documents, which needs "
                            "token files",
                            &options->documents,
                            {.choices = {"across", "separate"}}}};
  Append(ModelHyperparameters(options), &table);
  Append(
      {{"batch", "windows of text in a batch", &options->batch, {.low = 1, .high = 1e6}},
       {"eval-batches", "batches in an evaluation", &options->eval_batches, {.low = 0, .may_change = true}},
       {"input-noise",
        "fraction of the input tokens that are replaced by random tokens in training, to get used to the mistakes of "
        "a model's own text",
        &options->input_noise,
        {.low = 0, .high = 1}}},
      &table);
  Append(LoraHyperparameters(&options->lora), &table);
  Append(TrainingHyperparameters(&options->training), &table);
  Append({{"sample-length",
           "number of tokens in the sample at the end; 0: no sample",
           &options->sample_length,
           {.low = 0, .may_change = true}},
          {"sample-temperature",
           "sampling temperature of the sample; 0 picks the most likely token",
           &options->sample_temperature,
           {.low = 0, .may_change = true}}},
         &table);
  return table;
}

absl::Status SetFromConfig(const nlohmann::ordered_json& json, GptOptions* options) {
  return SetFromConfig(json, "gpt", AllHyperparameters(options));
}

std::unique_ptr<GptProgram> RecordTraining(const GptOptions& options, int64_t rows) {
  auto program = std::make_unique<GptProgram>();
  Tape& tape = program->tape;
  const TensorType windows = {kI32, {rows > 0 ? rows : options.batch, options.model.context}};
  const InputBounds bounds = {.below = options.model.vocabulary};
  program->tokens = tape.Input("tokens", windows, bounds);
  program->targets = tape.Input("targets", windows, bounds);
  if (options.documents == "separate") program->documents = tape.Input("documents", windows);
  const LoraScope lora(&tape, options.lora);
  const Var logits = Gpt(options.model).Logits(program->tokens, /*cache=*/nullptr, program->documents);
  program->training = {.tape = &tape, .loss = CrossEntropy(logits, program->targets)};
  return program;
}

}  // namespace weft
