#include "weft/train/options.h"

namespace weft {

Hyperparameters TrainerHyperparameters(TrainerOptions* options) {
  constexpr double kMostSteps = 1 << 24;  // the optimizer counts in f32
  return {
      {"steps", "updates to make", &options->steps, {.low = 0, .high = kMostSteps, .may_change = true}},
      {"batch", "windows of text in a batch", &options->batch, {.low = 1, .high = 1e6}},
      {"learning-rate", "the highest learning rate, reached after the warm-up", &options->learning_rate, {.low = 0}},
      {"min-learning-rate", "the learning rate at the end", &options->minimum_learning_rate, {.low = 0}},
      {"warmup-steps", "steps of linear warm-up", &options->warmup_steps, {.low = 0, .high = kMostSteps}},
      {"eval-every",
       "steps between evaluations on the validation text; 0: none",
       &options->eval_every,
       {.low = 0, .may_change = true}},
      {"eval-batches", "batches in an evaluation", &options->eval_batches, {.low = 0, .may_change = true}},
      {"checkpoint-every",
       "steps between checkpoints; 0: only at the end and on Ctrl-C",
       &options->checkpoint_every,
       {.low = 0, .may_change = true}},
      {"log-every",
       "steps between lines when the output is a file; 0: none",
       &options->log_every,
       {.low = 0, .may_change = true}},
      {"threads",
       "threads to compute with; 0: one a core. Results do not depend on it",
       &options->threads,
       {.low = 0, .high = 1024, .may_change = true}},
      {"seed", "of initial weights, batches and dropout", &options->seed},
  };
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
