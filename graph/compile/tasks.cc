// TaskMaker goes through the groups in serial order and finds the tasks for which each group's tasks wait. If every
// tile of a group needs every tile of another one, or if it saves edges, a join stands for the whole other group.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "weft/graph/compile/cost.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr int kMaxVisits = 16;  // IsBefore visits at most 16 groups, which bounds compile time
// Calls that wait for the same users share a join if the join saves more than 15/16 of their edges.
constexpr uint64_t kMinSaving = 16;

bool Overlap(const Rect& a, const Rect& b) {
  return a.row_begin < b.row_end && b.row_begin < a.row_end && a.col_begin < b.col_end && b.col_begin < a.col_end;
}

class TaskMaker {
 public:
  explicit TaskMaker(CompiledGraph* graph) : graph_(*graph), program_(graph->program) {
    call_of_.assign(program_.nodes.size(), kNone);
    for (uint32_t s = 0; s < graph_.calls.size(); ++s) call_of_[graph_.calls[s].node] = s;
    done_.assign(graph_.groups.size(), kNone);
    first_whole_.assign(1, 0);
  }

  void Run(const Reuses& reuses) {
    user_sets_.resize(reuses.users.size());
    for (const Reuse& reuse : reuses.reuses) ++user_sets_[reuse.users].waiters;
    auto reuse = reuses.reuses.begin();
    for (uint32_t g = 0; g < graph_.groups.size(); ++g) {
      for_all_.clear();
      edges_.clear();
      double seconds = 0;
      const uint32_t end = graph_.groups[g].end_call();
      for (uint32_t s = graph_.groups[g].first_call; s < end; ++s) {
        const size_t inputs = program_.node(graph_.calls[s].node).inputs.size();
        for (size_t k = 0; k < inputs; ++k) WaitForInput(s, k);
        seconds += graph_.calls[s].seconds;
      }
      first_whole_.push_back(static_cast<uint32_t>(whole_.size()));
      users_.clear();
      for (; reuse != reuses.reuses.end() && reuse->call < end; ++reuse) {
        AddUsers(g, reuses.users[reuse->users], &user_sets_[reuse->users]);
      }
      WaitForUsers(g);
      AddTiles(g, seconds / tile_count(g) + kTaskSeconds);
    }
    graph_.schedule = std::move(builder_).Build();
  }

 private:
  uint32_t AddTask(uint32_t group, uint32_t tile, double seconds) {
    graph_.tasks.push_back({group, tile});
    if (group == Task::kJoin) return builder_.AddTask(seconds);
    const KernelCall& call = graph_.calls[graph_.groups[group].first_call];
    const uint32_t parts = PartCount(graph_.groups[group], graph_.tiles[call.first_tile + tile]);
    return builder_.AddTask(seconds, /*ends_later=*/!call.messages.empty(), static_cast<uint16_t>(parts));
  }
  uint32_t tile_count(uint32_t group) const { return graph_.groups[group].tile_count; }
  uint32_t first_task(uint32_t group) const { return graph_.groups[group].first_task; }

  // Returns the tasks of all tiles of `groups`.
  std::vector<uint32_t> TasksOf(absl::Span<const uint32_t> groups) const {
    std::vector<uint32_t> tasks;
    for (uint32_t group : groups) {
      for (uint32_t t = 0; t < tile_count(group); ++t) tasks.push_back(first_task(group) + t);
    }
    return tasks;
  }
  // Returns a new join, which waits for `tasks`.
  uint32_t JoinOf(absl::Span<const uint32_t> tasks) {
    const uint32_t join = AddTask(Task::kJoin, 0, 0);
    for (uint32_t task : tasks) builder_.AddEdge(task, join);  // adding an edge again has no effect
    return join;
  }
  // Returns the task that ends after all tiles of `group`: the task of its only tile, or a join of all its tasks.
  uint32_t Done(uint32_t group) {
    if (tile_count(group) == 1) return first_task(group);
    if (done_[group] == kNone) done_[group] = JoinOf(TasksOf({group}));
    return done_[group];
  }

  // Makes each tile of call `s` wait for the tiles that write its rectangle of input `k`. Does nothing if no other
  // group computes the input.
  void WaitForInput(uint32_t s, size_t k) {
    const Node& node = program_.node(graph_.calls[s].node);
    const ValueId value = graph_.storage_roots[node.inputs[k]];
    const NodeId producer = program_.value(value).producer;
    const uint32_t call = call_of_[producer];
    if (call == kNone) return;  // it is an input, a parameter or a constant
    const uint32_t before = graph_.calls[call].group, group = graph_.calls[s].group;
    if (before == group) return;
    const uint32_t tiles = tile_count(group), made = tile_count(before);
    if (made == 1) return WaitForAll(before);

    const Node& producer_node = program_.node(producer);
    const size_t operand = producer_node.inputs.size() + value - producer_node.first_output;
    const OperandTiles writes(program_, producer_node, operand, graph_.tiles_of(call));
    const OperandTiles reads(program_, node, k, graph_.tiles_of(s));
    written_.clear();
    for (uint32_t m = 0; m < made; ++m) written_.push_back(writes[m]);
    bool all_read_all = true;
    const size_t first_edge = edges_.size();
    for (uint32_t t = 0; t < tiles; ++t) {
      const Rect read = ReinterpretRect(reads[t], reads.shape(), writes.shape());
      uint32_t count = 0;
      for (uint32_t m = 0; m < made; ++m) {
        if (!Overlap(read, written_[m])) continue;
        edges_.push_back({first_task(before) + m, t});
        ++count;
      }
      all_read_all = all_read_all && count == made;
    }
    if (!all_read_all) return;
    edges_.resize(first_edge);
    WaitForAll(before);
  }

