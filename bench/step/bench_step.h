// RecordStep records a step of a BenchModel, ready to compile, and counts its FLOPs.
//
//   const BenchModel* model = FindBenchModel("gpt2");
//   Tape tape;
//   const BenchStep step = RecordStep(&tape, *model, model->batch, model->length);
//   absl::StatusOr<Graph> compiled = Compile(tape, step.options);
#ifndef WEFT_BENCH_STEP_BENCH_STEP_H_
#define WEFT_BENCH_STEP_BENCH_STEP_H_

#include <cstdint>

#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/real_graphs.h"

namespace weft {

struct BenchStep : RecordedModel {
  Var rate, update;             // f32 [], and the update by BenchOptimizer; null if the model is not trained
  double flops = 0;             // tokens times weights times 6; times 2 in a forward pass, without embeddings
  CompileOptions options = {};  // what the step fetches and updates
};

// Records on `tape` a training step or, if the model is not trained, a forward pass. `length`: as for RecordModel.
BenchStep RecordStep(Tape* tape, const BenchModel& model, int64_t batch, int64_t length);

}  // namespace weft

#endif  // WEFT_BENCH_STEP_BENCH_STEP_H_
