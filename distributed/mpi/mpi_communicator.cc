// A Communicator that uses nonblocking messages of MPI. An error inside MPI ends the programs of all ranks with MPI's
// own message, because MPI cannot continue after one.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "weft/distributed/communicator.h"

namespace weft {
namespace {

// Number of bytes of a part of a message: 64 MiB. MPI counts bytes as int, so a longer message travels in parts. MPI
// keeps the order of messages with the same tag, so both sides cut a message alike. A part takes milliseconds, so the
// microsecond to start it does not matter.
constexpr size_t kMaxPartBytes = size_t{1} << 26;

class MpiCommunicator final : public Communicator {
 public:
  // Uses a duplicate of MPI_COMM_WORLD, so that other users of MPI cannot receive Weft's messages.
  MpiCommunicator() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiCommunicator() override {
    MPI_Comm_free(&comm_);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Request Send(absl::Span<const std::byte> bytes, int to, int tag) override {
    return Start(bytes.size(), [&](size_t offset, int count, MPI_Request* request) {
      MPI_Isend(bytes.data() + offset, count, MPI_BYTE, to, tag, comm_, request);
    });
  }

  Request Receive(absl::Span<std::byte> bytes, int from, int tag) override {
    return Start(bytes.size(), [&](size_t offset, int count, MPI_Request* request) {
      MPI_Irecv(bytes.data() + offset, count, MPI_BYTE, from, tag, comm_, request);
    });
  }

  void Progress(std::vector<Request>* ended) override {
    if (parts_.empty()) {  // MPI_Testsome would return at once, though bytes that were sent may still wait in a buffer
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
      return;
    }
    int count = 0;
    ended_parts_.resize(parts_.size());
    MPI_Testsome(static_cast<int>(parts_.size()), parts_.data(), &count, ended_parts_.data(), MPI_STATUSES_IGNORE);
    if (count == 0 || count == MPI_UNDEFINED) return;
    for (int i = 0; i < count; ++i) EndPart(messages_[ended_parts_[i]], ended);
    size_t kept = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == MPI_REQUEST_NULL) continue;  // MPI_Testsome sets requests that have ended to it
      parts_[kept] = parts_[i];
      messages_[kept++] = messages_[i];
    }
    parts_.resize(kept);
    messages_.resize(kept);
  }

  void Abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  // Starts the parts of a message of `size` bytes: `start(offset, count, request)` starts one of them.
  template <class StartPart>
  Request Start(size_t size, const StartPart& start) {
    const Request message = next_++;
    const size_t count = std::max<size_t>(1, (size + kMaxPartBytes - 1) / kMaxPartBytes);
    if (count > 1) parts_left_[message] = count;
    for (size_t i = 0; i < count; ++i) {
      const size_t offset = i * kMaxPartBytes;
      start(offset, static_cast<int>(std::min(kMaxPartBytes, size - offset)), &parts_.emplace_back());
      messages_.push_back(message);
    }
    return message;
  }

  // Appends `message` to `ended` if all its parts have ended.
  void EndPart(Request message, std::vector<Request>* ended) {
    if (const auto left = parts_left_.find(message); left != parts_left_.end()) {
      if (--left->second > 0) return;
      parts_left_.erase(left);
    }
    ended->push_back(message);
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  Request next_ = 0;
  std::vector<MPI_Request> parts_;        // the parts that have not ended
  std::vector<Request> messages_;         // the message of each of parts_
  std::map<Request, size_t> parts_left_;  // of messages with several parts
  std::vector<int> ended_parts_;          // indices into parts_; used by Progress
};

}  // namespace
}  // namespace weft

extern "C" weft::Communicator* WeftConnectMpi(const char** error) {
  int initialized = 0, level = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    *error = "MPI is initialised already: a process can connect only once";
    return nullptr;
  }
  // Only one thread at a time calls MPI, so MPI needs no locks.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) {
    *error = "MPI_Init_thread failed";
    return nullptr;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    *error = "this MPI serves only the thread that initialised it; wanted MPI_THREAD_SERIALIZED";
    return nullptr;
  }
  return new weft::MpiCommunicator;
}
