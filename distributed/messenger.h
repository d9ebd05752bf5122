// A Messenger is the thread that drives a Communicator. Other threads, such as workers and the trainer's, hand messages
// to it. It starts the messages, polls until they end, and then calls their callbacks (Transport::Done).
//
// The messengers of all ranks also watch each other (distributed/rank_watch.h), and end all programs with exit code 1
// if a rank is silent for `timeout_seconds`. A rank whose messenger runs counts as alive, even if its other threads
// hang.
//
//   Messenger messenger(std::move(communicator), /*timeout_seconds=*/60);
//   Ranks ranks(&messenger);
#ifndef WEFT_DISTRIBUTED_MESSENGER_H_
#define WEFT_DISTRIBUTED_MESSENGER_H_

#include <memory>

#include "absl/types/span.h"
#include "weft/distributed/communicator.h"
#include "weft/graph/run/transport.h"

namespace weft {

class Messenger final : public Transport {
 public:
  // `timeout_seconds`: maximum silence of a rank, the same on all ranks; 0: no maximum.
  explicit Messenger(std::unique_ptr<Communicator> communicator, double timeout_seconds = 0);
  // Waits until all started messages have ended. With a timeout, also waits until the previous rank ends.
  ~Messenger() override;

  int rank() const override;
  int size() const override;
  void Send(absl::Span<const std::byte> bytes, int to, int tag, Done done) override;
  void Receive(absl::Span<std::byte> bytes, int from, int tag, Done done) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_MESSENGER_H_
