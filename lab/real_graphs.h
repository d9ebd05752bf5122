// Steps whose schedules are worth a look.
//
//   gpt2, bert, babygpt, charcpu, minilm-forward: as in lab/models.h; the last is a forward pass
//
//   transformer   the encoder-decoder Transformer's base model, 8 pairs of 64 tokens
//   towers        8 chains of products side by side, of which one is far deeper: what begins late ends late
//   lstm          an LSTM unrolled over 64 tokens, with attention over its outputs
//   encoder       a Transformer block of the LSTM's width on the same tokens: what the recurrence costs in parallelism
#ifndef WEFT_LAB_REAL_GRAPHS_H_
#define WEFT_LAB_REAL_GRAPHS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/tape.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"

namespace weft {

struct RealGraph {
  Tape tape;
  CompileOptions options;       // of a step
  std::vector<FeedPair> feeds;  // random tokens, and a small learning rate
  std::vector<std::vector<int32_t>> tokens;
};

std::vector<std::string> RealGraphNames();
// Small ones, with the kinds and sizes of nodes that the models of lab/models.h have.
std::vector<std::string> CalibrationGraphNames();
// `name` is one of either.
std::unique_ptr<RealGraph> RecordRealGraph(const std::string& name);

}  // namespace weft

#endif  // WEFT_LAB_REAL_GRAPHS_H_
