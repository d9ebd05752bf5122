#include "weft/graph/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "oneapi/tbb/global_control.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr uint32_t kOpen = 0x80000000;
// Looks around before a worker yields its core, before it sleeps for a while, and before it leaves.
constexpr int kSpins = 200, kYields = 2000, kSleeps = 20;

// Long enough that a worker with nothing to do doesn't take the ends of the others' deques from them all the time.
void Pause() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#endif
}

// Waits a little, and longer the more often it was done.
void Wait(int times) {
  if (times < kSpins) return Pause();
  if (times < kSpins + kYields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// TBB runs no more workers than it finds cores unless it is told to, and of several such controls the least one counts:
// so there is one for the whole program, and it only grows.
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

// The calls that no worker has answered yet, of all executors. The task that TBB is given has no state of its own: what
// it is to do lies here, so that an executor can be gone when its turn comes, and so that all that passes between the
// two threads passes under this mutex, where ThreadSanitizer sees it.
struct WorkerPool::Calls {
  std::mutex mutex;
  Worker *first = nullptr, *last = nullptr;  // in line

  void Append(Worker* worker) {
    (first == nullptr ? first : last->next) = worker;
    last = worker;
  }
  Worker* TakeFirst() {
    Worker* const taken = first;
    if (taken != nullptr) first = std::exchange(taken->next, nullptr);
    return taken;
  }
};

WorkerPool::Calls& WorkerPool::AllCalls() {
  static Calls* calls = new Calls;
  return *calls;
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

WorkerPool::~WorkerPool() {
  for (bool all_gone = false; !all_gone; std::this_thread::yield()) {
    Calls& calls = AllCalls();
    const std::lock_guard lock(calls.mutex);
    Worker* worker = std::exchange(calls.first, nullptr);
    while (worker != nullptr) {
      Worker* const next = std::exchange(worker->next, nullptr);
      worker->pool == this ? void(worker->called = worker->again = false) : calls.Append(worker);
      worker = next;
    }
    all_gone = std::none_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->called; });
  }
}

void WorkerPool::Run(Body body) {
  EnterCaller();
  body_ = &body;
  done_.store(false, std::memory_order_relaxed);
  shared_.store(false, std::memory_order_relaxed);
  for (int i = 1; i < threads_; ++i) workers_[i]->entered = false;
  inside_.store(kOpen, std::memory_order_release);
  Work(0);
  inside_.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int times = 0; inside_.load(std::memory_order_acquire) != 0; ++times) Wait(times);
}

int WorkerPool::workers_entered() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w->entered; }));
}

void WorkerPool::CallWorkers() {
  if (shared_.exchange(true, std::memory_order_relaxed)) return;
  Calls& calls = AllCalls();
  const std::lock_guard lock(calls.mutex);
  for (int i = 1; i < threads_; ++i) {
    Worker& worker = *workers_[i];
    if (std::exchange(worker.called, true)) {
      worker.again = true;
      continue;
    }
    calls.Append(&worker);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_BEGIN();  // TBB's task object: its library passes it on unseen
    arena_.enqueue(AnswerCall);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_END();
  }
}

void WorkerPool::AnswerCall() {
  Calls& calls = AllCalls();
  std::unique_lock lock(calls.mutex);
  Worker* const me = calls.TakeFirst();
  if (me == nullptr) return;
  do {
    lock.unlock();
    me->pool->Enter(me->number);
    lock.lock();
  } while (std::exchange(me->again, false));
  me->called = false;
}

void WorkerPool::Enter(int worker) {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  do {
    if ((inside & kOpen) == 0) return;
  } while (!inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed));
  workers_[worker]->entered = true;
  Work(worker);
  inside_.fetch_sub(1, std::memory_order_release);
}

bool WorkerPool::Stays(int worker, int looks) {
  constexpr int kLooks = kSpins + kYields + kSleeps;
  if (done_.load(std::memory_order_acquire) || (worker > 0 && looks > kLooks)) return false;
  if (worker > 0 && looks == kLooks) shared_.store(false, std::memory_order_relaxed);
  Wait(looks);
  return true;
}

}  // namespace weft
