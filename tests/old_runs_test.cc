// Continues training runs of an earlier version, and expects the weights of that version. tests/old_runs/README.md says
// how the runs were made.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/core/checksum.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct OldRun {
  std::string name, training;
  Arguments data;        // where the data is now
  std::string checksum;  // of the weights after step 6
};

class OldRunsTest : public WeftProgramTest, public testing::WithParamInterface<OldRun> {
 protected:
  OldRunsTest() {
    fs::copy("tests/old_runs", folder_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  std::string Cpu(const std::string& checkpoint) const {
    return nlohmann::json::parse(Read(checkpoint + "/checkpoint.json")).at("cpu");
  }
};

INSTANTIATE_TEST_SUITE_P(
    Runs, OldRunsTest,
    testing::Values(OldRun{"gpt", "gpt", {"--data=text.txt"}, "27fb21ab8f074386"},
                    OldRun{"gpt_lora", "gpt", {"--data=text.txt"}, "2637e36e9c421a8c"},
                    OldRun{"bert", "bert", {"--data=text.txt"}, "88be477369b5639a"},
                    OldRun{"classify", "classify", {"--data=labelled.tsv"}, "ce2194753b4a45a8"},
                    OldRun{"translate", "translate", {"--source=a.txt", "--target=b.txt"}, "9059dc1a797eabdc"},
                    OldRun{"vit", "vit", {"--data=pictures.csv"}, "cb5e73ccce48fb6b"}),
    [](const auto& info) { return info.param.name; });

TEST_P(OldRunsTest, GoOnToTheSameWeights) {
  const auto& [name, training, data, checksum] = GetParam();
  const CommandResult result = Weft(Arguments{"train", training, "--resume", "--out=" + name} + data);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("resumed after step 3"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("step 6/6"), std::string::npos) << result.err;
  if (Cpu(name + "/checkpoints/3") != Cpu(name + "/checkpoints/6")) {
    GTEST_SKIP() << "the runs began on a CPU with other instructions, which round differently";
  }
  const absl::StatusOr<std::string> weights = ChecksumOfFile(Path(name + "/model.safetensors"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(*weights, checksum);
}

}  // namespace
}  // namespace weft
