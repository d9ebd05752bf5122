#include "weft/distributed/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

using Action = ReductionAction;
using Plans = std::vector<ReductionPlan>;
using ::testing::ElementsAre;

constexpr ReductionKind kKinds[] = {ReductionKind::kDoubling, ReductionKind::kScatter};

Plans PlanOf(ReductionKind kind, const std::vector<IndexRange>& ranges) {
  absl::StatusOr<Plans> plans = PlanReduction(kind, ranges);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *std::move(plans);
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
    EXPECT_THAT(plans[0].blocks, ElementsAre(IndexRange{0, 5}));
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
  EXPECT_THAT(plans[0].blocks, ElementsAre(IndexRange{0, 2}, IndexRange{2, 3}));
  EXPECT_THAT(plans[1].blocks, ElementsAre(IndexRange{3, 4}, IndexRange{4, 6}));
  EXPECT_THAT(plans[2].blocks, ElementsAre(IndexRange{6, 8}));
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
      std::vector<IndexRange> ranges;
      for (int r = 0; r < ranks; ++r) ranges.push_back({r * each, (r + 1) * each});
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

TEST(ReductionTest, PiecesAreNearlyEqualAndBeginAtMultiplesOfTheQuantum) {
  const auto sizes = [](int64_t elements, int pieces, int64_t quantum) {
    std::vector<int64_t> all;
    int64_t end = 0;
    for (int p = 0; p < pieces; ++p) {
      const IndexRange range = PieceRange(elements, pieces, p, quantum);
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
    std::vector<IndexRange> ranges;
    const char* error;
  } kRows[] = {
      {{}, "a reduction needs at least one rank, got none"},
      {{{1, 2}}, "rank 0 of 1 has the micro-batches from 1 to 2, but wanted at least one, from 0"},
      {{{0, 2}, {2, 2}}, "rank 1 of 2 has the micro-batches from 2 to 2, but wanted at least one, from 2"},
      {{{0, 2}, {3, 4}}, "rank 1 of 2 has the micro-batches from 3 to 4, but wanted at least one, from 2"},
  };
  for (const auto& [ranges, error] : kRows) {
    for (const ReductionKind kind : kKinds) {
      EXPECT_EQ(PlanReduction(kind, ranges).status().message(), error);
    }
  }
}

}  // namespace
}  // namespace weft
