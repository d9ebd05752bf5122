#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/inference/generate/generate.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

// The drafter's guesses must be the tokens that a greedy generator adds. Earlier calls leave other tokens in the
// drafter's cache, and these must have no influence.
TEST(ModelDraftTest, GuessesTheLikeliestTokens) {
  const GptConfig config = {.vocabulary = 11, .context = 200, .layers = 2, .heads = 2, .width = 16};
  Parameters parameters({.seed = 3}), same({.seed = 3});
  const auto draft = ModelDraft::Create(config, &parameters, {.batch = 2});
  const auto generator = Generator::Create(config, &same);
  ASSERT_TRUE(draft.ok() && generator.ok());
  std::vector<Tokens> texts = {{1, 2, 3}, Tokens(150, 4), {5}, {1, 2, 3, 9, 9}, {1, 2}};
  for (size_t i = 0; i < 2 * texts.size(); ++i) {
    const size_t first = i % texts.size(), second = (i + 1) % texts.size();
    const std::vector<DraftRequest> requests = {{.text = i % 3, .tokens = texts[first], .count = 4},
                                                {.text = i % 3 + 1, .tokens = texts[second], .count = i % 6}};
    const auto guesses = (*draft)->Guess(requests);
    ASSERT_TRUE(guesses.ok()) << guesses.status();
    const auto wanted =
        (*generator)->Generate({texts[first], texts[second]}, {.sampling = {.temperature = 0}, .length = 6});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_EQ((*guesses)[0], Tokens((*wanted)[0].begin(), (*wanted)[0].begin() + 4)) << i;
    EXPECT_EQ((*guesses)[1], Tokens((*wanted)[1].begin(), (*wanted)[1].begin() + static_cast<int>(i % 6))) << i;
    texts[first].push_back((*wanted)[0][0]);
  }
  const std::vector<DraftRequest> three(3, {.tokens = texts[0], .count = 1});
  EXPECT_THAT(std::string((*draft)->Guess(three).status().message()), HasSubstr("3 texts, wanted at most batch, 2"));
}

}  // namespace
}  // namespace weft
