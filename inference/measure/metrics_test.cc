// The expected figures are those of scikit-learn 1.9.1:
// classification_report(right, predicted, output_dict=True, zero_division=0) and confusion_matrix(right, predicted).
#include "weft/inference/measure/metrics.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft {
namespace {

using Classes = std::vector<int32_t>;

void ExpectQuality(const Quality& got, const Quality& wanted) {
  EXPECT_NEAR(got.precision, wanted.precision, 1e-12);
  EXPECT_NEAR(got.recall, wanted.recall, 1e-12);
  EXPECT_NEAR(got.f1, wanted.f1, 1e-12);
  EXPECT_EQ(got.support, wanted.support);
}

TEST(MetricsTest, FiguresAreScikitLearns) {
  const struct {
    Classes right, predicted;
    ConfusionMatrix confusion;
    std::vector<Quality> classes;
    Quality macro, weighted;
  } rows[] = {
      {{0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0},
       {0, 1, 0, 2, 1, 1, 0, 2, 2, 1, 2, 2, 0, 0},
       {{3, 1, 1}, {1, 2, 0}, {1, 1, 4}},
       {{0.6, 0.6, 0.6, 5},
        {0.5, 0.6666666666666666, 0.5714285714285714, 3},
        {0.8, 0.6666666666666666, 0.7272727272727273, 6}},
       {0.6333333333333334, 0.6444444444444444, 0.6329004329004329, 14},
       {0.6642857142857144, 0.6428571428571429, 0.6484230055658627, 14}},
      // Class 2 does not occur, and class 3 is only predicted. scikit-learn leaves class 2 out of its report.
      {{0, 0, 1, 1, 1, 4, 4, 0},
       {0, 3, 1, 1, 0, 4, 3, 0},
       {{2, 0, 0, 1, 0}, {1, 2, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 1, 1}},
       {{0.6666666666666666, 0.6666666666666666, 0.6666666666666666, 3},
        {1, 0.6666666666666666, 0.8, 3},
        {0, 0, 0, 0},
        {0, 0, 0, 0},
        {1, 0.5, 0.6666666666666666, 2}},
       {0.6666666666666666, 0.4583333333333333, 0.5333333333333333, 8},
       {0.875, 0.625, 0.7166666666666667, 8}},
      {{0, 0, 1}, {1, 1, 0}, {{0, 2}, {1, 0}}, {{0, 0, 0, 2}, {0, 0, 0, 1}}, {0, 0, 0, 3}, {0, 0, 0, 3}},
  };
  for (const auto& row : rows) {
    const ConfusionMatrix confusion = CountConfusions(row.right, row.predicted, row.confusion.size());
    EXPECT_EQ(confusion, row.confusion);
    const ClassReport report = ReportClasses(confusion);
    ASSERT_EQ(report.classes.size(), row.classes.size());
    for (size_t i = 0; i < row.classes.size(); ++i) ExpectQuality(report.classes[i], row.classes[i]);
    ExpectQuality(report.macro, row.macro);
    ExpectQuality(report.weighted, row.weighted);
  }
}

TEST(MetricsTest, ATableHasEachClassAndTheMatrix) {
  EXPECT_EQ(ToText({{3, 1, 1}, {1, 2, 0}, {1, 1, 4}}, {"one", "zwölf", "a label of many, many characters"}),
            "class                             precision     recall         f1    support\n"
            "one                                  0.6000     0.6000     0.6000          5\n"
            "zwölf                                0.5000     0.6667     0.5714          3\n"
            "a label of many, many characters     0.8000     0.6667     0.7273          6\n"
            "macro average                        0.6333     0.6444     0.6329         14\n"
            "weighted average                     0.6643     0.6429     0.6484         14\n"
            "\n"
            "confusion matrix: a row is a right class, a column is a prediction\n"
            "                                         one       zwölf  a label o…\n"
            "one                                        3           1           1\n"
            "zwölf                                      1           2           0\n"
            "a label of many, many characters           1           1           4\n");
}

TEST(MetricsTest, ManyClassesAreShownInPart) {
  ConfusionMatrix confusion(77, std::vector<int64_t>(77, 0));
  std::vector<std::string> labels;
  for (size_t i = 0; i < 77; ++i) {
    labels.push_back(absl::StrCat("a_long_label_as_in_banking77_number_", i));
    confusion[i][i] = 40;
    confusion[i][(i * i + 1) % 77] += static_cast<int64_t>(i % 30);
  }
  const std::vector<Confusion> most = MostFrequentConfusions(confusion, 3);
  ASSERT_EQ(most.size(), 3);
  EXPECT_EQ(most[0].right, 29);
  EXPECT_EQ(most[0].predicted, (29 * 29 + 1) % 77);
  EXPECT_EQ(most[0].count, 29);
  EXPECT_EQ(most[1].right, 59);
  EXPECT_EQ(most[2].count, 28);
  const std::string text = ToText(confusion, labels);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines[0], "the 10 of 77 classes with the lowest f1");
  EXPECT_EQ(lines[15], "most frequent confusions: number, right class, prediction");
  EXPECT_EQ(lines.size(), 15 + 1 + 10 + 1);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80 + 2 * 2) << line;  // "…" has 3 bytes
  confusion = ConfusionMatrix(77, std::vector<int64_t>(77, 0));
  EXPECT_TRUE(MostFrequentConfusions(confusion, 3).empty());
  EXPECT_NE(ToText(confusion, labels).find("no confusions\n"), std::string::npos);
}

}  // namespace
}  // namespace weft
