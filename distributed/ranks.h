// Ranks are the processes that run one training together. Code outside graphs, such as the trainer, uses this class.
// Functions that exchange data wait for all ranks, so all ranks must call them in the same order.
//
//   Ranks ranks(&messenger);
//   WEFT_RETURN_IF_ERROR(ranks.CheckEqual("seed", absl::StrCat(seed)));
//   if (ranks.first()) WriteFiles();
//   ranks.Barrier();
#ifndef WEFT_DISTRIBUTED_RANKS_H_
#define WEFT_DISTRIBUTED_RANKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "weft/graph/run/transport.h"

namespace weft {

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
  // Waits until all ranks have called Barrier.
  void Barrier() const;
  // Returns OK if all ranks give the same `value`. Otherwise returns FailedPrecondition on every rank. The message
  // names `what`, the first rank that differs from rank 0, and both values.
  absl::Status CheckEqual(absl::string_view what, absl::string_view value) const;

 private:
  Transport* transport_ = nullptr;
};

// Returns a function for one message of a Transport, so that a thread can wait until messages have ended. When the
// message ends, the function counts it in `messages`, which must exist until its Wait has returned.
//
//   absl::BlockingCounter messages(2);
//   transport->Send(sent, /*to=*/1, /*tag=*/0, CountIn(&messages));
//   transport->Receive(received, /*from=*/1, /*tag=*/0, CountIn(&messages));
//   messages.Wait();
Transport::Done CountIn(absl::BlockingCounter* messages);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_RANKS_H_
