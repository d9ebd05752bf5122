// OpCase: one example of an op, recorded on a tape with random inputs; NodeCase: the op's node in it, to be run alone.
#ifndef WEFT_TESTS_OP_CASE_H_
#define WEFT_TESTS_OP_CASE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/runner.h"
#include "weft/tests/buffer.h"

namespace weft {

// The types of OpExample::in; `dtype` where none is said. Nothing if the text is no such list.
absl::StatusOr<Types> ParseTypes(const char* text, DType dtype);
bool HasFreeDType(const OpExample& example);  // whether an input's dtype is not said

// The inputs' vars on the tape: state for those that the op writes.
VarList RecordInputs(Tape* tape, TypeSpan types, int states, int64_t below);

// What random ops draw from in every run of an example.
inline constexpr RandomStream kExampleRandom = {.seed = 7, .step = 3};

struct OpCase {
  std::unique_ptr<Tape> tape = std::make_unique<Tape>();
  VarList inputs, outputs;
  std::vector<Buffer> values;  // of the inputs
};
// Records the example, with `dtype` where it says none. What goes wrong while recording is in the tape's status.
absl::StatusOr<OpCase> MakeCase(const OpDef& op, const OpExample& example, DType dtype);
// The same in f64, where its floats have no dtype or one is bf16.
absl::StatusOr<OpCase> MakeTwin(const OpDef& op, const OpExample& example);
Buffer RandomBuffer(const TensorType& type, uint64_t seed, double low, double high, int64_t below = 2);

struct NodeCase {
  const OpDef* op = nullptr;
  Attrs attrs;
  Types input_types, output_types;
  std::vector<Buffer> inputs;

  OpArgs args() const { return {attrs, input_types, output_types}; }
};
// The last node of `op` in the case, with the values that reach it. Fails if there is none.
absl::StatusOr<NodeCase> FindNode(const OpDef& op, const OpCase& c);
// The outputs of the node, by weft::Evaluate. For an op that writes, the inputs it overwrites are left as they were.
std::vector<Buffer> EvaluateNode(const NodeCase& node);

// A compiled part of a tape that is run again and again on other values.
class CompiledCase {
 public:
  // Nothing is raised, unless that is asked for: an elementary spelling is to run as it stands.
  static absl::StatusOr<std::unique_ptr<CompiledCase>> Make(const Tape& tape, const VarList& fetch, VarSpan inputs,
                                                            int threads = 1, bool raise = false);
  const Graph& graph() const { return graph_; }
  // The fetched values. State is set to the given values before each run.
  absl::StatusOr<std::vector<Buffer>> Run(absl::Span<const Buffer> values);

 private:
  CompiledCase(const Tape& tape, Graph graph, const VarList& fetch, VarSpan inputs)
      : tape_(tape),
        graph_(std::move(graph)),
        fetch_(fetch),
        inputs_(inputs.begin(), inputs.end()),
        parameters_({.seed = kExampleRandom.seed}) {}

  const Tape& tape_;
  Graph graph_;
  VarList fetch_, inputs_;
  Parameters parameters_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace weft

#endif  // WEFT_TESTS_OP_CASE_H_
