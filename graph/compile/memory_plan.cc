// The planner goes through the kernel calls in serial order. It allocates a range of the arena for each output, and
// frees the range after the last use. An op may overwrite an input that nothing else needs. The smallest plan wins,
// unless waiting for reused bytes makes the longest path of calls much longer. Then plans that wait less are tried.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "absl/algorithm/container.h"
#include "weft/base/arena.h"
#include "weft/graph/compile/call_times.h"
#include "weft/graph/compile/free_ranges.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr uint32_t kNone = 0xffffffff, kForever = 0xfffffffe;

// A Storage is a range of the arena. It holds a value with its views. If an op works in place, its output then
// overwrites the value.
struct Storage {
  size_t bytes = 0, offset = 0;
  uint32_t first_use = 0, last_use = 0;  // calls; for a group of several tiles, its first and last call
  uint32_t maker = 0;                    // the call that wrote its present value
  std::vector<uint32_t> readers;         // the calls that read its present value
  uint32_t users = kNone;                // index of the set of maker and readers, once it exists
  bool in_messages = false;              // whether a message reads or writes one of its values
};

// If an arena has more than 1.05 times the maximum of live bytes, its storages are arranged again, largest first.
constexpr double kMaxWaste = 1.05;
// If waiting for reused bytes makes the longest path more than 5% longer than data dependencies do, plans that use
// CallTimes are tried.
constexpr double kMaxStretch = 1.05;
// A plan that uses CallTimes must have at most 0.9 of the longest path of the smallest plan. Its arena may have at most
// 1.1 times the maximum of live bytes, because memory limits the size of models.
constexpr double kMaxPathInTime = 0.9, kMaxWasteInTime = 1.1;
constexpr size_t kMaxArranged = 1 << 12;  // storages; arranging them by size takes quadratic time

struct Plan {
  std::vector<Address> addresses;
  MemoryFigures memory;
  Reuses reuses;
};

class Planner {
 public:
  // Without `times`, each value takes the smallest free range. With `times`, each value prefers ranges for which the
  // longest path need not wait. `limit` and `exact` are those of FreeRanges::Allocate. `reuse_messages`: whether bytes
  // that messages read or write are freed after their last use.
  Planner(const CompiledGraph& graph, absl::Span<const ValueId> kept, bool reuse_messages,
          const CallTimes* times = nullptr, size_t limit = 0, bool exact = false)
      : graph_(graph),
        program_(graph.program),
        reuse_messages_(reuse_messages),
        times_(times),
        limit_(limit),
        exact_(exact) {
    storage_of_.assign(program_.values.size(), kNone);
    plan_.memory = graph.memory;
    plan_.memory.naive = plan_.memory.lower_bound = 0;
    plan_.addresses.resize(program_.values.size());
    last_use_.assign(program_.values.size(), kNone);
    readers_.resize(program_.values.size());
    dies_at_.resize(graph_.calls.size());
    for (uint32_t s = 0; s < graph_.calls.size(); ++s) {
      for (ValueId in : node(s).inputs) {
        const ValueId root = Root(in);
        last_use_[root] = s;
        if (readers_[root].empty() || readers_[root].back() != s) readers_[root].push_back(s);
      }
    }
    for (ValueId id : kept) last_use_[Root(id)] = kForever;
  }

  Plan Run() {
    PlaceSources();
    for (uint32_t s = 0; s < graph_.calls.size(); ++s) {
      if (times_ != nullptr) begin_ = times_->Begin(s, done_);
      for (uint32_t i = 0; i < node(s).output_count; ++i) PlaceOutput(s, i);
      if (times_ != nullptr) done_.push_back(begin_ + times_->seconds(s));
      FreeUnused(s);
    }
    plan_.memory.planned = free_.end();
    const double wanted = kMaxWaste * static_cast<double>(plan_.memory.lower_bound);
    if (times_ == nullptr && static_cast<double>(free_.end()) > wanted) ArrangeBySize();
    for (uint32_t s = 0; s < storages_.size(); ++s) Occupy(s);
    absl::c_stable_sort(plan_.reuses.reuses, [](const Reuse& a, const Reuse& b) { return a.call < b.call; });
    for (uint32_t v = 0; v < program_.values.size(); ++v) {
      const ValueId root = Root(ValueId{v});
      plan_.addresses[v] = plan_.addresses[root];
      if (storage_of_[root] != kNone) plan_.addresses[v].offset = storages_[storage_of_[root]].offset;
    }
    return std::move(plan_);
  }

