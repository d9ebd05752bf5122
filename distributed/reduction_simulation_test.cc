// Runs the plans of all ranks with sums as text, such as "((0+1)+2)", and compares them with the tree's definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/distributed/reduction.h"

namespace weft {
namespace {

// Returns an upper bound: all tags of a plan are below it. Two ranks have at most one sum of each level in common.
// There, one rank sends each piece to the other at most once. In the second phase, too, each piece is sent at most
// once.
int64_t ReductionTagLimit(ReductionKind kind, int64_t ranks, int64_t micro_batches) {
  const int64_t levels = std::bit_width(static_cast<uint64_t>(micro_batches - 1));
  return kind == ReductionKind::kDoubling ? levels : ranks * (levels + 1);
}

using Action = ReductionAction;
using Plans = std::vector<ReductionPlan>;

constexpr ReductionKind kKinds[] = {ReductionKind::kDoubling, ReductionKind::kScatter};

// The ranges of train/step/task.h: they differ by at most one micro-batch, and the larger ones come first.
std::vector<IndexRange> EvenRanges(int64_t ranks, int64_t micro_batches) {
  std::vector<IndexRange> ranges;
  const auto begin = [&](int64_t r) { return r * (micro_batches / ranks) + std::min(r, micro_batches % ranks); };
  for (int64_t r = 0; r < ranks; ++r) ranges.push_back({begin(r), begin(r + 1)});
  return ranges;
}

Plans PlanOf(ReductionKind kind, const std::vector<IndexRange>& ranges) {
  absl::StatusOr<Plans> plans = PlanReduction(kind, ranges);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *std::move(plans);
}

// Node `k` of level `level` of the tree, by its definition.
IndexRange NodeRange(int level, int64_t k, int64_t micro_batches) {
  return {k << level, std::min((k + 1) << level, micro_batches)};
}
std::string NodeSum(int level, int64_t k, int64_t micro_batches) {
  if (level == 0) return absl::StrCat(k);
  const std::string left = NodeSum(level - 1, 2 * k, micro_batches);
  if (NodeRange(level - 1, 2 * k + 1, micro_batches).size() <= 0) return left;
  return absl::StrCat("(", left, "+", NodeSum(level - 1, 2 * k + 1, micro_batches), ")");
}
int TopLevel(int64_t micro_batches) {
  int level = 0;
  while ((int64_t{1} << level) < micro_batches) ++level;
  return level;
}

// The blocks of a rank, by their definition: nodes inside `range` with a parent that is not.
std::map<int64_t, std::pair<IndexRange, std::string>> BlocksOf(IndexRange range, int64_t micro_batches) {
  std::map<int64_t, std::pair<IndexRange, std::string>> blocks;
  const auto inside = [&](IndexRange node) { return node.begin >= range.begin && node.end <= range.end; };
  const int top = TopLevel(micro_batches);
  for (int level = 0; level <= top; ++level) {
    for (int64_t k = 0; (k << level) < micro_batches; ++k) {
      const IndexRange node = NodeRange(level, k, micro_batches);
      if (!inside(node)) continue;
      if (level == top || !inside(NodeRange(level + 1, k / 2, micro_batches))) {
        blocks[node.begin] = {node, NodeSum(level, k, micro_batches)};
      }
    }
  }
  return blocks;
}

// Pieces `begin` .. end - 1 of a value, each as the sum that it is, such as "((0+1)+2)".
struct Pieces {
  IndexRange value;
  int begin = 0, end = 0;
  std::vector<std::string> sums;
};

// Runs the plans of all ranks, each in the order of its actions. Receives wait; sends don't.
class Simulation {
 public:
  Simulation(const Plans& plans, const std::vector<IndexRange>& ranges)
      : plans_(plans), ranges_(ranges), outputs_(plans.size()), blocks_(plans.size()), totals_(plans.size()) {}

