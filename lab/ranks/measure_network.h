// MeasureNetwork measures how fast messages between two ranks travel, as a Network for predictions.
//
//   Messenger messenger(std::move(communicator));
//   const Network network = MeasureNetwork(&messenger);  // ranks 0 and 1 call it
#ifndef WEFT_LAB_RANKS_MEASURE_NETWORK_H_
#define WEFT_LAB_RANKS_MEASURE_NETWORK_H_

#include "weft/graph/run/transport.h"
#include "weft/lab/network.h"

namespace weft {

// Sends messages from rank 0 to rank 1 and back. The latency is half the round trip of 8 bytes. The bandwidth is that
// of messages of 16 MiB without their latency. Both are medians. Ranks 0 and 1 must call this function at the same
// time, on a transport that carries no other messages. Their results differ slightly.
Network MeasureNetwork(Transport* transport);
// Measures messages between two threads of this process, over an imitated network.
Network MeasureImitatedNetwork(const Network& imitated);

}  // namespace weft

#endif  // WEFT_LAB_RANKS_MEASURE_NETWORK_H_
