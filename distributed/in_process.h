// An InProcessNetwork connects the threads of one process as MPI connects processes. Tests use it, and so do
// measurements that imitate a network of a given speed. Each rank's communicator belongs to one thread at a time.
// RunRanks runs a function on several ranks, each a thread with a Messenger of its own.
//
//   InProcessNetwork network(2, {.latency_seconds = 50e-6, .bytes_per_second = 1.25e9});  // 10 Gbit/s
//   std::thread other([&] { Train(network.Connect(1)); });
//   Train(network.Connect(0));
//
//   RunRanks(3, [](Transport* transport) {
//     const Ranks ranks(transport);
//     const std::vector<std::string> names = ranks.AllGather(absl::StrCat("rank ", ranks.rank()));
//   });
//
// A send ends only after its receive has begun, like the long messages of MPI. So a program that relies on MPI's
// buffers for short messages hangs here.
#ifndef WEFT_DISTRIBUTED_IN_PROCESS_H_
#define WEFT_DISTRIBUTED_IN_PROCESS_H_

#include <functional>
#include <memory>
#include <optional>

#include "weft/distributed/communicator.h"
#include "weft/distributed/messenger.h"
#include "weft/graph/run/transport.h"

namespace weft {

struct InProcessOptions {
  double latency_seconds = 0;   // from the departure of a byte to its arrival
  double bytes_per_second = 0;  // of each direction between two ranks; 0: no limit
};

class InProcessNetwork {
 public:
  explicit InProcessNetwork(int size, const InProcessOptions& options = {});
  ~InProcessNetwork();

  // Returns the communicator of one rank. The network must outlive it. After any rank has called Abort, no message
  // ends.
  std::unique_ptr<Communicator> Connect(int rank);
  // Returns the exit code of the first call of Abort.
  std::optional<int> exit_code() const;

 private:
  struct State;
  class Connection;
  std::unique_ptr<State> state_;
};

// Calls run(transport) on `size` threads, one for each rank, and returns when all calls have returned.
void RunRanks(int size, const std::function<void(Transport*)>& run, const InProcessOptions& options = {});

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_IN_PROCESS_H_
