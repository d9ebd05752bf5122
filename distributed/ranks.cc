#include "weft/distributed/ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/types/span.h"
#include "weft/distributed/communicator.h"
#include "weft/graph/run/transport.h"

namespace weft {
namespace {

// Gathers blocks of bytes from all ranks in ceil(log2 N) rounds: Bruck et al., "Efficient Algorithms for All-to-All
// Communications in Multiport Message-Passing Systems", 1997. `sizes[i]` is the size of the block of rank (r + i) % N
// for this rank r. `blocks` begins with this rank's block. Appends the blocks of rank r + 1, r + 2, ...
void GatherBlocks(Transport* transport, absl::Span<const size_t> sizes, std::string* blocks) {
  const int rank = transport->rank(), size = transport->size();
  std::vector<size_t> begins(size + 1);  // begins[i]: where block i begins
  std::partial_sum(sizes.begin(), sizes.end(), begins.begin() + 1);
  blocks->resize(begins[size]);
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(blocks->data()), blocks->size());
  // After each round, this rank has the blocks of ranks rank .. rank + 2 * distance - 1.
  for (int distance = 1; distance < size; distance *= 2) {
    const int count = std::min(distance, size - distance);
    absl::BlockingCounter messages(2);
    transport->Send(bytes.subspan(0, begins[count]), (rank + size - distance) % size, kRanksTag, CountIn(&messages));
    transport->Receive(bytes.subspan(begins[distance], begins[distance + count] - begins[distance]),
                       (rank + distance) % size, kRanksTag, CountIn(&messages));
    messages.Wait();
  }
}

}  // namespace

std::vector<std::string> Ranks::AllGather(absl::string_view mine) const {
  if (size() == 1) return {std::string(mine)};
  const uint64_t my_length = mine.size();
  std::string lengths(reinterpret_cast<const char*>(&my_length), sizeof(my_length));
  GatherBlocks(transport_, std::vector<size_t>(size(), sizeof(my_length)), &lengths);
  std::vector<size_t> sizes(size());
  for (int i = 0; i < size(); ++i) {
    uint64_t length;
    std::memcpy(&length, lengths.data() + i * sizeof(length), sizeof(length));
    sizes[i] = length;
  }

  std::string blocks(mine);
  if (std::accumulate(sizes.begin(), sizes.end(), size_t{0}) > 0) GatherBlocks(transport_, sizes, &blocks);
  std::vector<std::string> all(size());
  size_t begin = 0;
  for (int i = 0; i < size(); ++i) {
    all[(rank() + i) % size()] = blocks.substr(begin, sizes[i]);
    begin += sizes[i];
  }
  return all;
}

void Ranks::Barrier() const { AllGather(""); }

absl::Status Ranks::CheckEqual(absl::string_view what, absl::string_view value) const {
  const std::vector<std::string> values = AllGather(value);
  for (int r = 1; r < size(); ++r) {
    if (values[r] != values[0]) {
      return absl::FailedPreconditionError(
          absl::StrCat("the ranks differ in ", what, ": rank 0 has ", values[0], ", rank ", r, " has ", values[r]));
    }
  }
  return absl::OkStatus();
}

Transport::Done CountIn(absl::BlockingCounter* messages) {
  return {.call = [](void* object, uint32_t) { static_cast<absl::BlockingCounter*>(object)->DecrementCount(); },
          .object = messages};
}

}  // namespace weft
