#include "weft/distributed/ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "weft/base/checksum.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/piece_name.h"

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
    PendingMessages messages;
    transport->Send(bytes.subspan(0, begins[count]), (rank + size - distance) % size, kRanksTag, messages.Add());
    transport->Receive(bytes.subspan(begins[distance], begins[distance + count] - begins[distance]),
                       (rank + distance) % size, kRanksTag, messages.Add());
    messages.Wait();
  }
}

// The report that a rank sends to all others. Encoded, it is a letter for `flag`, the number of the status code, a
// newline and a text. The text is the message of the error or, if the status is OK, `result`.
struct Opinion {
  bool flag = false;
  absl::Status status;
  std::string result;  // empty if `status` is an error
};

std::string Encode(const Opinion& opinion) {
  const absl::string_view text = opinion.status.ok() ? absl::string_view(opinion.result) : opinion.status.message();
  return absl::StrCat(opinion.flag ? "y" : "n", static_cast<int>(opinion.status.code()), "\n", text);
}

Opinion Decode(absl::string_view message) {
  const size_t newline = message.find('\n');
  int code = 0;
  WEFT_CHECK(newline != message.npos && absl::SimpleAtoi(message.substr(1, newline - 1), &code));
  const absl::string_view text = message.substr(newline + 1);
  Opinion opinion = {.flag = message[0] == 'y', .status = absl::Status(static_cast<absl::StatusCode>(code), text)};
  if (opinion.status.ok()) opinion.result = std::string(text);
  return opinion;
}

// Returns a line "NAME CHECKSUM" for each parameter. Leaves out pieces, because only one rank has them.
std::string ChecksumLines(const Parameters& parameters) {
  std::string lines;
  for (const std::string& name : parameters.Names(Parameters::kAll)) {
    const absl::StatusOr<Tensor> tensor = parameters.Find(name);
    if (!tensor.ok() || ParsePiece(name)) continue;
    const absl::string_view bytes(reinterpret_cast<const char*>(tensor->data), tensor->type.bytes());
    absl::StrAppend(&lines, name, " ", Checksum(bytes), "\n");
  }
  return lines;
}

// Returns "rank 1", "ranks 0 and 1", "ranks 0, 2 and 3".
std::string ListRanks(std::vector<int> ranks) {
  const int last = ranks.back();
  ranks.pop_back();
  if (ranks.empty()) return absl::StrCat("rank ", last);
  return absl::StrCat("ranks ", absl::StrJoin(ranks, ", "), " and ", last);
}

// Returns the name in the first line that is not the same in all texts.
std::string FirstDifference(const std::vector<std::string>& texts) {
  const std::string* longest = texts.data();
  size_t same = longest->size();  // number of bytes with which all texts begin
  for (const std::string& text : texts) {
    same = std::min<size_t>(same, absl::c_mismatch(texts[0], text).first - texts[0].begin());
    if (text.size() > longest->size()) longest = &text;
  }
  const size_t before = same == 0 ? std::string::npos : longest->rfind('\n', same - 1);
  const std::string line = longest->substr(before + 1, longest->find('\n', same) - before - 1);
  return line.substr(0, line.rfind(' '));
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

absl::StatusOr<std::string> ResultOfFirst(const Ranks& ranks, absl::FunctionRef<absl::StatusOr<std::string>()> work) {
  if (ranks.size() == 1) return work();
  std::string mine;
  if (ranks.first()) {
    absl::StatusOr<std::string> result = work();
    mine = Encode({.status = result.status(), .result = result.ok() ? *std::move(result) : ""});
  }
  Opinion first = Decode(ranks.AllGather(mine)[0]);
  if (!first.status.ok()) return first.status;
  return std::move(first.result);
}

absl::Status OnFirst(const Ranks& ranks, absl::FunctionRef<absl::Status()> work) {
  return ResultOfFirst(ranks,
                       [&]() -> absl::StatusOr<std::string> {
                         WEFT_RETURN_IF_ERROR(work());
                         return "";
                       })
      .status();
}

absl::StatusOr<bool> AnyRank(const Ranks& ranks, const absl::Status& status, bool flag) {
  if (ranks.size() == 1) {
    if (!status.ok()) return status;
    return flag;
  }
  std::vector<Opinion> opinions;  // by rank
  for (const std::string& message : ranks.AllGather(Encode({.flag = flag, .status = status}))) {
    opinions.push_back(Decode(message));
  }
  const auto failed = absl::c_find_if(opinions, [](const Opinion& opinion) { return !opinion.status.ok(); });
  if (failed == opinions.end()) return absl::c_any_of(opinions, [](const Opinion& opinion) { return opinion.flag; });
  const absl::Status error = failed->status;
  const bool same = absl::c_all_of(opinions, [&](const Opinion& opinion) { return opinion.status == error; });
  return same ? error : Annotate(error, absl::StrCat("rank ", failed - opinions.begin()));
}

absl::Status AllAgree(const Ranks& ranks, const absl::Status& status) { return AnyRank(ranks, status, false).status(); }

absl::Status PrintedByFirst(const Ranks& ranks, const absl::Status& status) {
  return ranks.first() ? status : absl::Status(status.code(), "");
}

// One checksum of all parameters is compared first. The ranks exchange a checksum of each parameter only if it differs.
absl::Status CheckSameParameters(const Ranks& ranks, const Parameters& parameters, int64_t step) {
  if (ranks.size() == 1) return absl::OkStatus();
  const std::string mine = ChecksumLines(parameters);
  const std::vector<std::string> checksums = ranks.AllGather(Checksum(mine));
  if (absl::c_count(checksums, checksums[0]) == ranks.size()) return absl::OkStatus();
  const std::vector<std::string> lines = ranks.AllGather(mine);
  const auto is_majority = [&](const std::string& text) { return absl::c_count(lines, text) * 2 > ranks.size(); };
  const auto majority = absl::c_find_if(lines, is_majority);
  const bool none = majority == lines.end();
  std::vector<int> other;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    if (none || lines[rank] != *majority) other.push_back(static_cast<int>(rank));
  }
  const std::string differ = none ? " differ from each other" : other.size() == 1 ? " differs" : " differ";
  return absl::DataLossError(absl::StrCat("after step ", step, " ", ListRanks(other), differ,
                                          none ? "" : " from the other ranks", " in '", FirstDifference(lines),
                                          "': all ranks must have the same weights and optimizer state"));
}

Transport::Done PendingMessages::Add() {
  const std::lock_guard lock(mutex_);
  ++pending_;
  const auto end = [](void* object, uint32_t) {
    auto* const messages = static_cast<PendingMessages*>(object);
    // Notifies under the mutex: once it is free, Wait may return, and its caller may destroy the object.
    const std::lock_guard lock(messages->mutex_);
    --messages->pending_;
    messages->ended_.notify_all();
  };
  return {.call = end, .object = this};
}

void PendingMessages::Wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return pending_ == 0; });
}

}  // namespace weft
