// These functions wake helpers, and let them enter an execution, back off and leave. Each wake-up is a function that
// TBB runs on one of its threads. The thread then works as a helper until it finds no more work. The derived executors
// have the queues of tasks.
#include "weft/graph/run/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "oneapi/tbb/global_control.h"
#include "weft/base/signal_block.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr uint32_t kOpen = 0x80000000;
// An idle worker pauses after each of its first 200 empty polls. It yields its core after the next 2000, and sleeps
// after later ones. A helper leaves after about kMaxSleeps sleeps.
constexpr int kMaxSpins = 200, kMaxYields = 2000, kMaxSleeps = 20;

// Executes 8 pause instructions on x86. If idle workers polled more often, they would slow down the workers whose
// deques they poll.
void Pause() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#endif
}

// Waits between two polls, longer after more of them. `polls`: number of empty polls in a row.
void Wait(int polls) {
  if (polls < kMaxSpins) return Pause();
  if (polls < kMaxSpins + kMaxYields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// Lets TBB run at least `threads` threads. By default, TBB runs at most one for each core. If there are several
// tbb::global_control, the smallest limit counts. So Weft has only one, and replaces it only by a larger one.
void AllowThreads(size_t threads) {
  static std::mutex mutex;
  static tbb::global_control* control = nullptr;
  static size_t allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const std::lock_guard lock(mutex);
  if (threads <= allowed) return;
  delete control;
  control = new tbb::global_control(tbb::global_control::max_allowed_parallelism, threads);
  allowed = threads;
}

}  // namespace

// WakeUps is the queue of the workers, of all executors, whose wake-up no thread has answered yet. The function that
// TBB runs carries no state: it takes the first worker of this queue. So an executor may be destroyed before TBB runs
// the function. All data passes between the two threads under `mutex`, where ThreadSanitizer sees it.
struct WorkerPool::WakeUps {
  std::mutex mutex;
  Worker *first = nullptr, *last = nullptr;

  void Append(Worker* worker) {
    (first == nullptr ? first : last->next) = worker;
    last = worker;
  }
  // Returns null if the queue is empty.
  Worker* TakeFirst() {
    Worker* const taken = first;
    if (taken != nullptr) first = std::exchange(taken->next, nullptr);
    return taken;
  }
};

WorkerPool::WakeUps& WorkerPool::PendingWakeUps() {
  static WakeUps* wake_ups = new WakeUps;
  return *wake_ups;
}

WorkerPool::WorkerPool(const Schedule* schedule, int threads)
    : schedule_(*schedule), threads_(threads), arena_(threads, /*reserved_for_masters=*/1) {
  WEFT_CHECK(threads >= 1);
  AllowThreads(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->pool = this;
    workers_.back()->number = i;
  }
}

// Removes this pool's workers from the queue of wake-ups, and waits until the pool's active helpers have left.
WorkerPool::~WorkerPool() {
  for (bool all_gone = false; !all_gone; std::this_thread::yield()) {
    WakeUps& wake_ups = PendingWakeUps();
    const std::lock_guard lock(wake_ups.mutex);
    Worker* worker = std::exchange(wake_ups.first, nullptr);
    while (worker != nullptr) {
      Worker* const next = std::exchange(worker->next, nullptr);
      worker->pool == this ? void(worker->woken = worker->again = false) : wake_ups.Append(worker);
      worker = next;
    }
    all_gone = std::none_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->woken; });
  }
}

void WorkerPool::Run(Body body) {
  EnterCaller();
  body_ = &body;
  done_.store(false, std::memory_order_relaxed);
  helpers_woken_.store(false, std::memory_order_relaxed);
  for (int i = 1; i < threads_; ++i) workers_[i]->entered = false;
  helpers_.store(kOpen, std::memory_order_release);
  Work(0);
  helpers_.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int polls = 0; helpers_.load(std::memory_order_acquire) != 0; ++polls) Wait(polls);
}

int WorkerPool::workers_entered() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w->entered; }));
}

void WorkerPool::WakeHelpers() {
  if (helpers_woken_.exchange(true, std::memory_order_relaxed)) return;
  WakeUps& wake_ups = PendingWakeUps();
  const std::lock_guard lock(wake_ups.mutex);
  for (int i = 1; i < threads_; ++i) {
    Worker& worker = *workers_[i];
    if (std::exchange(worker.woken, true)) {
      worker.again = true;
      continue;
    }
    wake_ups.Append(&worker);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_BEGIN();  // ThreadSanitizer can't see how TBB passes its task object on
    arena_.enqueue(AnswerWakeUp);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_END();
  }
}

// Runs on a thread of TBB. Takes the first worker from the queue of wake-ups and works in its place, and again if the
// worker has been woken meanwhile.
void WorkerPool::AnswerWakeUp() {
  WakeUps& wake_ups = PendingWakeUps();
  std::unique_lock lock(wake_ups.mutex);
  Worker* const me = wake_ups.TakeFirst();
  if (me == nullptr) return;
  const SignalBlock block;
  do {
    lock.unlock();
    me->pool->Enter(me->number);
    lock.lock();
  } while (std::exchange(me->again, false));
  me->woken = false;
}

// Works as helper `worker`, unless the execution is over.
void WorkerPool::Enter(int worker) {
  uint32_t helpers = helpers_.load(std::memory_order_relaxed);
  do {
    if ((helpers & kOpen) == 0) return;
  } while (!helpers_.compare_exchange_weak(helpers, helpers + 1, std::memory_order_acquire, std::memory_order_relaxed));
  workers_[worker]->entered = true;
  Work(worker);
  helpers_.fetch_sub(1, std::memory_order_release);
}

bool WorkerPool::BackOff(int worker, int idle_polls) {
  constexpr int kMaxPolls = kMaxSpins + kMaxYields + kMaxSleeps;
  if (done_.load(std::memory_order_acquire) || (worker > 0 && idle_polls > kMaxPolls)) return false;
  if (worker > 0 && idle_polls == kMaxPolls) helpers_woken_.store(false, std::memory_order_relaxed);
  Wait(idle_polls);
  return true;
}

}  // namespace weft
