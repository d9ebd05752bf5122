// Compile runs the passes, cuts nodes into tiles, groups them, plans memory, and makes the tasks that executors run.
#include "weft/graph/compile/compile.h"

#include <algorithm>
#include <cmath>

#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/stages.h"

namespace weft {
namespace {

absl::Status RunPasses(Rewrite& rewrite) {
  for (const PassRow& pass : Passes()) {
    if (pass.optional.has_value() && rewrite.options.without.contains(*pass.optional)) continue;
    WEFT_RETURN_IF_ERROR(pass.run(rewrite));
#ifndef NDEBUG
    WEFT_RETURN_IF_ERROR(Annotate(Typecheck(rewrite), pass.name));
#endif
  }
  return absl::OkStatus();
}

// Checks the tape and the options. Returns a Rewrite of the tape's program, whose roots are the values to fetch and the
// updates.
absl::StatusOr<Rewrite> Begin(const Tape& tape, const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(tape.status());
  if (options.fetch.empty() && options.update.empty()) {
    return InvalidArgument("compile: nothing to fetch and nothing to update");
  }
  if (!(options.tile_seconds > 0 && std::isfinite(options.tile_seconds))) {
    return InvalidArgument("compile: tile_seconds is ", options.tile_seconds, ", but must be above 0 and finite");
  }
  if (options.precision != kF32 && options.precision != kBF16) {
    return InvalidArgument("compile: precision is ", Name(options.precision), ", wanted f32 or bf16");
  }
  if (!IsWeightFormat(options.weights)) {
    return InvalidArgument("compile: weights is ", Name(options.weights), ", wanted ", WeightFormatList());
  }
  Rewrite rewrite = {.program = tape.program(), .options = options};
  for (const VarList* roots : {&options.fetch, &options.update}) {
    for (Var v : *roots) {
      if (v.tape != &tape) {
        return InvalidArgument("compile: a Var to ", roots == &options.fetch ? "fetch" : "update",
                               v.tape == nullptr ? " is empty" : " is from another tape");
      }
      if (roots == &options.fetch && tape.program().producer(v.id).op == &kGroupOp) {
        return InvalidArgument("compile: an update group has no value to fetch; name it in `update`");
      }
      rewrite.roots.push_back(v.id);
    }
  }
  return rewrite;
}

// Returns the kind of the parameter that `node`, a write, overwrites through its input 0. If that input is a later
// version of the parameter, follows the earlier writes back to the parameter.
ParameterKind WrittenKind(const Program& program, const Node& node) {
  ValueId state = node.inputs[0];
  while (program.producer(state).op->writes > 0) {  // an earlier version
    const Node& writer = program.producer(state);
    state = writer.inputs[state - writer.first_output];
  }
  const Node& source = program.producer(state);
  if (source.op != &kParameterOp) return ParameterKind::kState;
  return program.parameter(source).kind;
}

// Finds the size of a worker's workspace, and whether the graph updates parameters other than caches.
void FindWorkspaceAndUpdates(CompiledGraph* graph) {
  const Program& program = graph->program;
  for (uint32_t s = 0; s < graph->calls.size(); ++s) {
    const Node& node = program.node(graph->calls[s].node);
    graph->updates = graph->updates || (node.op->writes > 0 && WrittenKind(program, node) != ParameterKind::kCache);
    if (node.op->workspace == nullptr) continue;
    const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
    const size_t bytes = node.op->workspace({node.attrs, inputs, outputs}, graph->tiles_of(s));
    graph->workspace_bytes = std::max(graph->workspace_bytes, bytes);
  }
}

}  // namespace

absl::StatusOr<Graph> Compile(const Tape& tape, const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Rewrite rewrite, Begin(tape, options));
  WEFT_RETURN_IF_ERROR(RunPasses(rewrite));
  auto graph = std::make_shared<CompiledGraph>();
  graph->tape_id = tape.id();
  graph->program = std::move(rewrite.program);
  graph->explanations = std::move(rewrite.explanations);
  for (size_t i = 0; i < options.fetch.size(); ++i) graph->fetches.push_back({options.fetch[i].id, rewrite.roots[i]});
  MakeKernelCalls(options.tile_seconds, !options.without.contains(Pass::kFuse), graph.get());
  FindWorkspaceAndUpdates(graph.get());
  graph->memory.budget = options.memory_budget;
  // Parts are chosen before the memory plan, which needs the length of paths, and again when it is known which parts
  // share bytes.
  const bool divides = !options.without.contains(Pass::kFuse);
  if (divides) DivideTasks(options.tile_seconds, graph.get());
  const Reuses reuses = PlanMemory(graph.get(), rewrite.roots, options.reuse_messages);
  if (divides) DivideTasks(options.tile_seconds, graph.get());
  MakeTasks(graph.get(), reuses);
  if (rewrite.recomputed_seconds > 0) graph->memory.recomputed = rewrite.recomputed_seconds / graph->seconds();
  return Graph(std::move(graph));
}

}  // namespace weft
