// Which nodes are computed twice so that a program needs less memory: the choice that rematerialisation makes.
#ifndef WEFT_GRAPH_PASSES_RECOMPUTATION_H_
#define WEFT_GRAPH_PASSES_RECOMPUTATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/graph/passes/passes.h"

namespace weft {

inline constexpr uint32_t kNever = 0xffffffff;

struct Recomputation {
  // By node: what stands from this place of the program on reads a clone, made just before it; kNever: the original.
  std::vector<uint32_t> from;
  double seconds = 0;  // that clones take, by the cost model
  bool fits = false;   // no more bytes are live at once than was asked for
};

class RecomputationChooser {
 public:
  explicit RecomputationChooser(const Rewrite& rewrite);
  ~RecomputationChooser();

  size_t most_live() const;  // bytes at once, with nothing computed twice
  // Takes what costs least per byte, for as long as more than `bytes` are live at once and something helps.
  Recomputation Choose(size_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_RECOMPUTATION_H_
