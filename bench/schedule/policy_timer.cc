#include "weft/bench/schedule/policy_timer.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "weft/base/status.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/simulate.h"

namespace weft {
namespace {

constexpr double kWarmSeconds = 2e-3;                           // untimed executions at the beginning of a turn
constexpr double kMaxWarmedSeconds = 1;                         // no untimed executions before one that takes longer
constexpr uint64_t kTimedNodes = 10'000, kMaxFirstNodes = 100;  // limits of a turn's timed executions

// Waits 10 ms, until the threads of the previous policy sleep. Idle threads first poll for some milliseconds, above all
// OpenMP's.
void LetOthersSleep() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

// Reports whether the last tile of `task` ran. Returns false for joins.
bool Ended(const CompiledGraph& graph, const Task& task, absl::Span<const TileTime> tiles) {
  if (task.group == Task::kJoin) return false;
  return tiles[graph.calls[graph.groups[task.group].end_call() - 1].first_tile + task.tile].end > 0;
}

std::optional<double> Find(const Turn& turn, const std::string& name) {
  const auto found = turn.others.find(name);
  return found == turn.others.end() ? std::nullopt : std::optional(found->second);
}

// Returns the turn in which all workers together were busy for the least time: other programs disturbed it least.
Turn LeastBusy(const std::vector<Turn>& turns) {
  return *std::min_element(turns.begin(), turns.end(),
                           [](const Turn& a, const Turn& b) { return Find(a, "busy") < Find(b, "busy"); });
}

// Returns `nodes` if every turn executed that many nodes. Otherwise returns the number of the first turn that did not.
double Executed(const std::vector<Turn>& turns, uint32_t nodes) {
  for (const Turn& turn : turns) {
    if (turn.others.at("executed") != nodes) return turn.others.at("executed");
  }
  return nodes;
}

}  // namespace

SyntheticTimer::SyntheticTimer(const Policy* policy, int threads, const Schedule* schedule, double path_nodes,
                               const NodeWork* work)
    : PolicyTimer(policy, threads),
      nodes_(schedule->task_count),
      path_nodes_(path_nodes),
      work_(*work),
      executor_(MakeExecutor(*policy, schedule, threads)) {}

inline void SyntheticTimer::Run(uint64_t times) {
  const NodeWork& work = work_;
  Executor& executor = *executor_;
  for (uint64_t i = 0; i < times; ++i) executor.Run([&work](TaskPart, int) { work(); });
}

absl::StatusOr<Turn> SyntheticTimer::TakeTurn() {
  LetOthersSleep();
  executed_ = nodes_;
  const uint64_t executions = std::max<uint64_t>(1, std::min<uint64_t>(WarmUp() / 2, kTimedNodes / nodes_));
  const Clock::time_point start = Clock::now();
  Run(executions);
  Turn turn = {.seconds = SecondsSince(start) / static_cast<double>(executions)};

  if (const std::optional<uint64_t> steals = executor_->steals()) turn.others["steals"] = static_cast<double>(*steals);
  const double busy = CountAndTakeBusySeconds(executions) / static_cast<double>(executions);
  if (work_.microseconds() > 0) turn.others["busy"] = busy;
  if (work_.microseconds() > 0 && &policy() == &kSerial) turn.others["path"] = busy / nodes_ * path_nodes_;
  turn.others["first_node"] = FirstNodeSeconds(std::min(executions, kMaxFirstNodes));
  turn.others["executed"] = executed_;
  return turn;
}

// Runs the graph untimed, and returns the number of executions.
uint64_t SyntheticTimer::WarmUp() {
  if (nodes_ * work_.microseconds() * 1e-6 > kMaxWarmedSeconds) return 0;
  uint64_t executions = 0;
  for (const Clock::time_point start = Clock::now(); SecondsSince(start) < kWarmSeconds; ++executions) Run(1);
  CountAndTakeBusySeconds(executions);
  return executions;
}

// Returns the busy seconds of `executions` executions, and resets the tally. If they ran a wrong number of
// nodes, sets executed_ to the number per execution.
double SyntheticTimer::CountAndTakeBusySeconds(uint64_t executions) {
  const Tally tally = TakeTally();
  if (tally.executed != executions * nodes_)
    executed_ = static_cast<double>(tally.executed) / static_cast<double>(executions);
  return tally.busy_seconds;
}

// Returns the median time from the start of an execution until its first node begins. In these executions, a node only
// records the time at which it begins.
double SyntheticTimer::FirstNodeSeconds(uint64_t executions) {
  std::vector<double> seconds;
  while (seconds.size() < executions) {
    std::atomic<bool> begun{false};
    double first = 0;
    const Clock::time_point start = Clock::now();
    executor_->Run([&](TaskPart, int) {
      if (begun.load(std::memory_order_relaxed) || begun.exchange(true, std::memory_order_relaxed)) return;
      first = SecondsSince(start);
    });
    seconds.push_back(first);
  }
  return Median(std::move(seconds));
}

RealTimer::RealTimer(const Policy* policy, int threads, const Graph& graph, std::vector<FeedPair> feeds,
                     Parameters* parameters)
    : PolicyTimer(policy, threads), graph_(graph), feeds_(std::move(feeds)), parameters_(*parameters) {}

absl::StatusOr<Turn> RealTimer::TakeTurn() {
  LetOthersSleep();
  Runner runner(graph_, &parameters_, {.threads = threads(), .policy = &policy(), .timed = true});
  // The timed execution must not use durations that were measured with cold memory.
  for (int i = 0; i < (policy().learns ? 2 : 1); ++i) {
    WEFT_RETURN_IF_ERROR(runner.Run(feeds_).status());
  }
  const Clock::time_point start = Clock::now();
  WEFT_RETURN_IF_ERROR(runner.Run(feeds_).status());
  Turn turn = {.seconds = SecondsSince(start)};

  double busy = 0, executed = 0;
  const std::vector<double> task_seconds = TaskSeconds(graph_, runner.tile_times());
  for (size_t t = 0; t < task_seconds.size(); ++t) {
    busy += task_seconds[t];
    executed += Ended(graph_.compiled(), graph_.compiled().tasks[t], runner.tile_times());
  }
  turn.others = {{"busy", busy}, {"executed", executed}};
  if (&policy() == &kSerial) {
    turn.others["path"] = FindCriticalPath(graph_.compiled().schedule, task_seconds, /*workers=*/1).seconds;
  }
  if (const std::optional<uint64_t> steals = runner.steals()) turn.others["steals"] = static_cast<double>(*steals);
  const absl::Span<const TileTime> tiles = runner.tile_times();
  const auto first = std::min_element(tiles.begin(), tiles.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  if (first != tiles.end()) turn.others["first_node"] = static_cast<double>(first->begin) * 1e-9;
  return turn;
}

absl::StatusOr<std::vector<ScheduleRow>> Measure(const PolicyTimers& timers, Rounds* rounds, ScheduleRow row) {
  std::vector<std::function<absl::StatusOr<Turn>()>> variants;
  for (const auto& timer : timers) variants.push_back([&timer] { return timer->TakeTurn(); });
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<Turn>> turns, TakeTurns(variants, rounds));
  if (rounds->probes()) std::fprintf(stderr, "%s: %s\n", row.graph.c_str(), rounds->Report().c_str());
  const Turn serial = Median(turns[0]), least = LeastBusy(turns[0]);
  const std::optional<double> work = Find(least, "busy");
  std::vector<ScheduleRow> rows;
  for (size_t i = 0; i < timers.size(); ++i) {
    const Turn median = Median(turns[i]);
    row.policy = timers[i]->policy().name;
    row.threads = timers[i]->threads();
    row.makespan = median.seconds;
    row.best = std::min_element(turns[i].begin(), turns[i].end(), [](auto& a, auto& b) {
                 return a.seconds < b.seconds;
               })->seconds;
    row.speedup = serial.seconds / median.seconds;
    row.executed = Executed(turns[i], row.nodes);
    row.busy = Find(median, "busy");
    row.steals = Find(median, "steals");
    row.first_node = Find(median, "first_node");
    row.bound_work = work ? std::optional(*work / row.threads) : std::nullopt;
    row.bound_path = Find(least, "path");
    rows.push_back(row);
  }
  return rows;
}

}  // namespace weft
