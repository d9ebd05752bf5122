// Measures the training step of ranks_bench without overlap, like a program that has no graph. Each rank computes the
// gradients of its micro-batches. Then it calls a blocking MPI_Allreduce for each weight, in place, and updates the
// weights.
//
//   mpirun -np 2 --bind-to none bazel-bin/bench/mpi_allreduce_bench --model=gpt2 --micro-batches=2
//
// With two micro-batches on two ranks, the weights have the same bits as with ranks_bench.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/ranked_step.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/real_graphs.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr float kRate = 3e-4f;

Var Buffer(Tape* tape, const std::string& name, Var weight) {
  return tape->State("gradient." + name, weight.type(), Zeros(), ParameterKind::kCache);
}

// Two graphs: the gradients of a micro-batch are added to buffers, and the buffers update the weights.
class PlainStep {
 public:
  PlainStep(const RankedOptions& options, int ranks) : options_(options), ranks_(ranks), model_(options) {}

  absl::Status Create() {
    Tape* const tape = model_.tape();
    WEFT_RETURN_IF_ERROR(tape->status());
    const Optimizer optimizer = BenchOptimizer();
    targets_ = tape->Input("targets_of_batch", {kF32, {}});
    first_ = tape->Input("first", {kI32, {}}, {.below = 2});
    const VarList weights = optimizer.TrainedWeights(tape);
    const VarList gradients = Gradient(model_.loss() * targets_, weights);
    VarList sums, trained, means;
    step_targets_ = update_tape_.Input("targets_of_step", {kF32, {}});
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string name = tape->ParameterName(weights[i]);
      names_.push_back("gradient." + name);
      sums.push_back(Accumulate(Buffer(tape, name, weights[i]), gradients[i], first_));
      trained.push_back(update_tape_.Parameter(name, weights[i].type(), Zeros()));
      const Var sum = Buffer(&update_tape_, name, weights[i]);
      means.push_back(Assign(sum, sum / step_targets_));
    }
    rate_ = update_tape_.Input("learning_rate", {kF32, {}});
    const Minimized update = optimizer.Update(trained, means, rate_, {.all_or_none = true});
    WEFT_ASSIGN_OR_RETURN(gradients_, Compiled(*tape, {.fetch = {model_.loss()}, .update = {tape->Group(sums)}}));
    WEFT_ASSIGN_OR_RETURN(update_, Compiled(update_tape_, {.update = {update.update}}));
    return absl::OkStatus();
  }

  absl::StatusOr<RankFigures> Run(int rank) {
    const int64_t count = options_.micro_batches / ranks_;
    RankFigures figures;
    for (int i = 0; i < options_.steps; ++i) {
      const Clock::time_point start = Clock::now();
      double loss = 0;
      for (int64_t m = 0; m < count; ++m) {
        WEFT_ASSIGN_OR_RETURN(const double mine, RunMicroBatch(rank * count + m, m == 0));
        loss += mine / static_cast<double>(options_.micro_batches);
      }
      const Clock::time_point reduce = Clock::now();
      for (const std::string& name : names_) {
        const Tensor buffer = *parameters_.Find(name);
        MPI_Allreduce(MPI_IN_PLACE, buffer.data, static_cast<int>(buffer.type.shape.elements()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        if (i == 0) figures.bytes_sent += static_cast<int64_t>(buffer.type.bytes());
      }
      const double reduce_seconds = SecondsSince(reduce);
      MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      const auto targets = static_cast<float>(model_.tokens() * options_.micro_batches);
      WEFT_RETURN_IF_ERROR(update_->Run({{rate_, kRate}, {step_targets_, targets}}).status());
      figures.step_seconds.push_back(SecondsSince(start));
      figures.loss = loss;
      if (i >= 2) {
        figures.message_seconds.push_back(reduce_seconds);
        figures.hidden_seconds.push_back(0);
      }
    }
    figures.checksum = WeightChecksum(parameters_);
    return figures;
  }

  const RankedModel& model() const { return model_; }

 private:
  absl::StatusOr<std::unique_ptr<Runner>> Compiled(const Tape& tape, CompileOptions compile) {
    compile.precision = options_.dtype();
    WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, compile));
    return std::make_unique<Runner>(std::move(graph), &parameters_, RunnerOptions{.threads = options_.threads});
  }

  absl::StatusOr<double> RunMicroBatch(int64_t micro_batch, bool first) {
    const int32_t flag = first ? 1 : 0;
    TrainingBatch batch = model_.Batch(micro_batch);
    batch.feeds.push_back({targets_, static_cast<float>(batch.targets)});
    batch.feeds.push_back({first_, absl::Span<const int32_t>(&flag, 1)});
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, gradients_->Run(batch.feeds));
    return outputs.Scalar(model_.loss());
  }

  const RankedOptions options_;
  const int ranks_;
  RankedModel model_;
  Tape update_tape_;
  Var targets_, first_, step_targets_, rate_;
  std::vector<std::string> names_;  // of the buffers
  Parameters parameters_{{.seed = 1}};
  std::unique_ptr<Runner> gradients_, update_;
};

// Returns the rows of all ranks.
std::vector<nlohmann::ordered_json> Gather(const nlohmann::ordered_json& row, int ranks) {
  constexpr size_t kBytes = 4096;  // more than the text of any row
  std::string mine = row.dump();
  mine.resize(kBytes, ' ');
  std::string all(kBytes * static_cast<size_t>(ranks), ' ');
  MPI_Allgather(mine.data(), kBytes, MPI_CHAR, all.data(), kBytes, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<nlohmann::ordered_json> rows;
  for (size_t begin = 0; begin < all.size(); begin += kBytes) {
    rows.push_back(nlohmann::ordered_json::parse(all.substr(begin, kBytes)));
  }
  return rows;
}

absl::Status Measure(const RankedOptions& options, int rank, int ranks) {
  if (options.micro_batches % ranks != 0) {
    return InvalidArgument("--micro-batches: ", options.micro_batches, " is not a multiple of ", ranks, " ranks");
  }
  PlainStep step(options, ranks);
  WEFT_RETURN_IF_ERROR(step.Create());
  WEFT_ASSIGN_OR_RETURN(const RankFigures figures, step.Run(rank));
  const std::vector<nlohmann::ordered_json> rows = Gather(RankRow(options, step.model(), ranks, figures), ranks);
  for (const nlohmann::ordered_json& row : rows) {
    if (row["checksum"] != rows[0]["checksum"]) return absl::InternalError("ranks have different weights");
  }
  if (rank == 0) PrintRow(CombinedRow(rows), options.json);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  RankedOptions options;
  CLI::App app("Measures training steps with a blocking MPI_Allreduce of the gradients.", "mpi_allreduce_bench");
  SetUp(&app);
  AddRankedFlags(&app, &options);
  return RunProgram(&app, argc, argv, [&options] {
    int rank = 0, ranks = 1;
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const absl::Status status = Measure(options, rank, ranks);
    MPI_Finalize();
    if (status.ok()) return 0;
    std::fprintf(stderr, "mpi_allreduce_bench: %s\n", std::string(status.message()).c_str());
    return absl::IsInvalidArgument(status) ? 2 : 1;
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
