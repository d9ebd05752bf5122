// The op has a kernel and messages. The kernel copies this rank's rows; then the messages start.
#include "weft/distributed/gather_rows.h"

#include <cstring>
#include <deque>
#include <mutex>

#include "absl/algorithm/container.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/compile/cost.h"

namespace weft {
namespace {

class PieceTables {
 public:
  int32_t Add(const std::vector<WeightPiece>& pieces) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const std::vector<WeightPiece>& other) {
      return absl::c_equal(pieces, other, [](const WeightPiece& a, const WeightPiece& b) {
        return a.owner == b.owner && a.rows == b.rows;
      });
    };
    const auto found = absl::c_find_if(tables_, same);
    const auto index = static_cast<int32_t>(found - tables_.begin());
    if (found == tables_.end()) tables_.push_back(pieces);
    return index;
  }
  const std::vector<WeightPiece>& operator[](int32_t index) {
    const std::lock_guard lock(mutex_);
    return tables_[static_cast<size_t>(index)];
  }

 private:
  std::mutex mutex_;
  std::deque<std::vector<WeightPiece>> tables_;  // elements never change and never move
};

PieceTables& Tables() {
  static auto* const tables = new PieceTables();
  return *tables;
}

// Sends this rank's pieces, which are the inputs, to each other rank, and receives the others in output 0.
std::vector<Message> Messages(const OpArgs& args) {
  const auto a = args.attrs.as<GatherRowsAttrs>();
  const std::vector<WeightPiece>& pieces = Tables()[a.pieces];
  const int64_t cols = a.type.shape.cols();
  std::vector<Message> messages;
  const int whole = static_cast<int>(args.inputs.size());
  for (const WeightPiece& piece : pieces) {
    if (piece.owner == a.rank) continue;
    messages.push_back({.peer = piece.owner,
                        .tag = a.tag,
                        .operand = whole,
                        .begin = piece.rows.begin * cols,
                        .end = piece.rows.end * cols});
  }
  for (int operand = 0; operand < whole; ++operand) {
    for (int peer = 0; peer < a.ranks; ++peer) {
      if (peer == a.rank) continue;
      messages.push_back({.sends = true,
                          .peer = peer,
                          .tag = a.tag,
                          .operand = operand,
                          .end = args.inputs[static_cast<size_t>(operand)].shape.elements()});
    }
  }
  return messages;
}

// Copies this rank's rows to the whole weight.
void CopyOwnRows(const KernelArgs& a, Rect /*tile*/) {
  const auto attrs = a.attrs.as<GatherRowsAttrs>();
  const size_t row_bytes = static_cast<size_t>(attrs.type.shape.cols()) * SizeOf(attrs.type.dtype);
  size_t input = 0;
  for (const WeightPiece& piece : Tables()[attrs.pieces]) {
    if (piece.owner != attrs.rank) continue;
    std::memcpy(a.outputs[0].data + static_cast<size_t>(piece.rows.begin) * row_bytes, a.inputs[input++].data,
                static_cast<size_t>(piece.rows.size()) * row_bytes);
  }
  *a.output<bool>(1) = true;
}

constexpr OpDef kGatherRows = {
    .name = "gather_rows",
    .infer = [](const Attrs& attrs, TypeSpan) -> absl::StatusOr<Types> {
      return Types{attrs.as<GatherRowsAttrs>().type, {kBool, {}}};
    },
    .outputs = 2,
    .messages = Messages,
    .kernels = {CopyOwnRows, CopyOwnRows, CopyOwnRows, CopyOwnRows, CopyOwnRows},
    .no_gradient = "messages are recorded after gradients",
    .cost =
        [](const OpArgs& args) {
          const double bytes = static_cast<double>(args.outputs[0].bytes());
          return Cost{.bytes = (kMessageSeconds + bytes / kNetworkBytesPerSecond) * kBytesPerSecond};
        },
    .attrs = AttrOpsOf<GatherRowsAttrs>(),
};

}  // namespace

int32_t NumberOfPieces(const std::vector<WeightPiece>& pieces) { return Tables().Add(pieces); }

VarList GatherRowsInGraph(Tape* tape, const GatherRowsAttrs& attrs, VarSpan own) {
  return tape->Record(kGatherRows, Attrs::Of(attrs), own);
}

}  // namespace weft
