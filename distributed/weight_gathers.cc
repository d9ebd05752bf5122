// Insert records a program again. It finds the readers of each divided weight, assigns them to gathers, and records
// each gather one gather ahead: before the first reader of the previous gather. So a weight travels while kernels
// compute with the previous one.
#include "weft/distributed/weight_gathers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weft/base/status.h"
#include "weft/core/op.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/run/transport.h"

namespace weft {
namespace {

// A weight is gathered again after a gap in which other divided weights are read at least this often. A shorter gap
// would free the bytes only for a short time, because gathers begin one weight ahead.
constexpr size_t kMinGap = 4;
// The tags of gathers count down from here.
constexpr int kFirstTag = kFirstReservedTag - 2;

constexpr size_t kNone = ~size_t{0};

// A reader of a divided weight. `node`: its position in the program; the number of nodes for a root.
struct Use {
  uint32_t node = 0;
  size_t weight = 0;
  size_t gather = 0;
};

}  // namespace

// The state of one call of Insert.
class WeightGathers::Inserter {
 public:
  Inserter(WeightGathers* gathers, Program* program, std::vector<ValueId>* roots)
      : gathers_(*gathers),
        program_(*program),
        roots_(*roots),
        tape_(*program),
        weight_of_(program->values.size(), kNone),
        now_(program->values.size()),
        own_(gathers->weights_.size()) {}

  absl::Status Run() {
    FindUses();
    Assign(SecondUses());
    WEFT_RETURN_IF_ERROR(PlaceBetweenBuckets());
    size_t next_use = 0;
    for (uint32_t n = 0; n <= program_.nodes.size(); ++n) {
      RecordGathers(n);
      const size_t first = next_use;
      while (next_use < uses_.size() && uses_[next_use].node == n) ++next_use;
      const auto uses = absl::MakeConstSpan(uses_).subspan(first, next_use - first);
      if (n == program_.nodes.size()) {
        for (ValueId& root : roots_) root = Now(root, uses).id;
      } else if (const Node& node = program_.nodes[n]; !IsDerived(node) && !IsFill(node)) {
        Copy(node, uses);
      }
      WEFT_RETURN_IF_ERROR(tape_.status());
    }
    for (size_t g = 0; g < order().size(); ++g) {
      const bool read = absl::c_any_of(uses_, [&](const Use& use) { return use.gather == g; });
      if (!read) roots_.push_back(gathered_[g][1].id);
    }
    program_ = std::move(tape_).TakeProgram();
    return absl::OkStatus();
  }

 private:
  std::vector<size_t>& order() { return gathers_.order_; }

  // Reports whether the outputs of `node` depend on one divided weight only: the weight itself, and views, casts and
  // packed forms of it. Such nodes are recorded again after each gather of the weight, so that their values need not
  // be kept in between.
  bool IsDerived(const Node& node) const { return node.output_count > 0 && weight_of_[node.output(0)] != kNone; }

  // Reports whether `node` computes a value from nothing, such as zeros. It is recorded before its first reader.
  static bool IsFill(const Node& node) {
    return node.inputs.empty() && node.op != &kParameterOp && node.op != &kInputOp && node.op != &kConstantOp;
  }

  void Copy(const Node& node, absl::Span<const Use> uses) {
    VarList inputs;
    for (ValueId in : node.inputs) inputs.push_back(Now(in, uses));
    const VarList outputs = tape_.Copy(program_, node, inputs);
    for (uint32_t i = 0; i < node.output_count; ++i) now_[node.output(i)] = outputs[i];
  }

  void FindUses() {
    absl::flat_hash_map<std::string, size_t> by_name;
    for (size_t i = 0; i < gathers_.weights_.size(); ++i) by_name[gathers_.weights_[i].name] = i;
    const auto add = [&](uint32_t n, ValueId in) {
      const size_t weight = weight_of_[in];
      if (weight == kNone) return;
      for (auto use = uses_.rbegin(); use != uses_.rend() && use->node == n; ++use) {
        if (use->weight == weight) return;
      }
      uses_.push_back({n, weight});
    };
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      const Node& node = program_.nodes[n];
      size_t weight = kNone;
      if (node.op == &kParameterOp) {
        const auto found = by_name.find(program_.parameter(node).name);
        if (found != by_name.end()) weight = found->second;
      } else if (node.inputs.size() == 1 && node.op->writes == 0 && !node.op->random && node.op->messages == nullptr &&
                 node.op != &kGroupOp) {
        weight = weight_of_[node.inputs[0]];
      }
      for (ValueId out : node.outputs()) weight_of_[out] = weight;
      if (weight != kNone) continue;
      for (ValueId in : node.inputs) add(n, in);
    }
    for (ValueId root : roots_) add(static_cast<uint32_t>(program_.nodes.size()), root);
  }