  // Makes every tile of the current group wait for all tiles of group `before`.
  void WaitForAll(uint32_t before) {
    for_all_.push_back(Done(before));
    whole_.push_back(before);
  }

  struct UserSet {
    uint32_t waiters = 0;   // calls that wait for the users
    uint32_t done = kNone;  // the join of all users, if it saves edges
  };

  // Makes `group` wait for `calls`, earlier users of bytes that it overwrites. If a join for all waiting calls saves
  // many edges, uses the join. Otherwise only adds the users' groups to `users_`, except `group` itself, whose calls
  // are ordered tile by tile, and groups that precede it anyway.
  void AddUsers(uint32_t group, const std::vector<uint32_t>& calls, UserSet* set) {
    const uint64_t count = calls.size();
    if (count * set->waiters > kMinSaving * (count + set->waiters) && graph_.calls[calls.back()].group != group) {
      if (set->done == kNone) {
        std::vector<uint32_t> users;
        for (uint32_t call : calls) users.push_back(Done(graph_.calls[call].group));
        set->done = JoinOf(users);
      }
      return for_all_.push_back(set->done);
    }
    for (uint32_t call : calls) {
      const uint32_t user = graph_.calls[call].group;
      if (user != group && !IsBefore(user, group)) users_.push_back(user);
    }
  }

  // Makes all tiles of `group` wait for all tiles of the groups in `users_`, through a join if that takes fewer edges.
  void WaitForUsers(uint32_t group) {
    absl::c_sort(users_);
    users_.erase(std::unique(users_.begin(), users_.end()), users_.end());
    if (users_.empty()) return;
    if (users_.size() == 1) return for_all_.push_back(Done(users_[0]));
    const std::vector<uint32_t> tasks = TasksOf(users_);
    if (tasks.size() * tile_count(group) > tasks.size() + tile_count(group)) {
      for_all_.push_back(JoinOf(tasks));
    } else {
      for_all_.insert(for_all_.end(), tasks.begin(), tasks.end());
    }
  }

  // Reports whether all tiles of group `before` run before all tiles of group `after`. Follows only dependencies on
  // whole groups, through at most kMaxVisits groups, so it may return false although there is such an order.
  bool IsBefore(uint32_t before, uint32_t after) {
    int visits = 0;
    search_.assign(1, after);
    while (!search_.empty() && ++visits <= kMaxVisits) {
      const uint32_t group = search_.back();
      search_.pop_back();
      for (uint32_t i = first_whole_[group]; i < first_whole_[group + 1]; ++i) {
        if (whole_[i] == before) return true;
        if (whole_[i] > before) search_.push_back(whole_[i]);
      }
    }
    return false;
  }

  // Adds a task for each tile of `group`, with the edges in `for_all_` and `edges_`. `seconds`: duration of each task.
  void AddTiles(uint32_t group, double seconds) {
    const uint32_t first = static_cast<uint32_t>(graph_.tasks.size());
    graph_.groups[group].first_task = first;
    for (uint32_t t = 0; t < tile_count(group); ++t) {
      AddTask(group, t, seconds);
      for (uint32_t before : for_all_) builder_.AddEdge(before, first + t);
    }
    for (const auto& [before, tile] : edges_) builder_.AddEdge(before, first + tile);
  }

  CompiledGraph& graph_;
  const Program& program_;
  ScheduleBuilder builder_;
  std::vector<uint32_t> call_of_;                     // by node
  std::vector<uint32_t> done_;                        // by group: the join of its tiles, or kNone
  std::vector<uint32_t> first_whole_, whole_;         // by group: groups that it depends on as a whole
  std::vector<uint32_t> for_all_;                     // of the current group: tasks for which all its tiles wait
  std::vector<std::pair<uint32_t, uint32_t>> edges_;  // of the current group: (predecessor, tile)
  std::vector<Rect> written_;
  std::vector<UserSet> user_sets_;
  std::vector<uint32_t> users_;  // of the current group: groups that used its bytes earlier
  std::vector<uint32_t> search_;
};

}  // namespace

void MakeTasks(CompiledGraph* graph, const Reuses& reuses) { TaskMaker(graph).Run(reuses); }

}  // namespace weft
