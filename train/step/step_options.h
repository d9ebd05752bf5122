// StepOptions are the options of a training step, which training_step.h runs. TrainerOptions adds those of the loop.
#ifndef WEFT_TRAIN_STEP_STEP_OPTIONS_H_
#define WEFT_TRAIN_STEP_STEP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/core/dtype.h"
#include "weft/distributed/all_reduce.h"
#include "weft/distributed/ranks.h"

namespace weft {

// Selects the state of large matrices that ranks divide among themselves. Each rank then has pieces of whole rows.
// Sharding changes no bit. It is also known as ZeRO (Rajbhandari et al., 2020): kOptimizer is stage 1, kGradients is
// stage 2, kWeights is stage 3.
enum class Sharding : uint8_t {
  kNone,
  kOptimizer,  // the states of the optimizer; the weights are gathered after each update
  kGradients,  // also the sums of gradients, if each rank has one micro-batch
  kWeights,    // the optimizer's states and the weights; kernels read weights that are gathered before each use
};
inline constexpr std::pair<const char*, Sharding> kShardingNames[] = {{"none", Sharding::kNone},
                                                                      {"optimizer", Sharding::kOptimizer},
                                                                      {"gradients", Sharding::kGradients},
                                                                      {"weights", Sharding::kWeights}};
// Returns the name of `sharding`. The names above have the order of the enumeration.
inline const char* Name(Sharding sharding) { return kShardingNames[static_cast<size_t>(sharding)].first; }

// The dtypes of products and of sums of gradients.
inline constexpr std::pair<const char*, DType> kPrecisionNames[] = {{"f32", kF32}, {"bf16", kBF16}};

struct StepOptions {
  int64_t micro_batches = 1;   // of a step; their gradients are added up before the update
  int64_t threads = 0;         // 0: as TrainingStep::threads tells
  DType precision = kF32;      // kF32 or kBF16, also of evaluations
  uint64_t memory_budget = 0;  // maximum bytes for the values of each graph; 0: no maximum
  // Decay rate of an exponential moving average (EMA) of the weights; 0: none. Evaluations then measure the averaged
  // weights, too, and saving writes them to ema.safetensors.
  double ema = 0;
  // If above 0, a step is skipped if its loss exceeds the running mean by more than this number of running standard
  // deviations. A step gets the limit as an argument.
  double skip_deviations = 0;
  bool timed = false;  // true: measures the time of every tile, for tile_times
  // The processes that run each step together. All of them give the same options, except threads and memory limits.
  // Rank r of N runs the micro-batches RowsOf({r, N}, micro_batches). Each rank must have at least one.
  Ranks ranks = {};
  // kF32 or kBF16: the dtype in which gradients of f32 weights are added, if there are several micro-batches. In bf16,
  // each gradient and each sum is rounded to nearest even, and the bytes that travel between ranks are halved.
  DType sums = kF32;
  Sharding sharding = Sharding::kNone;
  int64_t bucket_bytes = kBucketBytes;  // minimum size of the buckets in which gradients travel; equal on all ranks
};

}  // namespace weft

#endif  // WEFT_TRAIN_STEP_STEP_OPTIONS_H_