  void Run(int64_t tag_limit) {
    const int64_t micro_batches = ranges_.back().end;
    for (size_t r = 0; r < plans_.size(); ++r) {
      std::vector<IndexRange> blocks;
      for (const auto& [begin, block] : BlocksOf(ranges_[r], micro_batches)) {
        const auto& [range, sum] = block;
        blocks.push_back(range);
        blocks_[r].push_back({range, 0, plans_[r].pieces, std::vector<std::string>(plans_[r].pieces, sum)});
      }
      ASSERT_EQ(plans_[r].blocks, blocks) << "rank " << r;
      totals_[r].resize(plans_[r].pieces);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < static_cast<int>(plans_.size()); ++r) {
        while (outputs_[r].size() < plans_[r].actions.size() && Execute(r)) moved = true;
        if (testing::Test::HasFailure()) return;
      }
    }
    const std::string total = NodeSum(TopLevel(micro_batches), 0, micro_batches);
    for (int r = 0; r < static_cast<int>(plans_.size()); ++r) {
      ASSERT_EQ(outputs_[r].size(), plans_[r].actions.size()) << "rank " << r << " waits forever";
      ASSERT_EQ(plans_[r].result.size(), plans_[r].pieces);
      for (int p = 0; p < plans_[r].pieces; ++p) {
        ASSERT_EQ(Take(r, plans_[r].result[p], {0, micro_batches}, p, p + 1), std::vector<std::string>{total})
            << "rank " << r << " piece " << p;
      }
    }
    EXPECT_TRUE(messages_.empty()) << messages_.size() << " messages were not received";
    for (const auto& [from, to, tag] : keys_) EXPECT_LT(tag, tag_limit) << from << " to " << to;
  }

 private:
  using Key = std::tuple<int, int, int>;  // from, to, tag

  // Returns pieces of a source of rank `r`, which must have all of them.
  std::vector<std::string> Take(int r, ReductionSource source, IndexRange value, int begin, int end) {
    const auto& sources = source.kind == ReductionSource::kBlock ? blocks_[r] : outputs_[r];
    EXPECT_LT(source.index, sources.size());
    if (source.index >= static_cast<int>(sources.size())) return {};
    const Pieces& pieces = sources[source.index];
    EXPECT_EQ(pieces.value, value);
    EXPECT_TRUE(pieces.begin <= begin && end <= pieces.end) << pieces.begin << " " << begin << " " << pieces.end;
    if (testing::Test::HasFailure()) return {};
    return {pieces.sums.begin() + (begin - pieces.begin), pieces.sums.begin() + (end - pieces.begin)};
  }

  // Executes the next action of rank `r`. Returns false if the rank must wait.
  bool Execute(int r) {
    const Action& action = plans_[r].actions[outputs_[r].size()];
    Pieces output = {action.value, action.piece_begin, action.piece_end};
    EXPECT_LT(action.piece_begin, action.piece_end);
    switch (action.kind) {
      case Action::kSend: {
        EXPECT_NE(action.peer, r);
        EXPECT_TRUE(keys_.insert({r, action.peer, action.tag}).second) << "tag " << action.tag << " again";
        messages_[{r, action.peer, action.tag}] = Gathered(r, action);
        output.end = output.begin;  // no later action can use it
        break;
      }
      case Action::kReceive: {
        const auto message = messages_.find({action.peer, r, action.tag});
        if (message == messages_.end()) return false;
        EXPECT_EQ(message->second.value, action.value);
        EXPECT_EQ(message->second.begin, action.piece_begin);
        EXPECT_EQ(message->second.end, action.piece_end);
        EXPECT_TRUE(action.sources.empty());
        output = message->second;
        messages_.erase(message);
        break;
      }
      case Action::kAdd: {
        EXPECT_EQ(action.sources.size(), 2);
        const int64_t half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(action.value.size()))) / 2;
        const int64_t cut = action.value.begin + half;
        const auto left = Take(r, action.sources[0], {action.value.begin, cut}, output.begin, output.end);
        const auto right = Take(r, action.sources[1], {cut, action.value.end}, output.begin, output.end);
        if (testing::Test::HasFailure()) return false;
        for (size_t i = 0; i < left.size(); ++i) output.sums.push_back(absl::StrCat("(", left[i], "+", right[i], ")"));
        break;
      }
    }
    // No rank makes or receives a piece of the total twice.
    if (output.value.size() == ranges_.back().end) {
      for (int p = output.begin; p < output.end; ++p) EXPECT_EQ(++totals_[r][p], 1) << "rank " << r << " piece " << p;
    }
    outputs_[r].push_back(output);
    return true;
  }

  // Returns the pieces of a send. Only in the second phase, they may come from several sources.
  Pieces Gathered(int r, const Action& action) {
    Pieces result = {action.value, action.piece_begin, action.piece_end};
    if (action.phase == Action::kReduce) {
      EXPECT_EQ(action.sources.size(), 1);
      result.sums = Take(r, action.sources[0], action.value, action.piece_begin, action.piece_end);
      return result;
    }
    EXPECT_EQ(action.value, (IndexRange{0, ranges_.back().end}));
    int piece = action.piece_begin;
    for (const ReductionSource& source : action.sources) {
      EXPECT_EQ(source.kind, ReductionSource::kAction);
      const Pieces& pieces = outputs_[r].at(source.index);
      const int end = std::min(pieces.end, action.piece_end);
      for (const std::string& sum : Take(r, source, action.value, piece, end)) result.sums.push_back(sum);
      piece = end;
    }
    EXPECT_EQ(piece, action.piece_end);
    return result;
  }

  const Plans& plans_;
  const std::vector<IndexRange>& ranges_;
  std::vector<std::vector<Pieces>> outputs_, blocks_;  // by rank
  std::vector<std::vector<int>> totals_;               // by rank and piece
  std::map<Key, Pieces> messages_;                     // sent and not yet received
  std::set<Key> keys_;                                 // of all messages
};

