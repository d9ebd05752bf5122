// OpDef::messages gives the runner the messages to send and to receive. Ops that only have messages have no kernel.
#include "weft/distributed/message_ops.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/distributed/communicator.h"
#include "weft/graph/compile/cost.h"

namespace weft {
namespace {

struct MessageAttrs {
  IndexRange range;
  Route route;
  auto Fields() const {
    return std::tuple{AttrField{"begin", range.begin}, AttrField{"end", range.end}, AttrField{"peer", route.peer},
                      AttrField{"tag", route.tag}};
  }
};

absl::Status CheckRange(const char* op, const TensorType& type, IndexRange range, TypeSpan in) {
  if (0 <= range.begin && range.begin <= range.end && range.end <= type.shape.elements()) return absl::OkStatus();
  return ShapeError(op, absl::StrCat("elements ", range.begin, " to ", range.end, " of ", ToString(type)), in);
}

// Returns the message of a node, whose bytes are elements `begin` .. `end` - 1 of an operand.
std::vector<Message> OneMessage(const OpArgs& args, bool sends, int operand, int64_t begin) {
  const MessageAttrs a = args.attrs.as<MessageAttrs>();
  return {{.sends = sends,
           .peer = a.route.peer,
           .tag = a.route.tag,
           .operand = operand,
           .begin = begin,
           .end = begin + a.range.size()}};
}

Cost CostOfMessage(double bytes) {
  return {.bytes = (kMessageSeconds + bytes / kNetworkBytesPerSecond) * kBytesPerSecond};
}

Cost MessageCost(const OpArgs& args) {
  const int64_t elements = args.attrs.as<MessageAttrs>().range.size();
  return CostOfMessage(static_cast<double>(elements) * static_cast<double>(SizeOf(args.inputs[0].dtype)));
}

// Returns a rectangle of a value with `shape` that covers its elements begin .. end - 1.
Rect Covering(const Shape& shape, int64_t begin, int64_t end) {
  const int64_t cols = std::max<int64_t>(shape.cols(), 1), first = begin / cols, last = (end + cols - 1) / cols;
  if (last - first > 1) return {first, last, 0, cols};
  return {first, std::max(last, first), begin - first * cols, end - first * cols};
}

constexpr OpDef kSend = {
    .name = "send",
    .infer = [](const Attrs& attrs, TypeSpan in) -> absl::StatusOr<Types> {
      WEFT_RETURN_IF_ERROR(CheckRange("send", in[0], attrs.as<MessageAttrs>().range, in));
      return Types{{kBool, {}}};
    },
    .messages = [](const OpArgs& args) { return OneMessage(args, true, 0, args.attrs.as<MessageAttrs>().range.begin); },
    .no_gradient = "messages are recorded after gradients",
    .cost = MessageCost,
    .attrs = AttrOpsOf<MessageAttrs>(),
};

constexpr OpDef kReceive = {
    .name = "receive",
    .infer = [](const Attrs& attrs, TypeSpan in) -> absl::StatusOr<Types> {
      const int64_t elements = attrs.as<MessageAttrs>().range.size();
      if (elements < 0) return ShapeError("receive", absl::StrCat(elements, " elements"), in);
      return Types{{in[0].dtype, {elements}}};
    },
    .messages = [](const OpArgs& args) { return OneMessage(args, false, 1, 0); },
    .no_gradient = "messages are recorded after gradients",
    .cost = MessageCost,
    .attrs = AttrOpsOf<MessageAttrs>(),
};

constexpr OpDef kReceiveInto = {
    .name = "receive_into",
    .infer = [](const Attrs& attrs, TypeSpan in) -> absl::StatusOr<Types> {
      WEFT_RETURN_IF_ERROR(CheckRange("receive_into", in[0], attrs.as<MessageAttrs>().range, in));
      return Types{in[0]};
    },
    .messages =
        [](const OpArgs& args) { return OneMessage(args, false, 1, args.attrs.as<MessageAttrs>().range.begin); },
    .writes = 1,
    .no_gradient = "a gradient through a write is an error",
    .cost = MessageCost,
    .attrs = AttrOpsOf<MessageAttrs>(),
};

struct AddRangesAttrs {
  int64_t x_begin = 0, y_begin = 0, elements = 0;
  auto Fields() const {
    return std::tuple{AttrField{"x_begin", x_begin}, AttrField{"y_begin", y_begin}, AttrField{"elements", elements}};
  }
};

template <class T>
void AddKernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const AddRangesAttrs attrs = a.attrs.as<AddRangesAttrs>();
  const T* const x = a.input<T>(0) + attrs.x_begin;
  const T* const y = a.input<T>(1) + attrs.y_begin;
  T* const out = a.output<T>(0);
  for (int64_t i = tile.col_begin; i < tile.col_end; ++i) {
    out[i] = static_cast<T>(static_cast<C>(x[i]) + static_cast<C>(y[i]));
  }
}

constexpr OpDef kAddRanges = {
    .name = "add_ranges",
    .infer = [](const Attrs& attrs, TypeSpan in) -> absl::StatusOr<Types> {
      const AddRangesAttrs a = attrs.as<AddRangesAttrs>();
      if (in[0].dtype != in[1].dtype) return ShapeError("add_ranges", "x and y must have one dtype", in);
      WEFT_RETURN_IF_ERROR(CheckRange("add_ranges", in[0], {a.x_begin, a.x_begin + a.elements}, in));
      WEFT_RETURN_IF_ERROR(CheckRange("add_ranges", in[1], {a.y_begin, a.y_begin + a.elements}, in));
      return Types{{in[0].dtype, {a.elements}}};
    },
    .kernels = {AddKernel<float>, AddKernel<double>, AddKernel<BF16>},
    .cut = Cut::kBoth,
    .access =
        [](const OpArgs& args, int operand, Rect tile) {
          if (operand == 2) return tile;
          const AddRangesAttrs a = args.attrs.as<AddRangesAttrs>();
          const int64_t begin = operand == 0 ? a.x_begin : a.y_begin;
          return Covering(args.inputs[operand].shape, begin + tile.col_begin, begin + tile.col_end);
        },
    .in_place = 1,
    .no_gradient = "ranges are added after gradients",
    .attrs = AttrOpsOf<AddRangesAttrs>(),
};

struct WriteRangeAttrs {
  int64_t begin = 0;
  auto Fields() const { return std::tuple{AttrField{"begin", begin}}; }
};

void WriteRangeKernel(const KernelArgs& a, Rect tile) {
  const size_t size = SizeOf(a.inputs[1].type.dtype);
  const int64_t cols = a.input_shape(1).cols(), begin = a.attrs.as<WriteRangeAttrs>().begin;
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const int64_t at = row * cols + tile.col_begin;
    std::memcpy(a.outputs[0].data + static_cast<size_t>(begin + at) * size,
                a.inputs[1].data + static_cast<size_t>(at) * size, static_cast<size_t>(tile.cols()) * size);
  }
}

