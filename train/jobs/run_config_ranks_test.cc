#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/train/jobs/run_config.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

struct Training {
  int64_t threads = 1, layers = 2;
  double rate = 0.001;
  std::string text = "/a/text.txt", data = "0123";
  Json files = {{"data", "89ab"}};
};

Json Describe(Training training) {
  const Hyperparameters table = {{"data", "", &training.text, {.is_path = true}},
                                 {"threads", "", &training.threads},
                                 {"learning-rate", "", &training.rate}};
  Json config = {{"command", "train gpt"}};
  config.update(ToJson(table));
  config["model"] = {{"n_layer", training.layers}};
  config["files"] = training.files;
  return DescribeTraining(config, table, training.data);
}

// Returns the status of the check on three ranks. Rank 2 has the training `other`, the others have the default.
std::string Check(const Training& other) {
  std::vector<absl::Status> statuses(3);
  RunRanks(3, [&](Transport* transport) {
    const Ranks ranks(transport);
    statuses[ranks.rank()] = CheckSameTraining(ranks, Describe(ranks.rank() == 2 ? other : Training()));
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, statuses[0]);
  return statuses[0].ToString();
}

TEST(RunConfigRanksTest, PathsAndThreadsMayDiffer) {
  EXPECT_EQ(Check({}), "OK");
  EXPECT_EQ(Check({.threads = 8}), "OK");
  EXPECT_EQ(Check({.text = "/b/text.txt"}), "OK");
}

TEST(RunConfigRanksTest, TheFirstKeyThatDiffersIsNamed) {
  EXPECT_THAT(Check({.layers = 3, .rate = 0.002}), HasSubstr("FAILED_PRECONDITION: rank 2 has learning_rate 0.002, but "
                                                             "rank 0 has 0.001; all ranks need the same"));
  EXPECT_THAT(Check({.layers = 3}), HasSubstr("rank 2 has model.n_layer 3, but rank 0 has 2"));
}

TEST(RunConfigRanksTest, OtherDataIsFound) {
  EXPECT_THAT(Check({.data = "4567"}), HasSubstr("rank 2 has data \"4567\", but rank 0 has \"0123\""));
  EXPECT_THAT(Check({.files = {{"data", "cdef"}}}),
              HasSubstr("rank 2 has files.data \"cdef\", but rank 0 has \"89ab\""));
  EXPECT_THAT(Check({.files = Json::object()}), HasSubstr("rank 2 has files.data none, but rank 0 has \"89ab\""));
}

TEST(RunConfigRanksTest, VersionAndCpuAreCompared) {
  Training training;
  const Json description = Describe(training);
  EXPECT_TRUE(description.contains("build"));
  EXPECT_TRUE(description.contains("cpu"));
  EXPECT_FALSE(description.contains("threads"));
}

}  // namespace
}  // namespace weft
