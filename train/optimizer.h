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

// Adam (Kingma and Ba, 2015): as AdamW, but that the decay is added to the gradients, of all weights. States
// "adam.m.NAME", "adam.v.NAME", "adam.step".
class Adam {
 public:
  explicit Adam(const AdamWConfig& config) : config_(config) {}
  Minimized Minimize(Var loss, Var rate) const;

 private:
  AdamWConfig config_;
};

struct SgdConfig {  // the decay is of all weights, biases and gains too
  double momentum = 0, weight_decay = 0, clip = 0;
  bool nesterov = false;
};

class Sgd {
 public:
  explicit Sgd(const SgdConfig& config) : config_(config) {}
  Minimized Minimize(Var loss, Var rate) const;  // the momenta are states "sgd.m.NAME"

 private:
  SgdConfig config_;
};

struct AdagradConfig {  // the decay is of all weights
  double epsilon = 1e-10, weight_decay = 0, rate_decay = 0, clip = 0;
};

class Adagrad {
 public:
  explicit Adagrad(const AdagradConfig& config) : config_(config) {}
  Minimized Minimize(Var loss, Var rate) const;  // states "adagrad.sum.NAME" and "adagrad.step"

 private:
  AdagradConfig config_;
};

struct LionConfig {
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // of tensors of rank 2 and more
  double clip = 0;
};

class Lion {
 public:
  explicit Lion(const LionConfig& config) : config_(config) {}
  Minimized Minimize(Var loss, Var rate) const;  // the momenta are states "lion.m.NAME"

 private:
  LionConfig config_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZER_H_
