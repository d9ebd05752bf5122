#include "weft/graph/executor.h"

#include <algorithm>
#include <thread>

#include "oneapi/tbb/global_control.h"
#include "oneapi/tbb/task_group.h"

namespace weft {
namespace {

constexpr int kSpins = 200;  // looks at the queue before a worker yields its core

// TBB runs no more workers than cores unless it is told to, and of several such controls the least one counts: so there
// is one for the whole program, and it only grows.
void AllowThreads(size_t threads) {
  static std::mutex mutex;
  static tbb::global_control* control = nullptr;
  static size_t allowed = std::thread::hardware_concurrency();
  const std::lock_guard lock(mutex);
  if (threads <= allowed) return;
  delete control;
  control = new tbb::global_control(tbb::global_control::max_allowed_parallelism, threads);
  allowed = threads;
}

}  // namespace

Executor::Executor(const CompiledGraph* graph, int threads)
    : graph_(*graph),
      threads_(threads),
      arena_(threads),
      waits_for_(new std::atomic<uint32_t>[graph->steps.size()]),
      tiles_left_(new std::atomic<uint32_t>[graph->steps.size()]) {
  AllowThreads(static_cast<size_t>(threads));
  ready_.reserve(graph->steps.size());
}

void Executor::Run(BeginStep begin, RunTile run_tile) {
  const uint32_t steps = static_cast<uint32_t>(graph_.steps.size());
  for (uint32_t s = 0; s < steps; ++s) {
    waits_for_[s].store(graph_.steps[s].waits_for, std::memory_order_relaxed);
    tiles_left_[s].store(static_cast<uint32_t>(graph_.steps[s].tiles.size()), std::memory_order_relaxed);
  }
  steps_left_.store(steps, std::memory_order_release);
  for (uint32_t s = 0; s < steps; ++s) {
    if (graph_.steps[s].waits_for == 0) MakeReady(s, begin);
  }
  if (threads_ == 1) return Work(0, begin, run_tile);
  arena_.execute([&] {
    tbb::task_group workers;
    for (int worker = 1; worker < threads_; ++worker) workers.run([&, worker] { Work(worker, begin, run_tile); });
    Work(0, begin, run_tile);
    workers.wait();
  });
}

void Executor::Work(int worker, BeginStep begin, RunTile run_tile) {
  Task task;
  while (Take(&task)) {
    run_tile(task.step, graph_.steps[task.step].tiles[task.tile], worker);
    if (tiles_left_[task.step].fetch_sub(1, std::memory_order_acq_rel) == 1) Finish(task.step, begin);
  }
}

bool Executor::Take(Task* task) {
  for (int spins = 0;; ++spins) {
    if (ready_count_.load(std::memory_order_relaxed) > 0) {
      const std::lock_guard lock(mutex_);
      if (!ready_.empty()) {
        *task = ready_.front();
        if (++ready_.front().tile < graph_.steps[task->step].tiles.size()) return true;
        std::pop_heap(ready_.begin(), ready_.end(), [](const Task& a, const Task& b) { return a.step > b.step; });
        ready_.pop_back();
        ready_count_.store(static_cast<uint32_t>(ready_.size()), std::memory_order_relaxed);
        return true;
      }
    }
    if (steps_left_.load(std::memory_order_acquire) == 0) return false;
    if (spins >= kSpins) std::this_thread::yield();
  }
}

void Executor::Finish(uint32_t step, BeginStep begin) {
  for (uint32_t next : graph_.steps[step].successors) {
    if (waits_for_[next].fetch_sub(1, std::memory_order_acq_rel) == 1) MakeReady(next, begin);
  }
  steps_left_.fetch_sub(1, std::memory_order_acq_rel);
}

void Executor::MakeReady(uint32_t step, BeginStep begin) {
  begin(step);
  const std::lock_guard lock(mutex_);
  ready_.push_back({step, 0});
  std::push_heap(ready_.begin(), ready_.end(), [](const Task& a, const Task& b) { return a.step > b.step; });
  ready_count_.store(static_cast<uint32_t>(ready_.size()), std::memory_order_relaxed);
}

}  // namespace weft
