// Optimizers: record gradients, clipping and the update of every weight of a tape.
//
//   Minimized step = AdamW(options).Minimize(loss, rate);
//   Compile(tape, {.fetch = {loss, step.gradient_norm}, .update = {step}});
#ifndef WEFT_TRAIN_OPTIMIZER_H_
#define WEFT_TRAIN_OPTIMIZER_H_

#include "weft/ops/ops.h"

namespace weft {

struct Minimized {
  Var update;         // for CompileOptions::update
  Var gradient_norm;  // f32 []: before clipping
  operator Var() const { return update; }
};

struct AdamWConfig {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  // of tensors of rank 2 and more; biases and gains are not decayed
  double clip = 0;             // the largest global norm of the gradients; 0: no limit
};

class AdamW {
 public:
  explicit AdamW(const AdamWConfig& config) : config_(config) {}
  // Updates every weight recorded on the loss's tape so far. `rate` is an f32 scalar. The moments are states
  // "adamw.m.NAME" and "adamw.v.NAME"; the number of steps is "adamw.step".
  Minimized Minimize(Var loss, Var rate) const;

 private:
  AdamWConfig config_;
};

struct SgdConfig {  // the decay is of all weights, biases and gains too
  double momentum = 0, weight_decay = 0, clip = 0;
};

class Sgd {
 public:
  explicit Sgd(const SgdConfig& config) : config_(config) {}
  Minimized Minimize(Var loss, Var rate) const;  // the momenta are states "sgd.m.NAME"

 private:
  SgdConfig config_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZER_H_