void CheckSums(const std::vector<IndexRange>& ranges) {
  for (const ReductionKind kind : kKinds) {
    const Plans plans = PlanOf(kind, ranges);
    Simulation(plans, ranges).Run(ReductionTagLimit(kind, ranges.size(), ranges.back().end));
  }
}

TEST(ReductionSimulationTest, EveryRankGetsTheSumOfTheTree) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (int micro_batches = ranks; micro_batches <= 40; ++micro_batches) {
      CheckSums(EvenRanges(ranks, micro_batches));
      ASSERT_FALSE(HasFailure()) << ranks << " ranks, " << micro_batches << " micro-batches";
    }
  }
  for (const auto& [ranks, micro_batches] : {std::pair(2, 1023), {31, 64}, {32, 64}, {33, 100}, {48, 201}}) {
    CheckSums(EvenRanges(ranks, micro_batches));
    ASSERT_FALSE(HasFailure()) << ranks << " ranks, " << micro_batches << " micro-batches";
  }
}

TEST(ReductionSimulationTest, RangesMayDiffer) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<IndexRange> ranges;
    const int ranks = 1 + random() % 9;
    int64_t begin = 0;
    for (int r = 0; r < ranks; ++r) {
      const int64_t end = begin + 1 + random() % 12;
      ranges.push_back({begin, end});
      begin = end;
    }
    CheckSums(ranges);
    ASSERT_FALSE(HasFailure()) << "case " << i;
  }
}

// Returns the pieces that the busiest rank sends or receives, as a multiple of (N - 1)/N of a value.
double Busiest(const Plans& plans, Action::Kind kind, Action::Phase phase) {
  int most = 0;
  for (const ReductionPlan& plan : plans) {
    int pieces = 0;
    for (const Action& action : plan.actions) {
      if (action.kind == kind && action.phase == phase) pieces += action.piece_end - action.piece_begin;
    }
    most = std::max(most, pieces);
  }
  return static_cast<double>(most) / (plans.size() - 1);
}

TEST(ReductionSimulationTest, NoRankSendsMuchMoreThanTheOthers) {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (int micro_batches = ranks; micro_batches <= 8 * ranks; ++micro_batches) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", micro_batches, " micro-batches"));
      const Plans plans = PlanOf(ReductionKind::kScatter, EvenRanges(ranks, micro_batches));
      const int each = micro_batches / ranks;
      const bool one_block = micro_batches % ranks == 0 && std::has_single_bit(static_cast<unsigned>(each));
      EXPECT_LE(Busiest(plans, Action::kSend, Action::kReduce), one_block ? 1 : 3.7);
      EXPECT_LE(Busiest(plans, Action::kReceive, Action::kReduce), 4.5);
      EXPECT_LE(Busiest(plans, Action::kSend, Action::kGather), 1.5);
    }
  }
}

}  // namespace
}  // namespace weft