 private:
  const Node& node(uint32_t call) const { return program_.node(graph_.calls[call].node); }
  ValueId Root(ValueId id) const { return graph_.storage_roots[id]; }
  const Group& group(uint32_t call) const { return graph_.groups[graph_.calls[call].group]; }
  // Return the first and the last call of its group that may run while `call` runs. If the group has several tiles, one
  // tile may be at the last call while another is at the first.
  uint32_t Begin(uint32_t call) const { return group(call).tile_count == 1 ? call : group(call).first_call; }
  uint32_t End(uint32_t call) const { return group(call).tile_count == 1 ? call : group(call).end_call() - 1; }

  void PlaceSources() {
    for (const Node& node : program_.nodes) {
      const Address::Kind kind = node.op == &kInputOp       ? Address::Kind::kInput
                                 : node.op == &kParameterOp ? Address::Kind::kParameter
                                                            : Address::Kind::kConstant;
      if (node.op != &kInputOp && node.op != &kParameterOp && node.op != &kConstantOp) continue;
      plan_.addresses[node.output(0)] = {kind, static_cast<uint32_t>(node.attrs.as<SourceAttrs>().index)};
    }
  }

  // Makes `call`, the current call, wait for the calls `readers`, which read the bytes that `call` overwrites.
  void WaitFor(const std::vector<uint32_t>& readers, uint32_t call) {
    begin_ = std::max(begin_, CallTimes::Latest(readers, done_));
    Order(AddUsers(readers), call);
  }
  // Returns the latest start of `call`, the current call, that does not lengthen the longest path of data dependencies.
  // The result is at least `begin_`; without times, it is infinite.
  double Deadline(uint32_t call) const {
    if (times_ == nullptr) return std::numeric_limits<double>::infinity();
    return std::max(begin_, times_->data_path() - times_->tail(call));
  }

  void PlaceOutput(uint32_t call, uint32_t output) {
    const Node& n = node(call);
    const ValueId value = n.output(output);
    const size_t bytes = AlignUp(std::max<size_t>(program_.values[value].type.bytes(), 1));
    if (static_cast<int>(output) < n.op->writes) {  // the next version of a state takes its bytes after all reads
      const ValueId state = Root(n.inputs[output]);
      plan_.addresses[value] = plan_.addresses[state];
      std::vector<uint32_t> readers = readers_[state];
      // The writer of the next version waits for the readers for which this call does not.
      std::vector<uint32_t>& left = readers_[value];
      const auto first_left = std::stable_partition(
          readers.begin(), readers.end(), [&](uint32_t reader) { return !HaveDisjointMessages(reader, call); });
      left.insert(left.end(), first_left, readers.end());
      absl::c_sort(left);
      readers.erase(first_left, readers.end());
      return WaitFor(readers, call);
    }
    plan_.memory.naive += bytes;
    uint32_t storage = output == 0 ? InPlace(call, bytes) : kNone;
    if (storage == kNone) {
      storage = static_cast<uint32_t>(storages_.size());
      const size_t offset = free_.Allocate(bytes, Deadline(call), exact_, limit_);
      begin_ = std::max(begin_, free_.Done(offset, bytes));
      storages_.push_back({.bytes = bytes, .offset = offset, .first_use = Begin(call)});
      live_ += bytes;
      plan_.memory.lower_bound = std::max(plan_.memory.lower_bound, live_);
    }
    Storage& s = storages_[storage];
    s.maker = call;
    s.readers = std::move(readers_[value]);
    const auto has_messages = [this](uint32_t user) { return !graph_.calls[user].messages.empty(); };
    s.in_messages = s.in_messages || has_messages(call) || absl::c_any_of(s.readers, has_messages);
    const bool stays = last_use_[value] == kForever || (s.in_messages && !reuse_messages_);
    s.last_use = stays ? kForever : End(last_use_[value] == kNone ? call : last_use_[value]);
    if (s.last_use != kForever) dies_at_[s.last_use].push_back(storage);
    storage_of_[value] = storage;
  }

  // Reports whether both calls have messages, and the messages have no element of their state in common. Such calls do
  // not wait for each other. Otherwise two ranks could wait forever, each receiving a range only after it has sent
  // another.
  bool HaveDisjointMessages(uint32_t a, uint32_t b) const {
    if (a == b || graph_.calls[a].messages.empty()) return false;
    const auto overlap = [&](const Message& x) {
      return absl::c_any_of(graph_.calls[b].messages,
                            [&](const Message& y) { return x.begin < y.end && y.begin < x.end; });
    };
    return !graph_.calls[b].messages.empty() && absl::c_none_of(graph_.calls[a].messages, overlap);
  }

