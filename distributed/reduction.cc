// The planner visits the sums of the tree, from small to large, and keeps track of the rank that has each piece of each
// value. It plans all ranks at once, because a receiver must know the pieces that the sender chooses. A message is
// appended to the plans of its sender and of its receiver at the same moment. So all plans have one common order, and a
// receive waits only for actions that are earlier in this order.
#include "weft/distributed/reduction.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// One copy of a piece.
struct Copy {
  int rank = 0;
  ReductionSource source;
  bool operator==(const Copy&) const = default;
};
using Copies = std::vector<Copy>;

struct Node {
  IndexRange range;
  int first = 0, last = 0;    // the ranks that own some of its micro-batches
  int left = -1, right = -1;  // indices of nodes; -1: a block
  Copies copies;              // kDoubling: on ranks first .. last. kScatter: of pieces 0 .. pieces - 1

  int group() const { return last - first + 1; }
};

// Returns the number of additions on the longest path from one micro-batch to a sum of `size` micro-batches.
int Level(int64_t size) { return std::bit_width(static_cast<uint64_t>(size - 1)); }

// Calls `run(begin, end)` for each longest run of indices whose keys are equal.
template <class Keys>
void ForEachRun(const Keys& keys, absl::FunctionRef<void(int, int)> run) {
  const int size = static_cast<int>(keys.size());
  for (int begin = 0, end; begin < size; begin = end) {
    for (end = begin + 1; end < size && keys[end] == keys[begin];) ++end;
    run(begin, end);
  }
}

class Planner {
 public:
  Planner(ReductionKind kind, absl::Span<const IndexRange> ranges)
      : doubling_(kind == ReductionKind::kDoubling),
        ranks_(static_cast<int>(ranges.size())),
        pieces_(doubling_ ? 1 : ranks_),
        ranges_(ranges),
        plans_(ranks_) {}

