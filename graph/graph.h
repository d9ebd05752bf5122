// A compiled graph: immutable, cheap to copy, shared freely between threads.
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

// Where a value's bytes are while the graph runs.
struct Place {
  enum class Kind : uint8_t { kArena, kInput, kParameter, kConstant };

  Kind kind = Kind::kArena;
  uint32_t index = 0;  // into the program's inputs, parameters or constants
  size_t offset = 0;   // bytes from the start of the runner's arena
};

// One node as it runs: its tiles are consecutive.
struct KernelCall {
  NodeId node = kNoNode;
  KernelFunction kernel = nullptr;
  Prepared prepared;
  uint32_t group = 0;
  uint32_t first_tile = 0, tile_count = 0;
};

// Consecutive calls with one number of tiles. Tile i of each of them, one after the other, is one task, so that they
// find each other's values in cache. The tasks of a group are consecutive.
struct Group {
  uint32_t first_call = 0, call_count = 0;
  uint32_t tile_count = 0;
  uint32_t first_task = 0;

  uint32_t end_call() const { return first_call + call_count; }
};

// One tile of each call of a group, or a join: a task that only waits.
struct Task {
  static constexpr uint32_t kJoin = 0xffffffff;

  uint32_t group = kJoin;
  uint32_t tile = 0;  // of each call
};

// Bytes of the values between inputs, parameters and outputs.
struct MemoryFigures {
  size_t naive = 0;        // a place of its own for every value
  size_t planned = 0;      // the arena
  size_t lower_bound = 0;  // the most bytes live at once, in the order of the calls
  size_t budget = 0;       // what was asked for; 0: no limit
  double recomputed = 0;   // the part of a run's time, by the cost model, in which values are computed again
};

// What the compiler says of a pattern that it knows (`weft graph --explain`).
struct Explanation {
  std::string scope, pattern;
  std::string declined;  // why it was left as it was; empty where it was raised
};

struct CompiledGraph {
  Program program;                     // after all passes
  std::vector<ValueId> storage_roots;  // by value: whose bytes it uses (graph/storage.h)
  std::vector<KernelCall> calls;       // in a serial order; views, sources and groups of updates have none
  std::vector<Group> groups;
  std::vector<Rect> tiles;  // of all calls, by call
  std::vector<Task> tasks;
  Schedule schedule;                                 // of the tasks
  std::vector<Place> places;                         // one per value
  std::vector<std::pair<ValueId, ValueId>> fetches;  // (value of the tape, value of the program)
  uint64_t tape_id = 0;
  bool updates = false;        // whether a run changes parameters other than caches
  size_t workspace_bytes = 0;  // the largest of all calls, for each worker
  MemoryFigures memory;
  std::vector<Explanation> explanations;

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
