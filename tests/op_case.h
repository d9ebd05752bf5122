// An OpCase is one example of an op, recorded on a tape with random inputs. A NodeCase is the op's node in the example,
// which can run alone.
#ifndef WEFT_TESTS_OP_CASE_H_
#define WEFT_TESTS_OP_CASE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/buffer.h"

namespace weft {

// Parses OpExample::in. A type without dtype gets `dtype`.
absl::StatusOr<Types> ParseTypes(const char* text, DType dtype);
bool HasFreeDType(const OpExample& example);  // whether a type of OpExample::in has no dtype

// Records inputs of `types`. The first `states` of them are state, because the op writes them. Integers are below
// `below`.
VarList RecordInputs(Tape* tape, TypeSpan types, int states, int64_t below);

// The random numbers of every execution of an example.
inline constexpr RandomStream kExampleRandom = {.seed = 7, .step = 3};

struct OpCase {
  std::unique_ptr<Tape> tape = std::make_unique<Tape>();
  VarList inputs, outputs;
  std::vector<Buffer> values;  // one for each input
};
// Records the example, with `dtype` for types without one. The tape's status holds errors of recording.
absl::StatusOr<OpCase> MakeCase(const OpDef& op, const OpExample& example, DType dtype);
// Records the example with f64 for types without a dtype. If one of its types is bf16, all floats become f64.
absl::StatusOr<OpCase> MakeTwin(const OpDef& op, const OpExample& example);
Buffer RandomBuffer(const TensorType& type, uint64_t seed, double low, double high, int64_t below = 2);

struct NodeCase {
  const OpDef* op = nullptr;
  Attrs attrs;
  Types input_types, output_types;
  std::vector<Buffer> inputs;

  OpArgs args() const { return {attrs, input_types, output_types}; }
};
// Returns the last node of `op` in the case, with the values of its inputs. If there is none, returns an error.
absl::StatusOr<NodeCase> FindNode(const OpDef& op, const OpCase& c);
// Returns the outputs of the node, computed by weft::Evaluate or, for an op without kernels, by the nodes that replace
// it. Inputs that the op overwrites keep their values.
std::vector<Buffer> EvaluateNode(const NodeCase& node);

// A compiled part of a tape that runs several times on different values.
class CompiledCase {
 public:
  // Unless `raise` is true, patterns are not raised, so that an elementary spelling runs as it is.
  static absl::StatusOr<std::unique_ptr<CompiledCase>> Make(const Tape& tape, const VarList& fetch, VarSpan inputs,
                                                            int threads = 1, bool raise = false);
  const Graph& graph() const { return graph_; }
  // Sets inputs and state to `values`, runs and returns the fetched values.
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
