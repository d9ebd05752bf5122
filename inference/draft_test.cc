#include "weft/inference/draft.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<int32_t>;

TEST(DraftByLookupTest, GivesWhatFollowedTheLatestOccurrence) {
  EXPECT_THAT(DraftByLookup(Tokens{1, 2, 3, 4, 5, 1, 2, 3}, 2), ElementsAre(4, 5));
  EXPECT_THAT(DraftByLookup(Tokens{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 1), ElementsAre(5));
  EXPECT_THAT(DraftByLookup(Tokens{7, 7, 7, 7}, 4), ElementsAre(7)) << "the draft ends with the text";
}

TEST(DraftByLookupTest, PrefersThreeTokensToTwo) {
  EXPECT_THAT(DraftByLookup(Tokens{1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 1), ElementsAre(4));
  EXPECT_THAT(DraftByLookup(Tokens{9, 2, 3, 5, 1, 2, 3}, 1), ElementsAre(5));
}

TEST(DraftByLookupTest, MayFindNothing) {
  EXPECT_THAT(DraftByLookup(Tokens{}, 3), IsEmpty());
  EXPECT_THAT(DraftByLookup(Tokens{1}, 3), IsEmpty());
  EXPECT_THAT(DraftByLookup(Tokens{1, 1}, 3), IsEmpty());
  EXPECT_THAT(DraftByLookup(Tokens{1, 2, 3, 4, 3}, 3), IsEmpty());
  EXPECT_THAT(DraftByLookup(Tokens{1, 2, 3, 1, 2, 3}, 0), IsEmpty());
}

}  // namespace
}  // namespace weft
