#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/ranks.h"

namespace weft {
namespace {

TEST(Agreement, ResultOfFirstIsThatOfRank0OnEveryRank) {
  RunRanks(3, [](Transport* transport) {
    const Ranks ranks(transport);
    int calls = 0;
    const absl::StatusOr<std::string> result = ResultOfFirst(ranks, [&]() -> absl::StatusOr<std::string> {
      ++calls;
      return "a\nb";
    });
    EXPECT_EQ(*result, "a\nb");
    EXPECT_EQ(calls, ranks.first() ? 1 : 0);
    EXPECT_EQ(*ResultOfFirst(ranks, [] { return absl::StatusOr<std::string>(""); }), "");
    EXPECT_EQ(OnFirst(ranks, [] { return absl::DataLossError("no\nspace"); }), absl::DataLossError("no\nspace"));
    EXPECT_EQ(OnFirst(ranks, [] { return absl::OkStatus(); }), absl::OkStatus());
  });
}

TEST(Agreement, AFlagOfAnyRankCountsOnEveryRank) {
  RunRanks(3, [](Transport* transport) {
    const Ranks ranks(transport);
    EXPECT_FALSE(*AnyRank(ranks, absl::OkStatus(), false));
    EXPECT_TRUE(*AnyRank(ranks, absl::OkStatus(), ranks.rank() == 2));
  });
}

TEST(Agreement, AnErrorNamesItsRankUnlessAllHaveIt) {
  RunRanks(3, [](Transport* transport) {
    const Ranks ranks(transport);
    EXPECT_EQ(AllAgree(ranks, ranks.rank() == 0 ? absl::OkStatus() : absl::NotFoundError("no file")),
              absl::NotFoundError("rank 1: no file"));
    EXPECT_EQ(AllAgree(ranks, absl::NotFoundError("no file")), absl::NotFoundError("no file"));
    EXPECT_EQ(AllAgree(ranks, ranks.first() ? absl::NotFoundError("no file") : absl::NotFoundError("no folder")),
              absl::NotFoundError("rank 0: no file"));
  });
}

TEST(Agreement, Rank0AloneHasAMessageToPrint) {
  RunRanks(2, [](Transport* transport) {
    const Ranks ranks(transport);
    const absl::Status status = PrintedByFirst(ranks, absl::NotFoundError("no file"));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(), ranks.first() ? "no file" : "");
  });
}

TEST(Agreement, AProcessThatTrainsAloneGetsItsOwnResult) {
  EXPECT_EQ(*ResultOfFirst({}, [] { return absl::StatusOr<std::string>("mine"); }), "mine");
  EXPECT_TRUE(*AnyRank({}, absl::OkStatus(), true));
  EXPECT_EQ(AllAgree({}, absl::AbortedError("over")), absl::AbortedError("over"));
}

}  // namespace
}  // namespace weft
