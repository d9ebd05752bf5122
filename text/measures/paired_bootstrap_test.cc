// The expected numbers are those of sacreBLEU 2.6.0's significance._paired_bs_test with 200 resamples, in which the
// function rng.choice returned the draws of `draw`, resample by resample. It computes chrF in f32. The difference's
// mean and bounds were computed with numpy from the scores of the same resamples.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/text/measures/translation_measures.h"

namespace weft {
namespace {

using Lines = std::vector<std::string>;

const Lines kReference = {
    "the cat sat on the mat",           "a dog barks at the tall man",  "two men are playing chess in a park",
    "a girl in a red coat runs",        "people walk down the street",  "the old house is on a hill",
    "a boy eats an apple under a tree", "three birds fly over the lake"};
const Lines kSystem = {"the cat sat on a mat",
                       "a dog barks at a tall man",
                       "two men play chess in the park",
                       "a girl in a red coat runs",
                       "people walk on the street",
                       "the house is on the hill",
                       "a boy eats an apple under the tree",
                       "three birds fly over a lake"};
const Lines kBaseline = {
    "a cat is on the mat",           "the dog barks at the man",           "two men are playing chess",
    "a girl with a coat runs",       "people are walking down the street", "the old house is on a hill",
    "the boy eats apples by a tree", "three birds over the lake fly"};

double BleuScoreOf(absl::Span<const int64_t> sums) { return BleuOf(sums).score; }

struct Wanted {
  double score, mean, half_width;
};
void ExpectScore(const BootstrapScore& got, const Wanted& wanted) {
  EXPECT_NEAR(got.score, wanted.score, 1e-9);
  EXPECT_NEAR(got.mean, wanted.mean, 1e-4);
  EXPECT_NEAR((got.high - got.low) / 2, wanted.half_width, 1e-4);
}

TEST(PairedBootstrapTest, SameDrawsGiveSacrebleusNumbers) {
  struct Row {
    LineCounts system, baseline;
    double (*score)(absl::Span<const int64_t>);
    Wanted wanted_system, wanted_baseline;
    double mean_difference, low, high, p_value;
  };
  const Row rows[] = {
      {*BleuCounts(kSystem, {{kReference}}),
       *BleuCounts(kBaseline, {{kReference}}),
       BleuScoreOf,
       {51.558625839228775, 51.35371149449442, 19.514634011167256},
       {43.266714866494006, 41.98262956506385, 21.178055920771563},
       9.37108185619251,
       -23.908255596554383,
       45.250878166270205,
       0.23383084577114427},
      {*ChrfCounts(kSystem, {{kReference}}),
       *ChrfCounts(kBaseline, {{kReference}}),
       ChrfOf,
       {70.17890656395879, 70.538818359375, 10.882831573486328},
       {67.66175440378265, 67.54964447021484, 10.931722640991211},
       2.98917935120185,
       -14.17264166481452,
       22.100683746375942,
       0.2835820895522388},
      {*ChrfCounts<2>(kSystem, {{kReference}}),
       *ChrfCounts<2>(kBaseline, {{kReference}}),
       ChrfOf,
       {70.29874211008253, 70.63587188720703, 10.400053024291992},
       {66.85110506044741, 66.8011245727539, 10.901371002197266},
       3.834751193948081,
       -12.987176182607634,
       22.53708076587411,
       0.23880597014925373},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.wanted_system.score);
    uint64_t x = 1;
    const auto draw = [&x](size_t /*resample*/, size_t /*i*/) {
      x = (x * 1103515245 + 12345) % (uint64_t{1} << 31);
      return static_cast<size_t>((x >> 16) % 8);
    };
    const BootstrapComparison got = PairedBootstrap(row.system, row.baseline, row.score, 200, draw);
    ExpectScore(got.system, row.wanted_system);
    ExpectScore(got.baseline, row.wanted_baseline);
    EXPECT_NEAR(got.difference.score, row.wanted_system.score - row.wanted_baseline.score, 1e-9);
    EXPECT_NEAR(got.difference.mean, row.mean_difference, 1e-9);
    EXPECT_NEAR(got.difference.low, row.low, 1e-9);
    EXPECT_NEAR(got.difference.high, row.high, 1e-9);
    EXPECT_NEAR(got.p_value, row.p_value, 1e-12);
  }
}

TEST(PairedBootstrapTest, TheSeedAloneChoosesTheDraws) {
  const LineCounts system = *ChrfCounts(kSystem, {{kReference}}), baseline = *ChrfCounts(kBaseline, {{kReference}});
  const auto compare = [&](uint64_t seed) { return PairedBootstrap(system, baseline, ChrfOf, {.seed = seed}); };
  EXPECT_EQ(compare(1).difference.mean, compare(1).difference.mean);
  EXPECT_NE(compare(1).difference.mean, compare(2).difference.mean);
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_NEAR(compare(seed).difference.mean, compare(seed).difference.score, 1);
    EXPECT_GT(compare(seed).p_value, 0.2);
  }
  // Equal translations are no evidence of a difference, although sacreBLEU gives 1 / (resamples + 1) here.
  EXPECT_EQ(PairedBootstrap(system, system, ChrfOf, {}).p_value, 1);
}

}  // namespace
}  // namespace weft
