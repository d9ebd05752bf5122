// Runs the program of docs/tutorials/sharpness.md on a text that is installed.
#include <cmath>
#include <cstdio>
#include <sstream>
#include <vector>

#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

TEST(SharpnessTest, LearnsAndMeasures) {
  const CommandResult result = RunCommand({"tests/second_order/sharpness", "LICENSE", "100"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);) {
    int step = -1;
    double sharpness = 0, share = 0, loss = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "step %d sharpness %lf times rate / 2: %lf loss %lf", &step, &sharpness, &share,
                          &loss),
              4)
        << line;
    EXPECT_EQ(step, 50 * static_cast<int>(losses.size()));
    EXPECT_GT(std::abs(sharpness), 0.1);
    EXPECT_NEAR(share, sharpness * 0.1 / 2, 0.006);
    losses.push_back(loss);
  }
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_NEAR(losses[0], 5.55, 0.1);  // log 256
  EXPECT_LT(losses[2], losses[0] - 1);
}

TEST(SharpnessTest, SaysWhatIsWrong) {
  EXPECT_EQ(RunCommand({"tests/second_order/sharpness"}).exit_code, 1);
  EXPECT_NE(RunCommand({"tests/second_order/sharpness", "none.txt", "1"}).err.find("none.txt is too short"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
