// A program folded by scope: nodes of one phase whose scopes agree in their first levels become one box.
//
//   const Fold fold = FoldByScope(graph.program(), Phases(graph.compiled()), 2);  // "gpt/h.0", "gpt/h.1", ...
#ifndef WEFT_LAB_FOLD_H_
#define WEFT_LAB_FOLD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"

namespace weft {

// What a node is there for. A phase reads only those before it: gradients have the scopes of what they are gradients
// of, and without phases a block's forward and backward nodes would be one box.
enum class Phase : uint8_t {
  kInput,     // what is fed; parameters and constants too
  kRecorded,  // of a program that isn't compiled
  kForward,   // what the fetched values need
  kBackward,  // the rest of what is recorded in scopes of forward nodes and reads no state that was written, and what
              // that needs
  kUpdate     // the rest: what writes state, and what an optimizer computes in a scope of its own
};
const char* Name(Phase phase);  // "forward"

std::vector<Phase> Phases(const CompiledGraph& graph);  // by node
std::vector<Phase> RecordedPhases(const Program& program);

struct Box {
  std::string scope;  // the first levels of its nodes' scopes; of an input its name
  Phase phase = Phase::kRecorded;
  uint32_t part = 0;  // which one of this scope and phase, see FoldByScope
  std::vector<NodeId> nodes;
  std::map<std::string, int> ops;  // how many nodes there are of each
  Cost cost;
  // Those that its nodes read. One that several boxes read is counted in each.
  int64_t parameters = 0, parameter_elements = 0;
  size_t parameter_bytes = 0;
};

struct BoxEdge {
  uint32_t from = 0, to = 0;  // boxes: from < to
  uint32_t values = 0;        // different ones
  size_t bytes = 0;
};

struct Fold {
  std::vector<Box> boxes;  // each after those that it reads
  std::vector<BoxEdge> edges;
};

// The boxes of `depth` levels of scope; of 0, a box for each node. Parameters and constants are in no box, and inputs
// are boxes of their own. Nodes of one scope that others lie between, as the two sums of a Transformer block, would
// make a cycle as one box. They are several then: a node that would close a cycle begins another part.
Fold FoldByScope(const Program& program, absl::Span<const Phase> phases, int depth);
// The first `depth` levels of a scope, or all of it if it has less.
std::string ScopePrefix(const std::string& scope, int depth);
// What the cost model says of a node: nothing of sources, groups and views, for which nothing runs.
Cost CostOfNode(const Program& program, const Node& node);

}  // namespace weft

#endif  // WEFT_LAB_FOLD_H_
