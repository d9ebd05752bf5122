// RunRanks runs a function on several ranks in one process. Each rank is a thread with a Messenger of its own.
//
//   RunRanks(3, [](Transport* transport) {
//     const Ranks ranks(transport);
//     ranks.Barrier();
//   });
#ifndef WEFT_DISTRIBUTED_RANK_THREADS_H_
#define WEFT_DISTRIBUTED_RANK_THREADS_H_

#include <functional>
#include <thread>
#include <vector>

#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/graph/run/transport.h"

namespace weft {

// Calls run(transport) on `size` threads, one for each rank, and returns when all calls have returned.
inline void RunRanks(int size, const std::function<void(Transport*)>& run, const InProcessOptions& network_options = {},
                     const MessengerOptions& messenger_options = {}) {
  InProcessNetwork network(size, network_options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Messenger messenger(network.Connect(rank), messenger_options);
      run(&messenger);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_RANK_THREADS_H_
