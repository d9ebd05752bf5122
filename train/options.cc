#include "weft/train/options.h"

namespace weft {

Hyperparameters TrainerHyperparameters(TrainerOptions* options, int64_t* epochs) {
  const double least = epochs != nullptr ? -1 : 0;
  const std::string each = epochs != nullptr ? "; -1: each epoch" : "";
  Hyperparameters table = {
      {"steps",
       epochs != nullptr ? "updates to make; 0: those of the epochs" : "updates to make",
       &options->steps,
       {.low = 0, .high = static_cast<double>(kMaxSteps), .may_change = true}},
      {"learning-rate", "the highest learning rate, reached after the warm-up", &options->learning_rate, {.low = 0}},
      {"min-learning-rate", "the learning rate at the end", &options->minimum_learning_rate, {.low = 0}},
      {"warmup-steps",
       "steps of linear warm-up",
       &options->warmup_steps,
       {.low = 0, .high = static_cast<double>(kMaxSteps)}},
      {"eval-every",
       "steps between evaluations on the validation data; 0: none" + each,
       &options->eval_every,
       {.low = least, .may_change = true}},
      {"checkpoint-every",
       "steps between checkpoints; 0: only at the end and on Ctrl-C" + each,
       &options->checkpoint_every,
       {.low = least, .may_change = true}},
      {"log-every",
       "steps between lines when the output is a file; 0: none",
       &options->log_every,
       {.low = 0, .may_change = true}},
      {"threads",
       "threads to compute with; 0: one a core. Results do not depend on it",
       &options->threads,
       {.low = 0, .high = 1024, .may_change = true}},
      {"precision",
       "bf16: products take numbers of 16 bits, and give them on; weights, their updates and the loss stay f32",
       &options->precision,
       {.choices = {"f32", "bf16"}}},
      {"memory-budget",
       "the most bytes that a step's values may take, like 500M; 0: no limit. Results do not depend on it",
       &options->memory_budget,
       {.may_change = true, .is_bytes = true}},
      {"seed", "of initial weights, batches and dropout", &options->seed},
  };
  if (epochs != nullptr) {
    table.insert(table.begin(),
                 {"epochs", "passes over the data", epochs, {.low = 0, .high = 1e6, .may_change = true}});
  }
  return table;
}

TrainerOptions InSteps(TrainerOptions options, int64_t epochs, int64_t batches) {
  if (options.steps == 0) options.steps = epochs * batches;
  for (int64_t* every : {&options.eval_every, &options.checkpoint_every}) {
    if (*every < 0) *every = batches;
  }
  return options;
}

Hyperparameters AdamWHyperparameters(AdamWConfig* config) {
  constexpr double kBelowOne = 0.99999999;
  return {
      {"beta1", "AdamW's decay of the mean gradient", &config->beta1, {.low = 0, .high = kBelowOne}},
      {"beta2", "AdamW's decay of the mean squared gradient", &config->beta2, {.low = 0, .high = kBelowOne}},
      {"epsilon", "what AdamW adds to the divisor", &config->epsilon, {.low = 0}},
      {"weight-decay", "of matrices; biases and gains have none", &config->weight_decay, {.low = 0}},
      {"clip", "the largest global norm of the gradients; 0: no limit", &config->clip, {.low = 0}},
  };
}

}  // namespace weft