  // Returns the storage of the input that output 0 of `call` overwrites, and makes `call` wait for the input's other
  // readers. Returns kNone if the op or a later use forbids that, or if the longest path would have to wait.
  uint32_t InPlace(uint32_t call, size_t bytes) {
    const Node& n = node(call);
    if (!MayOverwrite(program_, n, graph_.storage_roots)) return kNone;
    const ValueId root = Root(n.inputs[n.op->in_place]);
    const uint32_t storage = storage_of_[root];
    if (storage == kNone || last_use_[root] != call || storages_[storage].bytes != bytes) return kNone;
    if (!OverwritesByTile(call, storages_[storage])) return kNone;
    if (CallTimes::Latest(storages_[storage].readers, done_) > Deadline(call)) return kNone;
    WaitFor(storages_[storage].readers, call);  // not for the maker: the op reads its value, tile by tile
    std::erase(dies_at_[End(call)], storage);
    return storage;
  }

  // Reports whether each tile of `call` overwrites only bytes that no other tile of its group writes or reads.
  bool OverwritesByTile(uint32_t call, const Storage& storage) const {
    if (group(call).tile_count == 1) return true;
    const Node& n = node(call);
    const ValueId root = Root(n.inputs[n.op->in_place]);
    const auto covers = [&](uint32_t other) {
      if (other == call || graph_.calls[other].group != graph_.calls[call].group) return true;
      const Node& o = node(other);
      for (size_t k = 0; k < o.inputs.size() + o.output_count; ++k) {
        const ValueId id = k < o.inputs.size() ? o.inputs[k] : o.output(static_cast<uint32_t>(k - o.inputs.size()));
        if (Root(id) != root) continue;
        const OperandTiles touched(program_, o, k, graph_.tiles_of(other));
        if (!TileByTile(touched, {program_, n, n.inputs.size(), graph_.tiles_of(call)})) return false;
      }
      return true;
    };
    return covers(storage.maker) && absl::c_all_of(storage.readers, covers);
  }

  // Arranges all storages again, largest first, each at the lowest offset that is free during its lifetime. If that
  // does not save bytes, or if there are more than kMaxArranged storages, keeps the present offsets.
  void ArrangeBySize() {
    if (storages_.size() > kMaxArranged) return;
    std::vector<uint32_t> order(storages_.size()), placed;
    std::iota(order.begin(), order.end(), 0);
    absl::c_stable_sort(order, [&](uint32_t a, uint32_t b) { return storages_[a].bytes > storages_[b].bytes; });
    std::vector<size_t> offsets(storages_.size());
    size_t end = 0;
    for (uint32_t s : order) {
      const Storage& storage = storages_[s];
      size_t offset = 0;
      for (uint32_t p : placed) {  // by rising offset
        const Storage& other = storages_[p];
        if (other.first_use > storage.last_use || storage.first_use > other.last_use) continue;
        if (offsets[p] >= offset + storage.bytes) break;
        offset = std::max(offset, offsets[p] + other.bytes);
      }
      offsets[s] = offset;
      end = std::max(end, offset + storage.bytes);
      if (end >= plan_.memory.planned) return;
      const auto lower = [&](uint32_t a, uint32_t b) { return offsets[a] < offsets[b]; };
      placed.insert(absl::c_upper_bound(placed, s, lower), s);
    }
    plan_.memory.planned = end;
    for (uint32_t s = 0; s < storages_.size(); ++s) storages_[s].offset = offsets[s];
  }

  // Makes `storage` the owner of its range. The first call that uses it must wait for the users of the previous owners.
  void Occupy(uint32_t storage) {
    const uint32_t call = storages_[storage].first_use;
    const size_t begin = storages_[storage].offset, end = begin + storages_[storage].bytes;
    auto it = owners_.lower_bound(begin);
    if (it != owners_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != owners_.end() && it->first < end) {
      const auto [from, owner] = *it;
      Order(UsersOf(owner.storage), call);
      it = owners_.erase(it);
      if (from < begin) owners_[from] = {begin, owner.storage};
      if (owner.end > end) it = owners_.insert({end, owner}).first;
    }
    owners_[begin] = {end, storage};
  }

