// Uses the page of a running server in headless Chromium. Without a browser, the test is skipped.
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/tests/serve/server_fixture.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

TEST_F(ServerTest, ThePageWorksInABrowser) {
  if (RunCommand({"which", "chromium"}).exit_code != 0) GTEST_SKIP() << "chromium is missing; run tools/setup";
  std::string text;  // with the characters of what the test types
  for (int i = 0; i < 200; ++i) text += "In the beginning a small dog runs .\n";
  Write("text.txt", text);
  WriteTrainingData();
  for (const std::string task : {"classify", "translate"}) {
    ASSERT_TRUE(Works(Weft(SmallTraining(task) + Arguments{"--out=" + task})));
  }
  names_ = {"gpt", "translate", "classify"};
  Serve();
  const std::string url = absl::StrCat("http://127.0.0.1:", server_->port(), "/");
  const CommandResult result = RunCommand({"tests/serve/page_test.py", "--server=" + url});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace weft
