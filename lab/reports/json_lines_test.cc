// Tests JsonLines.
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/lab/reports/run_report.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class JsonLinesTest : public testing::Test {
 protected:
  void Write(const std::string& text, std::ios::openmode mode = std::ios::trunc) const {
    std::ofstream(path_, std::ios::out | mode) << text;
  }
  // Returns the value "a" of each line that `lines` reads. The first element is -1 if the file was read again.
  static std::vector<int> Read(JsonLines* lines) {
    std::vector<int> values;
    const absl::StatusOr<bool> changed = lines->Read(
        [&] { values.push_back(-1); }, [&](const nlohmann::json& line) { values.push_back(line.at("a").get<int>()); });
    EXPECT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(*changed, !values.empty());
    return values;
  }

  const std::string path_ = testing::TempDir() + "/lines.jsonl";
};

TEST_F(JsonLinesTest, ReadsWhatWasAppended) {
  std::remove(path_.c_str());
  JsonLines lines(path_);
  EXPECT_THAT(Read(&lines), IsEmpty()) << "there is no file yet";
  Write("{\"a\":1}\n{\"a\":2}\n{\"a\"");
  EXPECT_THAT(Read(&lines), ElementsAre(1, 2)) << "the last line is not complete";
  EXPECT_THAT(Read(&lines), IsEmpty());
  Write(":3}\n\n{\"a\":4}\n", std::ios::app);
  EXPECT_THAT(Read(&lines), ElementsAre(3, 4));
  EXPECT_EQ(lines.damaged(), 0);
}

TEST_F(JsonLinesTest, AFileThatWasCutIsReadAgain) {
  Write("{\"a\":1}\n{\"a\":2}\n");
  JsonLines lines(path_);
  EXPECT_THAT(Read(&lines), ElementsAre(1, 2));
  Write("{\"a\":1}\n");
  EXPECT_THAT(Read(&lines), ElementsAre(-1, 1));
  Write("{\"a\":5}\n{\"a\":6}\n");
  EXPECT_THAT(Read(&lines), ElementsAre(-1, 5, 6)) << "a longer file took its place";
}

TEST_F(JsonLinesTest, DamagedLinesAreCounted) {
  Write("{\"a\":1}\nnonsense\n[1]\n{\"a\":NaN}\n\x80\n{\"a\":2}\n");
  JsonLines lines(path_);
  EXPECT_THAT(Read(&lines), ElementsAre(1, 2));
  EXPECT_EQ(lines.damaged(), 4);
}

}  // namespace
}  // namespace weft