  std::vector<ReductionPlan> Plan() && {
    for (ReductionPlan& plan : plans_) plan.pieces = pieces_;
    const int root = AddNode({0, ranges_.back().end}, 0, ranks_ - 1);
    std::vector<int> sums;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      if (nodes_[i].left >= 0) sums.push_back(i);
    }
    std::sort(sums.begin(), sums.end(), [&](int a, int b) {
      const IndexRange x = nodes_[a].range, y = nodes_[b].range;
      return std::pair(Level(x.size()), x.begin) < std::pair(Level(y.size()), y.begin);
    });
    for (const int sum : sums) PlanSum(&nodes_[sum]);
    if (doubling_ || ranks_ == 1) {
      for (const Copy& copy : nodes_[root].copies) plans_[copy.rank].result.push_back(copy.source);
    } else {
      PlanGather(nodes_[root]);
    }
    return std::move(plans_);
  }

 private:
  // Adds the node of `range` and the nodes below it, down to blocks. Returns the index of the node. Its ranks are among
  // `first` .. `last`.
  int AddNode(IndexRange range, int first, int last) {
    while (ranges_[first].end <= range.begin) ++first;
    while (ranges_[last].begin >= range.end) --last;
    Node node = {.range = range, .first = first, .last = last};
    if (first == last) {
      std::vector<IndexRange>& blocks = plans_[first].blocks;
      const int block = static_cast<int>(blocks.size());
      blocks.push_back(range);
      node.copies.assign(pieces_, {first, {ReductionSource::kBlock, block}});
    } else {
      const int64_t cut = range.begin + static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(range.size())) / 2);
      node.left = AddNode({range.begin, cut}, first, last);
      node.right = AddNode({cut, range.end}, first, last);
    }
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  // A sum has one item for each computed piece. kDoubling: item i is the value on rank first + i. kScatter: piece i.
  int Piece(int item) const { return doubling_ ? 0 : item; }

  void PlanSum(Node* sum) {
    const Node &left = nodes_[sum->left], &right = nodes_[sum->right];
    std::vector<int> owners;
    if (doubling_) {
      for (int rank = sum->first; rank <= sum->last; ++rank) owners.push_back(rank);
    } else {
      owners = PieceOwners(left, right);
    }
    const Copies lefts = Bring(left, owners), rights = Bring(right, owners);
    std::vector<std::pair<Copy, Copy>> operands;
    for (size_t i = 0; i < owners.size(); ++i) operands.emplace_back(lefts[i], rights[i]);
    ForEachRun(operands, [&](int begin, int end) {
      const auto& [l, r] = operands[begin];
      const ReductionSource source = Append(l.rank, {.kind = ReductionAction::kAdd,
                                                     .value = sum->range,
                                                     .piece_begin = Piece(begin),
                                                     .piece_end = Piece(end - 1) + 1,
                                                     .sources = {l.source, r.source}});
      sum->copies.insert(sum->copies.end(), end - begin, {l.rank, source});
    });
  }

  // Chooses the rank of each piece of a sum: one of the two that have its operands. A piece whose operands are on one
  // rank stays there. Every run of other pieces is divided between its two ranks such that both ranks own equally many
  // pieces of the sum, if possible. For powers of two, this halves the run.
  std::vector<int> PieceOwners(const Node& left, const Node& right) const {
    std::vector<std::pair<int, int>> pairs;
    std::vector<int> owned(ranks_);
    for (int i = 0; i < pieces_; ++i) {
      pairs.emplace_back(left.copies[i].rank, right.copies[i].rank);
      if (pairs[i].first == pairs[i].second) ++owned[pairs[i].first];
    }
    std::vector<int> owners;
    ForEachRun(pairs, [&](int begin, int end) {
      const auto [l, r] = pairs[begin];
      const int size = end - begin;
      const int lefts = l == r ? size : std::clamp((owned[r] + size - owned[l] + 1) / 2, 0, size);
      owners.insert(owners.end(), lefts, l);
      owners.insert(owners.end(), size - lefts, r);
      if (l == r) return;
      owned[l] += lefts;
      owned[r] += size - lefts;
    });
    return owners;
  }

  // Returns copies of an operand on the ranks that need it, one for each item of a sum. Ranks without it receive it.
  Copies Bring(const Node& operand, absl::Span<const int> owners) {
    struct Move {
      Copy from;
      int to = 0;
      bool operator==(const Move&) const = default;
    };
    std::vector<Move> moves;
    for (int i = 0; i < static_cast<int>(owners.size()); ++i) {
      int copy = i;  // kScatter: the only copy of the piece
      if (doubling_) {
        // The ranks that have the operand take turns as senders, so that each of them sends equally often.
        const bool has = owners[i] >= operand.first && owners[i] <= operand.last;
        copy = has ? owners[i] - operand.first : i % operand.group();
      }
      moves.push_back({operand.copies[copy], owners[i]});
    }
    Copies brought;
    ForEachRun(moves, [&](int begin, int end) {
      const auto& [from, to] = moves[begin];
      ReductionSource source = from.source;
      if (from.rank != to) {
        source = Message(from.rank, to,
                         {.value = operand.range,
                          .piece_begin = Piece(begin),
                          .piece_end = Piece(end - 1) + 1,
                          .sources = {source}});
      }
      brought.insert(brought.end(), end - begin, {to, source});
    });
    return brought;
  }

  // Consecutive ranks that together have one copy of each piece of the total.
  struct RankRange {
    int first = 0, size = 0;
    Copies copies;  // of pieces 0 .. pieces - 1

    bool has(int rank) const { return rank >= first && rank < first + size; }
  };

  // Gives every rank all pieces of the total. Halves the ranks again and again, down to ranges of one rank.
  void PlanGather(const Node& root) {
    std::vector<RankRange> ranges = {{0, ranks_, root.copies}};
    while (!ranges.empty()) {
      std::vector<RankRange> halves;
      for (const RankRange& range : ranges) {
        if (range.size == 1) {
          for (const Copy& copy : range.copies) plans_[range.first].result.push_back(copy.source);
          continue;
        }
        const int left = (range.size + 1) / 2;
        halves.push_back({range.first, left});
        FillHalf(root.range, range, &halves.back());
        halves.push_back({range.first + left, range.size - left});
        FillHalf(root.range, range, &halves.back());
      }
      ranges = std::move(halves);
    }
  }

  // Sends to the ranks of `half` the pieces of `total` that only the other ranks of `all` have. Sets the half's copies.
  void FillHalf(IndexRange total, const RankRange& all, RankRange* half) {
    std::vector<int> owned(half->size);
    for (const Copy& copy : all.copies) {
      if (half->has(copy.rank)) ++owned[copy.rank - half->first];
    }
    // The receiver has the same position in its half as the sender in the other half. If this receiver already has its
    // share, the rank of the half with the fewest pieces receives the piece instead.
    const int share = (pieces_ + half->size - 1) / half->size;
    const int other_first = half->first == all.first ? half->first + half->size : all.first;
    std::vector<std::pair<int, int>> moves;  // of each piece: from, to
    for (const Copy& copy : all.copies) {
      int to = copy.rank;
      if (!half->has(to)) {
        int place = (to - other_first) * half->size / (all.size - half->size);
        if (owned[place] >= share) {
          place = static_cast<int>(std::min_element(owned.begin(), owned.end()) - owned.begin());
        }
        ++owned[place];
        to = half->first + place;
      }
      moves.emplace_back(copy.rank, to);
    }
    ForEachRun(moves, [&](int begin, int end) {
      const auto [from, to] = moves[begin];
      if (from == to) {
        half->copies.insert(half->copies.end(), all.copies.begin() + begin, all.copies.begin() + end);
        return;
      }
      ReductionAction message = {
          .phase = ReductionAction::kGather, .value = total, .piece_begin = begin, .piece_end = end};
      for (int i = begin; i < end; ++i) {
        if (i == begin || !(all.copies[i] == all.copies[i - 1])) message.sources.push_back(all.copies[i].source);
      }
      half->copies.insert(half->copies.end(), end - begin, {to, Message(from, to, std::move(message))});
    });
  }

  // Appends a send and its receive. `message` lacks only kinds, peers and the tag. Returns the source on the receiver.
  ReductionSource Message(int from, int to, ReductionAction message) {
    message.tag = tags_[{from, to}]++;
    ReductionAction receive = message;
    receive.sources.clear();
    message.kind = ReductionAction::kSend;
    message.peer = to;
    Append(from, std::move(message));
    receive.kind = ReductionAction::kReceive;
    receive.peer = from;
    return Append(to, std::move(receive));
  }

  ReductionSource Append(int rank, ReductionAction action) {
    std::vector<ReductionAction>& actions = plans_[rank].actions;
    actions.push_back(std::move(action));
    return {ReductionSource::kAction, static_cast<int>(actions.size()) - 1};
  }

  const bool doubling_;
  const int ranks_, pieces_;
  const absl::Span<const IndexRange> ranges_;
  std::vector<Node> nodes_;
  std::vector<ReductionPlan> plans_;
  absl::flat_hash_map<std::pair<int, int>, int> tags_;  // number of messages so far, by sender and receiver
};

}  // namespace

absl::StatusOr<std::vector<ReductionPlan>> PlanReduction(ReductionKind kind, absl::Span<const IndexRange> ranges) {
  if (ranges.empty()) return InvalidArgument("a reduction needs at least one rank, got none");
  int64_t begin = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].begin != begin || ranges[i].size() < 1) {
      return InvalidArgument("rank ", i, " of ", ranges.size(), " has the micro-batches from ", ranges[i].begin, " to ",
                             ranges[i].end, ", but wanted at least one, from ", begin);
    }
    begin = ranges[i].end;
  }
  return Planner(kind, ranges).Plan();
}

IndexRange PieceRange(int64_t elements, int pieces, int piece, int64_t quantum) {
  const int64_t quanta = (elements + quantum - 1) / quantum;
  const auto begin = [&](int64_t i) { return std::min(elements, quanta * i / pieces * quantum); };
  return {begin(piece), begin(piece + 1)};
}

}  // namespace weft
