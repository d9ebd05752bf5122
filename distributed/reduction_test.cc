#include "weft/distributed/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

using Action = ReductionAction;
using Plans = std::vector<ReductionPlan>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ReductionKind kKinds[] = {ReductionKind::kDoubling, ReductionKind::kScatter};

// The ranges of train/task.h: they differ by at most one micro-batch, and the larger ones come first.
std::vector<MicroBatchRange> EvenRanges(int64_t ranks, int64_t micro_batches) {
  std::vector<MicroBatchRange> ranges;
  const auto begin = [&](int64_t r) { return r * (micro_batches / ranks) + std::min(r, micro_batches % ranks); };
  for (int64_t r = 0; r < ranks; ++r) ranges.push_back({begin(r), begin(r + 1)});
  return ranges;
}

Plans PlanOf(ReductionKind kind, const std::vector<MicroBatchRange>& ranges) {
  absl::StatusOr<Plans> plans = PlanReduction(kind, ranges);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *std::move(plans);
}

// Node `k` of level `level` of the tree, by its definition.
MicroBatchRange NodeRange(int level, int64_t k, int64_t micro_batches) {
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
std::map<int64_t, std::pair<MicroBatchRange, std::string>> BlocksOf(MicroBatchRange range, int64_t micro_batches) {
  std::map<int64_t, std::pair<MicroBatchRange, std::string>> blocks;
  const auto inside = [&](MicroBatchRange node) { return node.begin >= range.begin && node.end <= range.end; };
  const int top = TopLevel(micro_batches);
  for (int level = 0; level <= top; ++level) {
    for (int64_t k = 0; (k << level) < micro_batches; ++k) {
      const MicroBatchRange node = NodeRange(level, k, micro_batches);
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
  MicroBatchRange value;
  int begin = 0, end = 0;
  std::vector<std::string> sums;
};

// Runs the plans of all ranks, each in the order of its actions. Receives wait; sends don't.
class Simulation {
 public:
  Simulation(const Plans& plans, const std::vector<MicroBatchRange>& ranges)
      : plans_(plans), ranges_(ranges), outputs_(plans.size()), blocks_(plans.size()), totals_(plans.size()) {}

  void Run(int64_t tag_limit) {
    const int64_t micro_batches = ranges_.back().end;
    for (size_t r = 0; r < plans_.size(); ++r) {
      std::vector<MicroBatchRange> blocks;
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
  std::vector<std::string> Take(int r, ReductionSource source, MicroBatchRange value, int begin, int end) {
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
    EXPECT_EQ(action.value, (MicroBatchRange{0, ranges_.back().end}));
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
  const std::vector<MicroBatchRange>& ranges_;
  std::vector<std::vector<Pieces>> outputs_, blocks_;  // by rank
  std::vector<std::vector<int>> totals_;               // by rank and piece
  std::map<Key, Pieces> messages_;                     // sent and not yet received
  std::set<Key> keys_;                                 // of all messages
};

void CheckSums(const std::vector<MicroBatchRange>& ranges) {
  for (const ReductionKind kind : kKinds) {
    const Plans plans = PlanOf(kind, ranges);
    Simulation(plans, ranges).Run(ReductionTagLimit(kind, ranges.size(), ranges.back().end));
  }
}

TEST(ReductionTest, EveryRankGetsTheSumOfTheTree) {
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

TEST(ReductionTest, RangesMayDiffer) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<MicroBatchRange> ranges;
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

// "[2,4) 0:1 = b1 + a0": pieces 0 .. 0 of the sum of micro-batches 2 and 3 are block 1 + the output of action 0.
std::string Text(ReductionSource source) {
  return absl::StrCat(source.kind == ReductionSource::kBlock ? "b" : "a", source.index);
}
std::string Text(const Action& action) {
  std::vector<std::string> sources;
  for (const ReductionSource& source : action.sources) sources.push_back(Text(source));
  const std::string value = absl::StrCat(action.phase == Action::kGather ? "gather " : "", "[", action.value.begin, ",",
                                         action.value.end, ") ", action.piece_begin, ":", action.piece_end);
  if (action.kind == Action::kAdd) return absl::StrCat(value, " = ", absl::StrJoin(sources, " + "));
  if (action.kind == Action::kReceive) return absl::StrCat(value, " < ", action.peer, " tag ", action.tag);
  return absl::StrCat(value, " > ", action.peer, " tag ", action.tag, " ", absl::StrJoin(sources, ","));
}
std::vector<std::string> Text(const ReductionPlan& plan) {
  std::vector<std::string> lines;
  for (const Action& action : plan.actions) lines.push_back(Text(action));
  std::string& result = lines.emplace_back("result");
  for (const ReductionSource& source : plan.result) absl::StrAppend(&result, " ", Text(source));
  return lines;
}

TEST(ReductionTest, OneRankSendsNothing) {
  for (const ReductionKind kind : kKinds) {
    const Plans plans = PlanOf(kind, {{0, 5}});
    EXPECT_THAT(plans[0].blocks, ElementsAre(MicroBatchRange{0, 5}));
    EXPECT_THAT(Text(plans[0]), ElementsAre("result b0"));
  }
}

TEST(ReductionTest, TwoRanks) {
  const Plans doubling = PlanOf(ReductionKind::kDoubling, {{0, 1}, {1, 2}});
  EXPECT_THAT(Text(doubling[0]), ElementsAre("[0,1) 0:1 > 1 tag 0 b0",  //
                                             "[1,2) 0:1 < 1 tag 0",     //
                                             "[0,2) 0:1 = b0 + a1",     //
                                             "result a2"));
  EXPECT_THAT(Text(doubling[1]), ElementsAre("[0,1) 0:1 < 0 tag 0",     //
                                             "[1,2) 0:1 > 0 tag 0 b0",  //
                                             "[0,2) 0:1 = a0 + b0",     //
                                             "result a2"));
  const Plans scatter = PlanOf(ReductionKind::kScatter, {{0, 1}, {1, 2}});
  EXPECT_THAT(Text(scatter[0]), ElementsAre("[0,1) 1:2 > 1 tag 0 b0",      //
                                            "[1,2) 0:1 < 1 tag 0",         //
                                            "[0,2) 0:1 = b0 + a1",         //
                                            "gather [0,2) 1:2 < 1 tag 1",  //
                                            "gather [0,2) 0:1 > 1 tag 1 a2", "result a2 a3"));
  EXPECT_THAT(Text(scatter[1]), ElementsAre("[0,1) 1:2 < 0 tag 0",            //
                                            "[1,2) 0:1 > 0 tag 0 b0",         //
                                            "[0,2) 1:2 = a0 + b0",            //
                                            "gather [0,2) 1:2 > 0 tag 1 a2",  //
                                            "gather [0,2) 0:1 < 0 tag 1", "result a4 a2"));
}

TEST(ReductionTest, ThreeRanksDouble) {
  const Plans plans = PlanOf(ReductionKind::kDoubling, {{0, 3}, {3, 6}, {6, 8}});
  EXPECT_THAT(plans[0].blocks, ElementsAre(MicroBatchRange{0, 2}, MicroBatchRange{2, 3}));
  EXPECT_THAT(plans[1].blocks, ElementsAre(MicroBatchRange{3, 4}, MicroBatchRange{4, 6}));
  EXPECT_THAT(plans[2].blocks, ElementsAre(MicroBatchRange{6, 8}));
  EXPECT_THAT(Text(plans[0]), ElementsAre("[2,3) 0:1 > 1 tag 0 b1",  //
                                          "[3,4) 0:1 < 1 tag 0",     //
                                          "[2,4) 0:1 = b1 + a1",     //
                                          "[0,2) 0:1 > 1 tag 1 b0",  //
                                          "[0,4) 0:1 = b0 + a2",     //
                                          "[0,4) 0:1 > 2 tag 0 a4",  //
                                          "[4,8) 0:1 < 1 tag 1",     //
                                          "[0,8) 0:1 = a4 + a6",     //
                                          "result a7"));
  EXPECT_THAT(Text(plans[1]), ElementsAre("[2,3) 0:1 < 0 tag 0",     //
                                          "[3,4) 0:1 > 0 tag 0 b0",  //
                                          "[2,4) 0:1 = a0 + b0",     //
                                          "[0,2) 0:1 < 0 tag 1",     //
                                          "[0,4) 0:1 = a3 + a2",     //
                                          "[4,6) 0:1 > 2 tag 0 b1",  //
                                          "[6,8) 0:1 < 2 tag 0",     //
                                          "[4,8) 0:1 = b1 + a6",     //
                                          "[4,8) 0:1 > 0 tag 1 a7",  //
                                          "[0,8) 0:1 = a4 + a7",     //
                                          "result a9"));
  EXPECT_THAT(Text(plans[2]), ElementsAre("[4,6) 0:1 < 1 tag 0",     //
                                          "[6,8) 0:1 > 1 tag 0 b0",  //
                                          "[4,8) 0:1 = a0 + b0",     //
                                          "[0,4) 0:1 < 0 tag 0",     //
                                          "[0,8) 0:1 = a3 + a2",     //
                                          "result a4"));
}

TEST(ReductionTest, ThreeRanksScatter) {
  const Plans plans = PlanOf(ReductionKind::kScatter, {{0, 3}, {3, 6}, {6, 8}});
  EXPECT_THAT(Text(plans[0]), ElementsAre("[2,3) 2:3 > 1 tag 0 b1", "[3,4) 0:2 < 1 tag 0", "[2,4) 0:2 = b1 + a1",  //
                                          "[0,2) 2:3 > 1 tag 1 b0", "[0,4) 0:2 = b0 + a2",                         //
                                          "[0,4) 1:2 > 1 tag 2 a4", "[4,8) 0:1 < 1 tag 1", "[0,8) 0:1 = a4 + a6",  //
                                          "gather [0,8) 2:3 < 2 tag 0", "gather [0,8) 0:1 > 2 tag 0 a7",           //
                                          "gather [0,8) 1:2 < 1 tag 2", "gather [0,8) 0:1 > 1 tag 3 a7",           //
                                          "gather [0,8) 2:3 > 1 tag 4 a8", "result a7 a10 a8"));
  EXPECT_THAT(Text(plans[1]),
              ElementsAre("[2,3) 2:3 < 0 tag 0", "[3,4) 0:2 > 0 tag 0 b0", "[2,4) 2:3 = a0 + b0",     //
                          "[0,2) 2:3 < 0 tag 1", "[0,4) 2:3 = a3 + a2",                               //
                          "[4,6) 2:3 > 2 tag 0 b1", "[6,8) 0:2 < 2 tag 0", "[4,8) 0:2 = b1 + a6",     //
                          "[0,4) 1:2 < 0 tag 2", "[0,4) 2:3 > 2 tag 1 a4", "[4,8) 0:1 > 0 tag 1 a7",  //
                          "[0,8) 1:2 = a8 + a7",                                                      //
                          "gather [0,8) 1:2 > 2 tag 2 a11", "gather [0,8) 1:2 > 0 tag 2 a11",         //
                          "gather [0,8) 0:1 < 0 tag 3", "gather [0,8) 2:3 < 0 tag 4", "result a14 a11 a15"));
  EXPECT_THAT(Text(plans[2]), ElementsAre("[4,6) 2:3 < 1 tag 0", "[6,8) 0:2 > 1 tag 0 b0", "[4,8) 2:3 = a0 + b0",  //
                                          "[0,4) 2:3 < 1 tag 1", "[0,8) 2:3 = a3 + a2",                            //
                                          "gather [0,8) 2:3 > 0 tag 0 a4", "gather [0,8) 0:1 < 0 tag 0",           //
                                          "gather [0,8) 1:2 < 1 tag 2", "result a6 a7 a4"));
}

// The peers and numbers of pieces of a rank's messages of one kind, in order.
std::vector<std::pair<int, int>> Messages(const ReductionPlan& plan, Action::Kind kind, Action::Phase phase) {
  std::vector<std::pair<int, int>> messages;
  for (const Action& action : plan.actions) {
    if (action.kind != kind || action.phase != phase) continue;
    messages.emplace_back(action.peer, action.piece_end - action.piece_begin);
  }
  return messages;
}

TEST(ReductionTest, PowersOfTwoExchangeWithOnePartnerAtEachDistance) {
  for (int ranks = 1; ranks <= 64; ranks *= 2) {
    for (const int each : {1, 2, 8}) {
      const std::vector<MicroBatchRange> ranges = EvenRanges(ranks, ranks * each);
      const Plans doubling = PlanOf(ReductionKind::kDoubling, ranges),
                  scatter = PlanOf(ReductionKind::kScatter, ranges);
      for (int r = 0; r < ranks; ++r) {
        std::vector<std::pair<int, int>> whole, reduced, gathered;
        for (int distance = 1; distance < ranks; distance *= 2) {
          whole.emplace_back(r ^ distance, 1);
          reduced.emplace_back(r ^ distance, ranks / 2 / distance);
          gathered.insert(gathered.begin(), reduced.back());
        }
        for (const Action::Kind kind : {Action::kSend, Action::kReceive}) {
          EXPECT_EQ(Messages(doubling[r], kind, Action::kReduce), whole);
          EXPECT_EQ(Messages(doubling[r], kind, Action::kGather).size(), 0);
          EXPECT_EQ(Messages(scatter[r], kind, Action::kReduce), reduced);
          EXPECT_EQ(Messages(scatter[r], kind, Action::kGather), gathered);
        }
        EXPECT_EQ(Messages(scatter[r], Action::kAdd, Action::kReduce).size(), whole.size());
      }
    }
  }
}

// Returns the pieces that the busiest rank sends or receives, as a multiple of (N - 1)/N of a value.
double Busiest(const Plans& plans, Action::Kind kind, Action::Phase phase) {
  int most = 0;
  for (const ReductionPlan& plan : plans) {
    int pieces = 0;
    for (const auto& [peer, size] : Messages(plan, kind, phase)) pieces += size;
    most = std::max(most, pieces);
  }
  return static_cast<double>(most) / (plans.size() - 1);
}

TEST(ReductionTest, NoRankSendsMuchMoreThanTheOthers) {
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

TEST(ReductionTest, PiecesAreNearlyEqualAndBeginAtMultiplesOfTheQuantum) {
  const auto sizes = [](int64_t elements, int pieces, int64_t quantum) {
    std::vector<int64_t> all;
    int64_t end = 0;
    for (int p = 0; p < pieces; ++p) {
      const ElementRange range = PieceRange(elements, pieces, p, quantum);
      EXPECT_EQ(range.begin, end);
      EXPECT_TRUE(range.begin % quantum == 0 || range.begin == elements);
      end = range.end;
      all.push_back(range.size());
    }
    EXPECT_EQ(end, elements);
    return all;
  };
  EXPECT_THAT(sizes(1000, 1, 64), ElementsAre(1000));
  EXPECT_THAT(sizes(1024, 4, 64), ElementsAre(256, 256, 256, 256));
  EXPECT_THAT(sizes(1000, 3, 64), ElementsAre(320, 320, 360));
  EXPECT_THAT(sizes(10, 3, 1), ElementsAre(3, 3, 4));
  EXPECT_THAT(sizes(65, 4, 64), ElementsAre(0, 64, 0, 1));
  EXPECT_THAT(sizes(0, 2, 64), ElementsAre(0, 0));
  EXPECT_EQ(PieceRange(int64_t{1} << 50, 1024, 1023).size(), int64_t{1} << 40);
}

TEST(ReductionTest, Errors) {
  const struct {
    std::vector<MicroBatchRange> ranges;
    const char* error;
  } kRows[] = {
      {{}, "a reduction needs at least one rank, got none"},
      {{{1, 2}}, "rank 0 of 1 has the micro-batches from 1 to 2, but wanted at least one, from 0"},
      {{{0, 2}, {2, 2}}, "rank 1 of 2 has the micro-batches from 2 to 2, but wanted at least one, from 2"},
      {{{0, 2}, {3, 4}}, "rank 1 of 2 has the micro-batches from 3 to 4, but wanted at least one, from 2"},
  };
  for (const auto& [ranges, error] : kRows) {
    for (const ReductionKind kind : kKinds) {
      EXPECT_THAT(PlanReduction(kind, ranges).status().message(), HasSubstr(error));
    }
  }
}

}  // namespace
}  // namespace weft
