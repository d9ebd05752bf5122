#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/ranks.h"

namespace weft {
namespace {

// Returns the status of the check on `size` ranks, each with the parameters "a" and "b", where the ranks `flipped` have
// one other bit in "b".
absl::Status Check(int size, const std::vector<int>& flipped) {
  std::vector<absl::Status> statuses(size);
  RunRanks(size, [&](Transport* transport) {
    const Ranks ranks(transport);
    Parameters parameters;
    ASSERT_TRUE(
        parameters.Create(std::vector<ParameterSpec>{{"a", {kF32, {3}}, Zeros()}, {"b", {kF32, {2}}, Zeros()}}).ok());
    for (const int rank : flipped) {
      if (rank == ranks.rank()) parameters.Find("b")->data[5] ^= std::byte(1);
    }
    statuses[ranks.rank()] = CheckSameParameters(ranks, parameters, 7);
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, statuses[0]);
  return statuses[0];
}

TEST(AgreementParametersTest, EqualBytesAreOk) {
  EXPECT_TRUE(Check(1, {}).ok());
  EXPECT_TRUE(Check(3, {}).ok());
}

TEST(AgreementParametersTest, TheMajorityIsRight) {
  EXPECT_EQ(
      Check(3, {1}).message(),
      "after step 7 rank 1 differs from the other ranks in 'b': all ranks must have the same weights and optimizer "
      "state");
  EXPECT_THAT(std::string(Check(5, {0, 4}).message()), testing::HasSubstr("ranks 0 and 4 differ from the other ranks"));
}

TEST(AgreementParametersTest, WithoutAMajorityAllRanksAreNamed) {
  EXPECT_THAT(std::string(Check(2, {0}).message()), testing::HasSubstr("ranks 0 and 1 differ from each other in 'b'"));
}

}  // namespace
}  // namespace weft
