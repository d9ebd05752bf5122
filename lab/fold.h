// A Fold is a smaller graph of a program. Each box holds nodes of one phase whose scopes agree in their first levels.
//
//   const Fold fold = FoldByScope(graph.program(), Phases(graph.compiled()), 2);  // "gpt/h.0", "gpt/h.1", ...
//   std::fputs(PrintDot(fold).c_str(), stdout);
#ifndef WEFT_LAB_FOLD_H_
#define WEFT_LAB_FOLD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"

namespace weft {

// A node's role in a training step. A gradient has the scope of the forward node that it belongs to, but another phase,
// so the two are in different boxes. A node reads only nodes of its own phase or of earlier ones.
enum class Phase : uint8_t {
  kInput,     // inputs, parameters and constants
  kRecorded,  // all other nodes of a program that is not compiled
  kForward,   // nodes that the loss needs, the first fetched value, or another fetched value that needs no gradients
  kBackward,  // other nodes in forward nodes' scopes, except updates and their readers; and all nodes they need
  kUpdate     // all other nodes: updates of state, and the optimizer's nodes in its own scope
};
const char* Name(Phase phase);  // "forward"

std::vector<Phase> Phases(const CompiledGraph& graph);  // by node
std::vector<Phase> RecordedPhases(const Program& program);

struct Box {
  std::string scope;  // first levels of the scopes of its nodes; the name of an input
  Phase phase = Phase::kRecorded;
  uint32_t part = 0;  // numbers the boxes of one scope and phase, see FoldByScope
  std::vector<NodeId> nodes;
  std::map<std::string, int> ops;  // the number of nodes of each op
  Cost cost;
  // Parameters that the nodes read. If several boxes read a parameter, it counts in each of them.
  int64_t parameters = 0, parameter_elements = 0;
  size_t parameter_bytes = 0;
};

struct BoxEdge {
  uint32_t from = 0, to = 0;  // boxes; from < to
  uint32_t values = 0;        // the number of distinct values
  size_t bytes = 0;
};

struct Fold {
  std::vector<Box> boxes;  // ordered: each box follows the boxes that it reads
  std::vector<BoxEdge> edges;
};

// Folds at `depth` levels of scope; if `depth` is 0, each node is a box. Each input is a box; parameters and constants
// are in no box. If a node would close a cycle of boxes, it begins a new part: another box of its scope and phase. This
// occurs if a scope has nodes of other scopes between its own, as between the two sums of a Transformer block.
Fold FoldByScope(const Program& program, absl::Span<const Phase> phases, int depth);

// Prints a fold as Graphviz's DOT: each box with its phase, number of nodes, cost and parameters.
std::string PrintDot(const Fold& fold);

// Prints a fold as a JSON object, which also has the ops and the nodes inside the boxes; docs/scheduling.md names the
// fields. The page lab/graph_page.html draws it.
//
// `fold` must be a fold of `program` at `depth`. `graph`: the compiled graph of `program`; null if `program` is a
// recorded program.
std::string PrintJson(const Program& program, const CompiledGraph* graph, const Fold& fold, int depth);

}  // namespace weft

#endif  // WEFT_LAB_FOLD_H_
