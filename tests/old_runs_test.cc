// Continues training runs of an earlier version, and expects the losses of that version. tests/old_runs/README.md says
// how the runs were made.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct OldRun {
  std::string name, training;
  Arguments data;  // where the data is now
};

class OldRunsTest : public WeftProgramTest, public testing::WithParamInterface<OldRun> {
 protected:
  OldRunsTest() {
    fs::copy("tests/old_runs", folder_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  // Returns the rows of a run's metrics, one for each of 6 steps.
  std::vector<nlohmann::json> Metrics(const std::string& run) const {
    std::vector<nlohmann::json> rows;
    std::istringstream lines(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
    EXPECT_EQ(rows.size(), 6);
    rows.resize(6);
    return rows;
  }
};

INSTANTIATE_TEST_SUITE_P(Runs, OldRunsTest,
                         testing::Values(OldRun{"gpt", "gpt", {"--data=text.txt"}},
                                         OldRun{"gpt_lora", "gpt", {"--data=text.txt"}},
                                         OldRun{"bert", "bert", {"--data=text.txt"}},
                                         OldRun{"classify", "classify", {"--data=labelled.tsv"}},
                                         OldRun{"translate", "translate", {"--source=a.txt", "--target=b.txt"}},
                                         OldRun{"vit", "vit", {"--data=pictures.csv"}}),
                         [](const auto& info) { return info.param.name; });

TEST_P(OldRunsTest, GoOnToTheSameLosses) {
  const auto& [name, training, data] = GetParam();
  const std::vector<nlohmann::json> wanted = Metrics(name);
  const CommandResult result = Weft(Arguments{"train", training, "--resume", "--out=" + name} + data);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("resumed after step 3"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("step 6/6"), std::string::npos) << result.err;
  const std::vector<nlohmann::json> got = Metrics(name);
  for (size_t i = 3; i < 6; ++i) {
    EXPECT_NE(got[i].at("seconds"), wanted[i].at("seconds")) << "this row is the old run's";
    for (const char* const key : {"step", "tokens", "train_loss", "learning_rate", "grad_norm"}) {
      const double number = wanted[i].at(key).get<double>();
      EXPECT_NEAR(got[i].at(key).get<double>(), number, 1e-5 * number) << key << " of step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace weft
