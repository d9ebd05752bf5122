// ImaginaryPeers stand for the other ranks of a training. Each send ends at once, and each receive gets zeros. So one
// process can compile, print and time the graphs of any rank.
//
//   ImaginaryPeers peers(/*rank=*/0, /*size=*/64);
//   Runner runner(graph, &parameters, {.threads = 1, .timed = true, .transport = &peers});
#ifndef WEFT_LAB_RANKS_IMAGINARY_PEERS_H_
#define WEFT_LAB_RANKS_IMAGINARY_PEERS_H_

#include <algorithm>
#include <cstddef>

#include "absl/types/span.h"
#include "weft/graph/transport.h"

namespace weft {

// A message ends within the call that starts it, so a runner must have one thread.
class ImaginaryPeers final : public Transport {
 public:
  ImaginaryPeers(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Send(absl::Span<const std::byte>, int /*to*/, int /*tag*/, Done done) override {
    done.call(done.object, done.argument);
  }
  void Receive(absl::Span<std::byte> bytes, int /*from*/, int /*tag*/, Done done) override {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    done.call(done.object, done.argument);
  }

 private:
  const int rank_, size_;
};

}  // namespace weft

#endif  // WEFT_LAB_RANKS_IMAGINARY_PEERS_H_
