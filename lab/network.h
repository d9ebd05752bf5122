// A Network describes how fast messages between ranks travel, for predictions. It is given as a text, or measured.
//
//   WEFT_ASSIGN_OR_RETURN(const Network network, ParseNetwork("25us,10Gbit,tree:16:4"));
//   const Network measured = MeasureNetwork(&messenger);  // ranks 0 and 1 call it
#ifndef WEFT_LAB_NETWORK_H_
#define WEFT_LAB_NETWORK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/run/transport.h"

namespace weft {

struct Network {
  double latency_seconds = kMessageSeconds;          // from the departure of a byte to its arrival
  double bytes_per_second = kNetworkBytesPerSecond;  // bandwidth of the link of a rank, in each direction
  // A tree: ranks 0 .. ranks_per_switch - 1 are at the first switch, and so on. A message between two switches gets
  // bytes_per_second / oversubscription. The model assumes that all ranks of a switch use the uplink at the same time.
  // 0: all ranks are at one switch, which is never the bottleneck.
  int64_t ranks_per_switch = 0;
  double oversubscription = 1;

  // Returns the seconds in which a message of `bytes` bytes occupies the links of `from` and `to`.
  double LinkSeconds(double bytes, int from, int to) const;
};

// Parses LATENCY,BANDWIDTH[,TOPOLOGY]. LATENCY: a number of s, ms, us or ns. BANDWIDTH: a number of bit, kbit, Mbit,
// Gbit or Tbit per second. TOPOLOGY: flat, or tree:RANKS:FACTOR with the number of ranks at a switch and the
// oversubscription. Returns InvalidArgument for other texts.
absl::StatusOr<Network> ParseNetwork(absl::string_view text);
// Returns the text that ParseNetwork parses. Each number has four digits.
std::string ToString(const Network& network);

// Returns the options of ranks in one process that imitate `network`. They ignore its topology.
InProcessOptions Imitation(const Network& network);

// Sends messages from rank 0 to rank 1 and back. The latency is half the round trip of 8 bytes. The bandwidth is that
// of messages of 16 MiB without their latency. Both are medians. Ranks 0 and 1 must call this function at the same
// time, on a transport that carries no other messages. Their results differ slightly.
Network MeasureNetwork(Transport* transport);
// Measures messages between two threads of this process, over an imitated network.
Network MeasureImitatedNetwork(const Network& imitated);

}  // namespace weft

#endif  // WEFT_LAB_NETWORK_H_
