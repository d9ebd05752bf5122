// The OpenMP baseline has a file of its own, because only this file is compiled with -fopenmp.
#include <omp.h>

#include <atomic>
#include <vector>

#include "weft/bench/schedule/baselines.h"

namespace weft {
namespace {

class OpenMp : public Executor {
 public:
  OpenMp(const Schedule* schedule, int threads)
      : schedule_(*schedule), threads_(threads), entered_(threads), left_(schedule->size()) {
    for (uint32_t t = 0; t < schedule->size(); ++t) left_[t] = schedule->waits_for[t];
    omp_set_dynamic(0);
  }

  void Run(Body body) override {
    body_ = &body;
    entered_.Reset();
#pragma omp parallel num_threads(threads_)
#pragma omp single
    Release(schedule_.start());
  }
  int threads() const override { return threads_; }
  int workers_entered() const override { return entered_.count(); }

 private:
  void Spawn(uint32_t task) {
#pragma omp task firstprivate(task)
    RunTask(task);
  }

  void RunTask(uint32_t task) {
    if (task < schedule_.task_count) {
      const int worker = omp_get_thread_num();
      entered_.Enter(worker);
      (*body_)({task, 0, schedule_.PartsOf(task)}, worker);
    }
    Release(task);
  }

  void Release(uint32_t task) {
    for (uint32_t i = schedule_.first_successor[task]; i < schedule_.first_successor[task + 1]; ++i) {
      const uint32_t next = schedule_.successors[i] & ~Schedule::kAlone;
      if (next == schedule_.successors[i]) {
        if (left_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        left_[next].store(schedule_.waits_for[next], std::memory_order_relaxed);  // for the next execution
      }
      if (next != schedule_.end) Spawn(next);
    }
  }

  const Schedule& schedule_;
  const int threads_;
  EnteredWorkers entered_;
  std::vector<std::atomic<uint32_t>> left_;  // by task: number of unfinished predecessors
  const Body* body_ = nullptr;
};

}  // namespace

constexpr Policy kOpenMp = {.name = "openmp",
                            .summary = "tasks of OpenMP",
                            .executor = [](const Schedule* schedule, int threads) -> std::unique_ptr<Executor> {
                              return std::make_unique<OpenMp>(schedule, threads);
                            }};

}  // namespace weft