  // Frees the storages whose last use is `call`.
  void FreeUnused(uint32_t call) {
    for (uint32_t storage : dies_at_[call]) {
      const Storage& s = storages_[storage];
      const double done = std::max(CallTimes::Latest({s.maker}, done_), CallTimes::Latest(s.readers, done_));
      free_.Release(s.offset, s.bytes, done);
      live_ -= s.bytes;
    }
  }

  // Makes `call` wait for a set of users.
  void Order(uint32_t users, uint32_t call) { plan_.reuses.reuses.push_back({call, users}); }
  uint32_t AddUsers(std::vector<uint32_t> users) {
    plan_.reuses.users.push_back(std::move(users));
    return static_cast<uint32_t>(plan_.reuses.users.size() - 1);
  }
  uint32_t UsersOf(uint32_t storage) {
    Storage& s = storages_[storage];
    if (s.users == kNone) {
      std::vector<uint32_t> users = {s.maker};  // some of its tiles may have no reader
      users.insert(users.end(), s.readers.begin(), s.readers.end());
      s.users = AddUsers(std::move(users));
    }
    return s.users;
  }

  struct Owner {
    size_t end = 0;
    uint32_t storage = 0;
  };

  const CompiledGraph& graph_;
  const Program& program_;
  const bool reuse_messages_;
  const CallTimes* const times_;
  const size_t limit_;
  const bool exact_;
  Plan plan_;
  std::vector<uint32_t> last_use_;              // by root: the call that last reads the value or a view of it
  std::vector<std::vector<uint32_t>> readers_;  // by root: calls
  std::vector<uint32_t> storage_of_;            // by root; kNone outside the arena
  std::vector<Storage> storages_;
  std::vector<std::vector<uint32_t>> dies_at_;  // by call: the storages that it uses last
  std::map<size_t, Owner> owners_;              // by offset: the last storage in these bytes
  FreeRanges free_;
  std::vector<double> done_;  // by call: seconds; empty without times
  double begin_ = 0;          // of the current call, in seconds
  size_t live_ = 0;
};

// Returns the smallest plan, unless waiting for reused bytes makes the longest path much longer. In that case, returns
// a plan with a shorter path, if one takes only a few more bytes and keeps within the budget.
Plan BestPlan(const CompiledGraph& graph, absl::Span<const ValueId> kept, bool reuse_messages) {
  Plan smallest = Planner(graph, kept, reuse_messages).Run();
  const CallTimes times(graph);
  const double path = times.Path(smallest.reuses);
  if (path <= kMaxStretch * times.data_path()) return smallest;
  const size_t bound = smallest.memory.lower_bound, budget = graph.memory.budget;
  const size_t limit_in_time = static_cast<size_t>(kMaxWaste * static_cast<double>(bound));
  std::optional<Plan> best;
  double shortest = kMaxPathInTime * path;
  for (const auto& [limit, exact] : {std::pair{limit_in_time, false}, {limit_in_time, true}, {size_t{0}, false}}) {
    Plan plan = Planner(graph, kept, reuse_messages, &times, limit, exact).Run();
    const size_t planned = plan.memory.planned;
    if (static_cast<double>(planned) > kMaxWasteInTime * static_cast<double>(bound)) continue;
    const double path_in_time = times.Path(plan.reuses);
    if (path_in_time > shortest || (budget > 0 && planned > budget)) continue;
    shortest = path_in_time;
    best = std::move(plan);
    best->memory.lower_bound = bound;  // the plan's own maximum is larger where outputs did not overwrite inputs
    if (planned <= limit_in_time) break;
  }
  return best ? *std::move(best) : std::move(smallest);
}

}  // namespace

size_t PlannedBytes(const Program& program, absl::Span<const ValueId> kept, double tile_seconds, bool fuse) {
  CompiledGraph graph;
  graph.program = program;
  MakeKernelCalls(tile_seconds, fuse, &graph);
  return Planner(graph, kept, /*reuse_messages=*/true).Run().memory.planned;
}

Reuses PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept, bool reuse_messages) {
  const bool has_messages = absl::c_any_of(graph->calls, [](const KernelCall& c) { return !c.messages.empty(); });
  const size_t budget = graph->memory.budget;
  Plan plan = BestPlan(*graph, kept, reuse_messages || !has_messages);
  if (has_messages && budget > 0 && plan.memory.planned > budget) plan = BestPlan(*graph, kept, true);
  graph->addresses = std::move(plan.addresses);
  graph->memory = plan.memory;
  return std::move(plan.reuses);
}

}  // namespace weft
