// Ranks are the processes that run one training together. Code outside graphs, such as the trainer, uses this class.
// Functions that exchange data wait for all ranks, so all ranks must call them in the same order. The functions below
// the class let ranks decide together, and let a thread wait for messages.
//
//   Ranks ranks(&messenger);
//   WEFT_RETURN_IF_ERROR(ranks.CheckEqual("seed", absl::StrCat(seed)));
//   if (ranks.first()) WriteFiles();
#ifndef WEFT_DISTRIBUTED_RANKS_H_
#define WEFT_DISTRIBUTED_RANKS_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/graph/run/transport.h"

namespace weft {

class Parameters;

class Ranks {
 public:
  // Creates rank 0 of 1, for a process that trains alone. No function waits.
  Ranks() = default;
  // `transport` must outlive this object.
  explicit Ranks(Transport* transport) : transport_(transport) {}

  int rank() const { return transport_ == nullptr ? 0 : transport_->rank(); }
  int size() const { return transport_ == nullptr ? 1 : transport_->size(); }
  bool first() const { return rank() == 0; }
  Transport* transport() const { return transport_; }  // null for a process that trains alone

  // Exchanges the bytes that each rank gives. Returns them by rank. Ranks may give different numbers of bytes.
  std::vector<std::string> AllGather(absl::string_view mine) const;
  // Returns OK if all ranks give the same `value`. Otherwise returns FailedPrecondition on every rank. The message
  // names `what`, the first rank that differs from rank 0, and both values.
  absl::Status CheckEqual(absl::string_view what, absl::string_view value) const;

 private:
  Transport* transport_ = nullptr;
};

// The ranks of a training must take every decision together: a rank that stops alone would leave the others waiting.
// The following functions wait for all ranks, and return the same decision on each. With one rank, they return the
// result of their argument and send nothing.
//
//   const auto write = [&] { return run.SetConfig(config); };
//   WEFT_RETURN_IF_ERROR(OnFirst(ranks, write));                       // rank 0 writes, and all ranks wait
//   WEFT_RETURN_IF_ERROR(AllAgree(ranks, job->Prepare(&parameters)));  // an error on any rank ends all ranks
//   WEFT_ASSIGN_OR_RETURN(const bool stop, AnyRank(ranks, step_status, interrupt.requested()));
//   if (step % 100 == 0) WEFT_RETURN_IF_ERROR(CheckSameParameters(ranks, parameters, step));

// Calls `work` on rank 0 alone, and returns its result on every rank.
absl::StatusOr<std::string> ResultOfFirst(const Ranks& ranks, absl::FunctionRef<absl::StatusOr<std::string>()> work);
absl::Status OnFirst(const Ranks& ranks, absl::FunctionRef<absl::Status()> work);

// Returns whether any rank gave `flag`. If a rank gave an error, returns the error of the first such rank. The message
// names the rank, unless all ranks gave the same error. The ranks exchange data once.
absl::StatusOr<bool> AnyRank(const Ranks& ranks, const absl::Status& status, bool flag);
// Does the same without a flag: returns OK if all ranks give OK.
absl::Status AllAgree(const Ranks& ranks, const absl::Status& status);

// Returns `status`, which must be the same on all ranks. On ranks other than 0, removes the message, because rank 0
// prints it for all.
absl::Status PrintedByFirst(const Ranks& ranks, const absl::Status& status);

// Compares checksums of Parameters::kAll after `step` updates. All ranks compute the same bits, so a difference is a
// fault of a machine, such as memory that changed silently, or other initial weights. Returns OK or DataLoss. The
// message names the ranks that differ from the majority, and the first parameter that differs. If there is no majority,
// as with two ranks, the message names all ranks.
absl::Status CheckSameParameters(const Ranks& ranks, const Parameters& parameters, int64_t step);

// Lets a thread wait until messages of a Transport have ended: each is sent or received with `messages.Add()`.
class PendingMessages {
 public:
  Transport::Done Add();  // returns the callback of one more message, which must end before this object is destroyed
  void Wait();            // waits until all messages have ended

 private:
  std::mutex mutex_;  // guards `pending_`
  std::condition_variable ended_;
  int pending_ = 0;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_RANKS_H_