  // Returns, for each weight, the index in uses_ of the first reader after the longest gap; kNone if there is no gap.
  // The length of a gap is the number of uses of other weights.
  std::vector<size_t> SecondUses() {
    const size_t count = gathers_.weights_.size();
    std::vector<size_t> second(count, kNone), last(count, kNone), longest(count, 0);
    for (size_t u = 0; u < uses_.size(); ++u) {
      const size_t weight = uses_[u].weight, before = last[weight];
      last[weight] = u;
      if (before == kNone || u - before - 1 <= longest[weight]) continue;
      longest[weight] = u - before - 1;
      second[weight] = u;
    }
    if (!order().empty()) return second;
    for (size_t i = 0; i < count; ++i) {
      if (longest[i] < kMinGap) second[i] = kNone;
    }
    ChooseOrder(second, last);
    return second;
  }

  // Sets the order of the gathers to that of their first readers. Weights without readers come last.
  void ChooseOrder(const std::vector<size_t>& second, const std::vector<size_t>& last) {
    std::vector<bool> seen(second.size());
    for (size_t u = 0; u < uses_.size(); ++u) {
      const size_t weight = uses_[u].weight;
      if (!seen[weight] || second[weight] == u) order().push_back(weight);
      seen[weight] = true;
    }
    for (size_t i = 0; i < last.size(); ++i) {
      if (last[i] == kNone) order().push_back(i);
    }
  }

  // Assigns each use to a gather, and chooses the node before which each gather is recorded. Gathers keep their order.
  void Assign(const std::vector<size_t>& second) {
    const size_t gathers = order().size();
    std::vector<size_t> first_gather(second.size(), kNone), second_gather(second.size(), kNone);
    for (size_t g = 0; g < gathers; ++g) {
      size_t& first = first_gather[order()[g]];
      (first == kNone ? first : second_gather[order()[g]]) = g;
    }
    std::vector<uint32_t> first_reader(gathers + 1, static_cast<uint32_t>(program_.nodes.size()));
    for (size_t u = uses_.size(); u-- > 0;) {
      Use& use = uses_[u];
      const bool later = second[use.weight] != kNone && u >= second[use.weight] && second_gather[use.weight] != kNone;
      use.gather = later ? second_gather[use.weight] : first_gather[use.weight];
      first_reader[use.gather] = use.node;
    }
    for (size_t g = gathers; g-- > 0;) first_reader[g] = std::min(first_reader[g], first_reader[g + 1]);
    position_.resize(gathers);
    for (size_t g = 0; g < gathers; ++g) position_[g] = first_reader[g == 0 ? 0 : g - 1];
    derived_.resize(gathers);
  }

  // Moves each gather to its place between the buckets of other messages. The first program decides this place: a
  // gather whose position is inside a bucket moves up, before the bucket.
  absl::Status PlaceBetweenBuckets() {
    std::vector<std::pair<uint32_t, uint32_t>>
        buckets;  // of each bucket: its first message, and the node after its last
    for (uint32_t n = 0; n < program_.nodes.size() && gathers_.bucket_of_; ++n) {
      const Node& node = program_.nodes[n];
      if (node.op->messages == nullptr) continue;
      const Types inputs = program_.InputTypes(node), outputs = program_.OutputTypes(node);
      const std::vector<Message> messages = node.op->messages({node.attrs, inputs, outputs});
      if (messages[0].tag > kFirstTag - static_cast<int>(order().size())) {
        return InvalidArgument("the gradients and the weights need more tags of messages between ranks than the ",
                               kFirstTag, " that exist");
      }
      const auto bucket = static_cast<size_t>(gathers_.bucket_of_(messages[0].tag));
      while (buckets.size() <= bucket) buckets.emplace_back(n, n);
      if (bucket + 1 != buckets.size()) return absl::InternalError("the messages of buckets are not in order");
      buckets.back().second = n + 1;
    }
    std::vector<size_t>& before = gathers_.buckets_before_;
    const bool first_program = before.empty();
    for (size_t g = 0; g < position_.size(); ++g) {
      uint32_t& position = position_[g];
      if (first_program) {
        before.push_back(0);
        while (before[g] < buckets.size() && buckets[before[g]].second <= position) ++before[g];
      }
      const uint32_t low = before[g] == 0 || buckets.empty() ? 0 : buckets[before[g] - 1].second;
      const uint32_t high = before[g] < buckets.size() ? buckets[before[g]].first : position;
      if (position < low) return absl::InternalError("a weight is read before its gather has its place");
      position = std::min(position, std::max(low, high));
    }
    return absl::OkStatus();
  }

  // Records the gathers that stand before node `n`.
  void RecordGathers(uint32_t n) {
    for (; gathered_.size() < order().size() && position_[gathered_.size()] == n;) {
      tape_.SetScope(ScopeId{0});
      gathered_.push_back(gathers_.Gather(&tape_, gathered_.size(), &own_));
    }
  }

