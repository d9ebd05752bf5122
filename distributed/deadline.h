// A Deadline ends this process if it is not destroyed in time. It guards the start of MPI, when no messenger watches
// the other ranks yet. MPI itself waits forever for a rank that hangs before it has connected.
//
//   const Deadline deadline(/*seconds=*/60, "weft: a rank has not answered");
//   MPI_Init(nullptr, nullptr);
#ifndef WEFT_DISTRIBUTED_DEADLINE_H_
#define WEFT_DISTRIBUTED_DEADLINE_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace weft {

// Maximum number of seconds that a process waits: 31 years. The clock counts nanoseconds, so that it overflows after
// 292 years; longer timeouts are taken for this one.
inline constexpr double kMaxTimeout = 1e9;

class Deadline {
 public:
  // After `seconds`, prints `message` as a line on stderr and ends the process with exit code 1, without destructors.
  // 0: there is no deadline.
  Deadline(double seconds, std::string message);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;  // whether the destructor has begun; guarded by mutex_
  std::thread thread_;    // not joinable if there is no deadline
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_DEADLINE_H_
