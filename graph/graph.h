// A Graph is a compiled program, ready to run. A Graph is immutable and cheap to copy, and threads may share it.
// Compile (graph/compile/compile.h) makes graphs; a Runner (graph/run/runner.h) runs them.
//
// A node that runs is a kernel call, which is cut into tiles. Consecutive calls with equally many tiles can form a
// group. Task i of a group runs tile i of each call. The schedule tells for which other tasks each task waits.
#ifndef WEFT_GRAPH_GRAPH_H_
#define WEFT_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/graph/schedule.h"

namespace weft {

// An Address tells where a value's bytes are while the graph runs: a kind of memory, and an index or offset in it. A
// runner resolves an address to a pointer.
struct Address {
  enum class Kind : uint8_t { kArena, kInput, kParameter, kConstant };

  Kind kind = Kind::kArena;
  uint32_t index = 0;  // in the program's list of inputs, parameters or constants
  size_t offset = 0;   // kArena: bytes from the start of the runner's arena
};

// A node that runs. Its tiles are consecutive in CompiledGraph::tiles. A call that has messages is the only call of its
// group, and has one tile. If it has a kernel, too, the kernel runs first.
struct KernelCall {
  NodeId node = kNoNode;
  KernelFunction kernel = nullptr;
  std::vector<Message> messages;
  uint32_t group = 0;
  uint32_t first_tile = 0, tile_count = 0;
  double seconds = 0;  // of all tiles on one core, by the cost model
};

// A Group holds consecutive kernel calls with the same number of tiles. Task i of the group runs tile i of each call in
// turn, so a call finds the previous call's results in cache. The tasks of a group are consecutive.
struct Group {
  uint32_t first_call = 0, call_count = 0;
  uint32_t tile_count = 0;
  uint32_t first_task = 0;
  // Size of the parts of a tile (graph/compile/divide.cc). If 0, a part has all rows, or all columns, of the tile.
  int64_t part_rows = 0, part_cols = 0;

  uint32_t end_call() const { return first_call + call_count; }
};

// A task runs one tile, with the same number, of each call of its group. If `group` is kJoin, the task is a join, which
// only waits for other tasks.
struct Task {
  static constexpr uint32_t kJoin = 0xffffffff;

  uint32_t group = kJoin;
  uint32_t tile = 0;  // of each call
};

// MemoryFigures describe the arena, which holds the results of kernel calls, except new versions of state. All figures
// are in bytes, except `recomputed`.
struct MemoryFigures {
  size_t naive = 0;        // if no two values shared bytes
  size_t planned = 0;      // the arena
  size_t lower_bound = 0;  // the maximum of live bytes when the calls run in order
  size_t budget = 0;       // CompileOptions::memory_budget; 0: no limit
  double recomputed = 0;   // fraction of an execution's time that recomputes values, by the cost model
};

// An Explanation tells whether the compiler replaced a recognised pattern by one op, or why it did not.
struct Explanation {
  std::string scope, pattern;
  std::string declined;  // why the pattern was not raised; empty if it was raised
};

struct CompiledGraph {
  Program program;                     // after all passes
  std::vector<ValueId> storage_roots;  // by value (graph/compile/storage.h)
  std::vector<KernelCall> calls;       // in a serial order; views, sources and update groups have none
  std::vector<Group> groups;
  std::vector<Rect> tiles;  // of all calls, in their order
  std::vector<Task> tasks;
  Schedule schedule;                                 // of the tasks
  std::vector<Address> addresses;                    // one per value
  std::vector<std::pair<ValueId, ValueId>> fetches;  // (value of the tape, value of the program)
  uint64_t tape_id = 0;
  bool updates = false;        // whether it writes parameters other than caches
  size_t workspace_bytes = 0;  // of each worker: the largest that any call needs
  MemoryFigures memory;
  std::vector<Explanation> explanations;

  // Returns the time of all calls on one core, by the cost model.
  double seconds() const {
    double sum = 0;
    for (const KernelCall& call : calls) sum += call.seconds;
    return sum;
  }
  absl::Span<const Rect> tiles_of(uint32_t call) const {
    return absl::MakeConstSpan(tiles).subspan(calls[call].first_tile, calls[call].tile_count);
  }
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<const CompiledGraph> compiled) : compiled_(std::move(compiled)) {}
  const CompiledGraph& compiled() const { return *compiled_; }
  const Program& program() const { return compiled_->program; }

 private:
  std::shared_ptr<const CompiledGraph> compiled_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_GRAPH_H_
