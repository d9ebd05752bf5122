// The benchmarks of steps on several ranks (ranks_bench, mpi_allreduce_bench) share their flags, their model and data,
// and the figures of the row that they print.
//
//   RankedOptions options;
//   AddRankedFlags(&app, &options);
//   ...
//   RankedModel model(options);
//   const TrainingBatch batch = model.Batch(/*micro_batch=*/0);
#ifndef WEFT_BENCH_RANKED_STEP_H_
#define WEFT_BENCH_RANKED_STEP_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/bench/row.h"
#include "weft/core/op.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/lab/real_graphs.h"
#include "weft/train/step/task.h"

namespace CLI {
class App;
}

namespace weft {

struct RankedOptions {
  std::string model = "gpt2", precision = "f32";
  int64_t batch = 0, length = 0;  // of a micro-batch; 0: the model's own value
  int64_t layers = 0, width = 0;  // 0: the model's own value
  int64_t micro_batches = 2;
  int threads = 1;  // of each rank
  int steps = 10;
  bool json = false;

  DType dtype() const { return precision == "bf16" ? kBF16 : kF32; }
};

void AddRankedFlags(CLI::App* app, RankedOptions* options);

// The loss of a model for one micro-batch, with random tokens. Each step has the same micro-batches.
class RankedModel {
 public:
  explicit RankedModel(const RankedOptions& options);

  Tape* tape() { return &tape_; }
  Var loss() const { return loss_.result; }
  int64_t tokens() const { return sizes_.batch * sizes_.length; }  // of a micro-batch
  // Returns a micro-batch, which is valid until the next call.
  TrainingBatch Batch(int64_t micro_batch);
  // Returns {"model", "batch", "length"} of a row.
  nlohmann::ordered_json Sizes() const;

 private:
  BenchModel sizes_;
  Tape tape_;
  RecordedModel loss_;
  std::vector<int32_t> fed_tokens_, fed_targets_;
};

// The figures of one rank.
struct RankFigures {
  std::vector<double> step_seconds;  // by step; at least three steps
  // For each step after the second: seconds in which a message was under way, and the part of these seconds in which
  // this rank ran kernels.
  std::vector<double> message_seconds, hidden_seconds;
  int64_t bytes_sent = 0;  // in one step
  double loss = 0;         // of the last step
  uint64_t checksum = 0;   // of the weights
  // Planned bytes of the graphs that ran and of all state, and the growth of PrivateBytes. 0: not measured.
  int64_t planned_bytes = 0, private_bytes = 0;
};

// Returns the resident bytes of this process that belong to no file and to no memory shared with other processes.
int64_t PrivateBytes();

uint64_t WeightChecksum(const Parameters& parameters);

// Returns the row of one rank. Medians leave out the first two steps, and the best time leaves out the first step.
nlohmann::ordered_json RankRow(const RankedOptions& options, const RankedModel& model, int ranks,
                               const RankFigures& figures);
// Returns the row of all ranks: the times of the slowest rank, the figures of messages of the rank that hides the
// smallest fraction, and the maximum of the peak memory. Planned and private memory become lists, by rank. `rows` must
// not be empty.
nlohmann::ordered_json CombinedRow(absl::Span<const nlohmann::ordered_json> rows);

}  // namespace weft

#endif  // WEFT_BENCH_RANKED_STEP_H_
