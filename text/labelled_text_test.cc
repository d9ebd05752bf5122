#include "weft/text/labelled_text.h"

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::string Write(const std::string& contents) {
  const std::string path = testing::TempDir() + "/labelled.tsv";
  std::ofstream(path) << contents;
  return path;
}

TEST(LabelledTextTest, ReadsTextsAndLabels) {
  const absl::StatusOr<LabelledText> text = ReadLabelledText(Write("a good film\t10\r\na\tbad one\t9\n"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text.lines, ElementsAre("a good film", "a\tbad one"));
  EXPECT_THAT(text->labels, ElementsAre("10", "9"));
  const std::vector<std::string> names = LabelNames(*text);
  EXPECT_THAT(names, ElementsAre("9", "10"));
  EXPECT_THAT(*LabelIds(*text, names), ElementsAre(1, 0));
}

TEST(LabelledTextTest, NamesThatAreNoNumbersGoByTheirBytes) {
  const LabelledText text = *ReadLabelledText(Write("a\tten\nb\t9\nc\tZ\nd\tten"));
  EXPECT_THAT(LabelNames(text), ElementsAre("9", "Z", "ten"));
}

TEST(LabelledTextTest, NamesFileAndLineOfWhatIsWrong) {
  const struct {
    std::string contents, error;
  } kCases[] = {{"a\t1\nno label\n", "labelled.tsv, line 2: there is no tab"},
                {"\t1\n", "labelled.tsv, line 1: there is no text before the tab"},
                {"a\t\n", "labelled.tsv, line 1: there is no label after the tab"},
                {"a\t1\n\n", "labelled.tsv, line 2: there is no tab"},
                {"a\xff\t1\n", "labelled.tsv: "}};
  for (const auto& [contents, error] : kCases) {
    const absl::Status status = ReadLabelledText(Write(contents)).status();
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << "; wanted: " << error;
  }
  const absl::Status other = LabelIds(*ReadLabelledText(Write("a\t1\nb\t3\n")), {"1", "2"}).status();
  EXPECT_TRUE(absl::StrContains(other.message(), "line 2: the label '3' is none of the 2: 1, 2")) << other;
}

}  // namespace
}  // namespace weft
