#include "weft/train/task.h"

namespace weft {

TrainingProgram RecordUpdate(Var loss, const Optimizer& optimizer, Var correct) {
  const Var rate = loss.tape->Input("learning_rate", {kF32, {}});
  const Minimized step = optimizer.Minimize(loss, rate);
  return {.tape = loss.tape,
          .rate = rate,
          .loss = loss,
          .gradient_norm = step.gradient_norm,
          .update = step.update,
          .correct = correct};
}

}  // namespace weft
