// The parts of a training's state that ranks can divide among themselves.
#ifndef WEFT_TRAIN_SHARDING_H_
#define WEFT_TRAIN_SHARDING_H_

#include <cstddef>
#include <cstdint>
#include <utility>

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

}  // namespace weft

#endif  // WEFT_TRAIN_SHARDING_H_