  // Returns the Var that stands for value `id`. `uses`: those of the reader.
  Var Now(ValueId id, absl::Span<const Use> uses) {
    const size_t weight = weight_of_[id];
    if (weight == kNone) {
      if (!now_[id]) Copy(program_.producer(id), {});
      return now_[id];
    }
    const size_t gather = absl::c_find_if(uses, [&](const Use& use) { return use.weight == weight; })->gather;
    return Derived(id, gather);
  }
  Var Derived(ValueId id, size_t gather) {
    const Node& node = program_.producer(id);
    if (node.op == &kParameterOp) return gathered_[gather][0];
    const auto known = derived_[gather].find(id);
    if (known != derived_[gather].end()) return known->second;
    const VarList outputs = tape_.Copy(program_, node, {Derived(node.inputs[0], gather)});
    for (uint32_t i = 0; i < node.output_count; ++i) derived_[gather][node.output(i)] = outputs[i];
    return derived_[gather][id];
  }

  WeightGathers& gathers_;
  Program& program_;
  std::vector<ValueId>& roots_;
  Tape tape_;                       // of the new program
  std::vector<size_t> weight_of_;   // by value: the divided weight that the value is or derives from, or kNone
  std::vector<Var> now_;            // by value of the old program
  std::vector<Use> uses_;           // in the order of nodes
  std::vector<uint32_t> position_;  // by gather: the node before which it is recorded
  std::vector<VarList> gathered_;   // by gather
  std::vector<absl::flat_hash_map<ValueId, Var>> derived_;  // by gather
  std::vector<VarList> own_;                                // by weight: this rank's pieces
};

WeightGathers::WeightGathers(std::vector<DividedWeight> weights, int rank, int ranks,
                             std::function<int(int tag)> bucket_of)
    : weights_(std::move(weights)), rank_(rank), ranks_(ranks), bucket_of_(std::move(bucket_of)) {}

absl::Status WeightGathers::Insert(Program* program, std::vector<ValueId>* roots) {
  return weights_.empty() ? absl::OkStatus() : Inserter(this, program, roots).Run();
}

VarList WeightGathers::Record(Tape* tape) const {
  std::vector<VarList> own(weights_.size());
  VarList ends;
  for (size_t g = 0; g < order_.size(); ++g) ends.push_back(Gather(tape, g, &own)[1]);
  return ends;
}

VarList WeightGathers::Gather(Tape* tape, size_t index, std::vector<VarList>* own) const {
  const DividedWeight& weight = weights_[order_[index]];
  VarList& pieces = (*own)[order_[index]];
  const bool recorded = !pieces.empty();
  for (const auto& [owner, rows] : weight.pieces) {
    if (owner != rank_ || recorded) continue;
    const TensorType type = {weight.type.dtype, {rows.size(), weight.type.shape.cols()}};
    pieces.push_back(tape->State(PieceName(weight.name, rows), type, Zeros(), ParameterKind::kWeight));
  }
  const GatherRowsAttrs attrs = {.type = weight.type,
                                 .pieces = NumberOfPieces(weight.pieces),
                                 .rank = rank_,
                                 .ranks = ranks_,
                                 .tag = kFirstTag - static_cast<int32_t>(index)};
  if (attrs.tag < 0) {
    tape->Fail(InvalidArgument("the weights need ", order_.size(), " tags of messages between ranks, but ",
                               kFirstTag + 1, " exist"));
  }
  return GatherRowsInGraph(tape, attrs, pieces);
}

void GatherRows(const Ranks& ranks, const DividedWeight& weight, const Parameters& parameters, GatherTo to,
                std::byte* whole) {
  const auto receives = [&](int rank) { return to == GatherTo::kAll || rank == 0; };
  const size_t row_bytes = static_cast<size_t>(weight.type.shape.cols()) * SizeOf(weight.type.dtype);
  Transport* const transport = ranks.transport();
  PendingMessages messages;
  for (const WeightPiece& piece : weight.pieces) {
    const size_t begin = static_cast<size_t>(piece.rows.begin) * row_bytes;
    const size_t bytes = static_cast<size_t>(piece.rows.size()) * row_bytes;
    if (piece.owner != ranks.rank()) {
      if (receives(ranks.rank())) transport->Receive({whole + begin, bytes}, piece.owner, kRowsTag, messages.Add());
      continue;
    }
    const Tensor mine = *parameters.Find(PieceName(weight.name, piece.rows));
    if (receives(ranks.rank())) std::memcpy(whole + begin, mine.data, bytes);
    for (int peer = 0; peer < ranks.size(); ++peer) {
      if (peer != ranks.rank() && receives(peer)) transport->Send({mine.data, bytes}, peer, kRowsTag, messages.Add());
    }
  }
  messages.Wait();
}

}  // namespace weft
