// A Communicator connects this process with the other ranks: MPI (distributed/mpi) or queues inside one process
// (distributed/in_process.h). One thread at a time uses it, usually that of a Messenger (distributed/messenger.h).
//
//   const auto request = communicator->Send(bytes, /*to=*/1, /*tag=*/7);
//   for (std::vector<Communicator::Request> ended; ended.empty();) communicator->Progress(&ended);
#ifndef WEFT_DISTRIBUTED_COMMUNICATOR_H_
#define WEFT_DISTRIBUTED_COMMUNICATOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Tags that distributed/ uses for its own messages. Messages of graphs have tags from 0 to kFirstReservedTag - 1. MPI
// guarantees tags up to 32767, so the reserved tags end there.
inline constexpr int kFirstReservedTag = 32760;
inline constexpr int kAllGatherTag = 32760;  // distributed/message_ops.h
inline constexpr int kRowsTag = 32765;       // distributed/weight_gathers.h
inline constexpr int kRanksTag = 32766;      // distributed/ranks.h
inline constexpr int kHeartbeatTag = 32767;  // distributed/rank_watch.h

class Communicator {
 public:
  // The number of a message that was started: 0, 1, 2, ... in the order of the calls.
  using Request = uint64_t;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Send and Receive start a message and return at once. The bytes must stay valid until Progress reports the request.
  virtual Request Send(absl::Span<const std::byte> bytes, int to, int tag) = 0;
  virtual Request Receive(absl::Span<std::byte> bytes, int from, int tag) = 0;
  // Moves data without waiting, and appends the requests that have ended since the last call to `ended`.
  virtual void Progress(std::vector<Request>* ended) = 0;
  // Sets a function, which any thread may call when another rank has done something that concerns this one.
  virtual void SetWake(std::function<void()> /*wake*/) {}
  // Returns the time of the next call of Progress that has something to do, if nothing wakes this rank before. Returns
  // nullopt if only calls of Progress can tell, as with MPI.
  virtual std::optional<std::chrono::steady_clock::time_point> NextProgress() const { return std::nullopt; }
  // Ends the programs of all ranks. This rank ends with `exit_code`. Does not return, except in tests.
  virtual void Abort(int exit_code) = 0;
};

inline constexpr char kConnectMpi[] = "WeftConnectMpi";

}  // namespace weft

// The only function of the plugin of distributed/mpi, a shared library that is the only part of Weft that needs MPI.
// There is one file for each MPI, compiled from the same source: libweft_mpi.so for Open MPI, libweft_mpich.so for
// MPICH. distributed/connect_messenger.h opens the file, and finds the function by its name, kConnectMpi.
//
// Initialises MPI and returns a new communicator of all ranks, which the caller owns. Its destructor finalises MPI, so
// a process can connect once. On failure returns null, and `error` points to a message that is never freed.
extern "C" weft::Communicator* WeftConnectMpi(const char** error);

#endif  // WEFT_DISTRIBUTED_COMMUNICATOR_H_