// The state counts as read and written as a whole. So a later reader waits for all earlier writes, although each write
// names only the previous one.
constexpr OpDef kWriteRange = {
    .name = "write_range",
    .infer = [](const Attrs& attrs, TypeSpan in) -> absl::StatusOr<Types> {
      const int64_t begin = attrs.as<WriteRangeAttrs>().begin;
      if (in[0].dtype != in[1].dtype) return ShapeError("write_range", "state and values must have one dtype", in);
      WEFT_RETURN_IF_ERROR(CheckRange("write_range", in[0], {begin, begin + in[1].shape.elements()}, in));
      return Types{in[0]};
    },
    .kernels = {WriteRangeKernel, WriteRangeKernel, WriteRangeKernel, WriteRangeKernel, WriteRangeKernel},
    .domain = 1,
    .cut = Cut::kBoth,
    .access = [](const OpArgs& args, int operand,
                 Rect tile) { return operand == 1 ? tile : WholeRect(args.inputs[0].shape); },
    .writes = 1,
    .no_gradient = "a gradient through a write is an error",
    .attrs = AttrOpsOf<WriteRangeAttrs>(),
};

// The pieces of divided weights, by NumberOfPieces.
class PieceTables {
 public:
  int32_t Add(const std::vector<WeightPiece>& pieces) {
    const std::lock_guard lock(mutex_);
    const auto found = absl::c_find(tables_, pieces);
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
std::vector<Message> GatherMessages(const OpArgs& args) {
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

// Copies this rank's rows to the whole weight. The messages start afterwards.
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
    .messages = GatherMessages,
    .kernels = {CopyOwnRows, CopyOwnRows, CopyOwnRows, CopyOwnRows, CopyOwnRows},
    .no_gradient = "messages are recorded after gradients",
    .cost = [](const OpArgs& args) { return CostOfMessage(static_cast<double>(args.outputs[0].bytes())); },
    .attrs = AttrOpsOf<GatherRowsAttrs>(),
};

}  // namespace

Var Send(Var x, IndexRange range, Route route) { return Record(kSend, {x}, Attrs::Of(MessageAttrs{range, route})); }

Var Receive(Var after, int64_t elements, Route route) {
  return Record(kReceive, {after}, Attrs::Of(MessageAttrs{{0, elements}, route}));
}

Var ReceiveInto(Var state, IndexRange range, Route route) {
  return Record(kReceiveInto, {state}, Attrs::Of(MessageAttrs{range, route}));
}

Var AddRanges(Var x, int64_t x_begin, Var y, int64_t y_begin, int64_t elements) {
  return Record(kAddRanges, {x, y}, Attrs::Of(AddRangesAttrs{x_begin, y_begin, elements}));
}

Var WriteRange(Var state, Var values, int64_t begin) {
  return Record(kWriteRange, {state, values}, Attrs::Of(WriteRangeAttrs{begin}));
}

Var AllGather(Var state, Var mine, absl::Span<const IndexRange> parts, int rank, VarList* updates) {
  const auto size = static_cast<int>(parts.size());
  if (mine) {
    state = WriteRange(state, mine, parts[static_cast<size_t>(rank)].begin);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) updates->push_back(Send(mine, {0, mine.shape().elements()}, {peer, kAllGatherTag}));
    }
  }
  for (int peer = 0; peer < size; ++peer) {
    const IndexRange part = parts[static_cast<size_t>(peer)];
    if (peer != rank && part.size() > 0) state = ReceiveInto(state, part, {peer, kAllGatherTag});
  }
  return state;
}

int32_t NumberOfPieces(const std::vector<WeightPiece>& pieces) { return Tables().Add(pieces); }

VarList GatherRowsInGraph(Tape* tape, const GatherRowsAttrs& attrs, VarSpan own) {
  return tape->Record(kGatherRows, Attrs::Of(attrs), own);
}

}  // namespace weft
