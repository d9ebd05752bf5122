// Passes rewrite programs with these tools: Rewrite, Replay, Uses, Renames and Reorder.
//
// A Rewrite holds a program and its roots, which are the values that must exist at the end. Most passes change the
// program in one of three ways:
//
//   Replay   records the program again on a new tape, node by node, so that a node can become any other ops. Replay
//            maps each value of the old program to a Var of the new one, and maps the roots at the end.
//   Renames  replaces values by others in the inputs of later nodes and in the roots, while the pass changes nodes in
//            place.
//   Reorder  moves nodes, such as those that the pass has appended to the program.
//
// Uses tells all kinds of passes how often each value is read, and by which node if only one node reads it.
//
//   // Rewrite exp(log(x)) to x
//   absl::Status RewriteExpLog(Rewrite& rewrite) {
//     Replay replay(rewrite);
//     WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
//       if (node.op != &kExp) return {};  // copied as it is
//       const Node& log = replay.program().producer(node.inputs[0]);
//       return log.op == &kLog ? replay.Now(log.inputs) : VarList();
//     }));
//     replay.Finish();
//     return DropDead(rewrite);
//   }
#ifndef WEFT_GRAPH_COMPILE_PASSES_REWRITING_H_
#define WEFT_GRAPH_COMPILE_PASSES_REWRITING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"

namespace weft {

// A Rewrite is the program that a pass rewrites, with the options of the compilation.
struct Rewrite {
  Program program;
  std::vector<ValueId> roots;  // the fetched values, then the updates
  CompileOptions options = {};
  double recomputed_seconds = 0;          // of each execution, for computing values again, by the cost model
  std::vector<Explanation> explanations;  // which patterns were raised, and why others were not
};

// Uses counts the reads of each value, and knows its only reader, if there is one. It describes the program as it was
// at construction.
class Uses {
 public:
  explicit Uses(const Rewrite& rewrite);

  // Returns the number of inputs of nodes, plus the number of roots, that are `id`. The values by which a gradient node
  // differentiates are inputs of the gradient node, too.
  int count(ValueId id) const { return of(id).count; }
  bool OnlyOne(ValueId id) const { return count(id) == 1; }
  // Returns the number of inputs of nodes that are `id`, without the roots.
  int reads(ValueId id) const { return of(id).count - of(id).roots; }
  // If exactly one input of one node is `id`, and no root is, returns the node. Otherwise returns kNoNode.
  NodeId OnlyReader(ValueId id) const { return OnlyOne(id) && !fetched(id) ? of(id).reader : kNoNode; }
  // Reports whether `id` is a root.
  bool fetched(ValueId id) const { return of(id).roots > 0; }
  // Reports whether a gradient node differentiates by `id`. Such a value must keep a node of its own, and replacements
  // of its readers must read the value. Otherwise the gradient would miss some uses of the value.
  bool differentiated_by(ValueId id) const { return of(id).differentiated_by; }

 private:
  struct Use {
    int count = 0, roots = 0;
    NodeId reader = kNoNode;  // the last one
    bool differentiated_by = false;
  };
  const Use& of(ValueId id) const { return uses_[id]; }

  std::vector<Use> uses_;
};

// Replay records a program again on a new tape. A Replay must not be copied or moved, because Vars point to its tape.
class Replay {
 public:
  explicit Replay(Rewrite& rewrite);

  // The program as it was.
  const Program& program() const { return rewrite_.program; }
  // The tape that holds the new program.
  Tape& tape() { return tape_; }
  // Returns the Var that stands for value `id` of the old program. The Var is empty until the value's node is recorded.
  Var Now(ValueId id) const { return now_[id]; }
  VarList Now(absl::Span<const ValueId> ids) const;

  // Goes through the nodes of the old program in order, and calls `record` for each in the node's scope. `record`
  // returns one Var for each output of the node, or an empty list to copy the node. Returns the tape's first error.
  absl::Status Record(absl::FunctionRef<VarList(const Node&)> record);
  // Copies each node before node `end` that is neither recorded nor replaced yet. Keeps the tape's scope.
  void CopyUntil(uint32_t end);
  // Records `node` again, with the Vars to which its inputs are mapped.
  VarList Copy(const Node& node) { return tape_.Copy(program(), node, Now(node.inputs)); }
  // Maps the outputs of `node` to `outputs`. If any output is mapped before the node's turn, the node is not recorded,
  // so all outputs that are read must be mapped.
  void Replace(const Node& node, VarSpan outputs);
  void Replace(ValueId id, Var var) { now_[id] = var; }

  // Replaces the old program by the new one, and maps the roots. No other function may be called afterwards.
  void Finish();

 private:
  bool Replaced(const Node& node) const;  // whether any output is mapped

  Rewrite& rewrite_;
  Tape tape_;
  std::vector<Var> now_;  // by value of the old program
  uint32_t next_ = 0;     // index of the next node to record
};

// Renames maps values to the values that replace them. At first, each value is mapped to itself.
class Renames {
 public:
  explicit Renames(const Program& program);

  void Rename(ValueId from, ValueId to) { now_[from] = to; }
  // Applies the renames so far to the inputs of a node, or to the roots.
  void Apply(Node& node) const { Apply(absl::MakeSpan(node.inputs)); }
  void Apply(std::vector<ValueId>& roots) const { Apply(absl::MakeSpan(roots)); }

 private:
  void Apply(absl::Span<ValueId> ids) const;

  std::vector<ValueId> now_;  // by value
};

// Sorts the nodes by `position`, which has a number for each node. Nodes with equal numbers keep their order.
void Reorder(Program* program, absl::Span<const uint32_t> position);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_PASSES_REWRITING_H_
