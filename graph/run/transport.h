// A Transport carries messages between ranks: processes, usually on several machines, that run one training together.
// Nodes of a graph that have messages (OpDef::messages) use it. They don't block a worker: the transport reports the
// end of a message.
//
//   transport->Send(bytes, /*to=*/1, /*tag=*/7, {OnEnd, this, /*argument=*/3});  // OnEnd(this, 3) is called later
#ifndef WEFT_GRAPH_RUN_TRANSPORT_H_
#define WEFT_GRAPH_RUN_TRANSPORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace weft {

class Transport {
 public:
  virtual ~Transport() = default;

  // The function to call when a message has ended: `call(object, argument)`, once, on the transport's thread.
  struct Done {
    void (*call)(void* object, uint32_t argument) = nullptr;
    void* object = nullptr;
    uint32_t argument = 0;
  };

  virtual int rank() const = 0;  // this process: 0 .. size() - 1
  virtual int size() const = 0;  // number of ranks
  // Send and Receive start a message and return at once. Any thread may call them. The bytes must stay valid until
  // `done` is called. Until then, nothing may change the bytes of a sent message. Messages of one sender with the same
  // tag arrive in the order in which they were sent. Both sides must give the same number of bytes.
  virtual void Send(absl::Span<const std::byte> bytes, int to, int tag, Done done) = 0;
  virtual void Receive(absl::Span<std::byte> bytes, int from, int tag, Done done) = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_TRANSPORT_H_
