#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/inference/measure/metrics.h"

namespace weft {
namespace {

using Sentences = std::vector<std::vector<std::string>>;

TaggingScore ScoreOf(const Sentences& right, const Sentences& predicted) {
  TaggingScore score;
  for (size_t i = 0; i < right.size(); ++i) score.Add(right[i], predicted[i]);
  return score;
}

// Expected values are those of seqeval 1.2.2: precision_score, recall_score and f1_score.
TEST(TaggingMetricsTest, AgreesWithSeqeval) {
  const struct {
    Sentences right, predicted;
    double precision, recall, f1;
  } kCases[] = {
      // IOB2.
      {{{"B-PER", "I-PER", "O", "B-LOC"}, {"O", "B-ORG", "I-ORG", "B-ORG"}},
       {{"B-PER", "I-PER", "O", "B-PER"}, {"O", "B-ORG", "I-ORG", "I-ORG"}},
       0.3333333333333333,
       0.25,
       0.28571428571428575},
      // IOB1: an entity may begin with I.
      {{{"I-PER", "I-PER", "O"}, {"I-LOC", "B-LOC", "I-ORG"}},
       {{"B-PER", "I-PER", "I-LOC"}, {"I-LOC", "I-LOC", "I-ORG"}},
       0.5,
       0.5,
       0.5},
      // IOBES, also with tags in an order that the scheme forbids.
      {{{"B-A", "I-B", "I-A", "O", "S-C", "E-C"}, {"E-A", "I-A", "S-A", "B-A", "E-A"}},
       {{"B-A", "I-A", "I-A", "O", "S-C", "S-C"}, {"E-A", "E-A", "S-A", "B-A", "I-A"}},
       0.8571428571428571,
       0.6666666666666666,
       0.75},
      // Labels without a scheme.
      {{{"UPPER", "lower", "O", "UPPER"}, {"B", "I", "O"}},
       {{"UPPER", "O", "O", "lower"}, {"B", "B", "O"}},
       0.25,
       0.25,
       0.25},
      {{{"O", "O"}}, {{"O", "B-X"}}, 0, 0, 0},
      {{{"B-X-Y", "I-X-Y", "B-X"}}, {{"B-X-Y", "I-X", "B-X"}}, 0.3333333333333333, 0.5, 0.4},
  };
  for (const auto& [right, predicted, precision, recall, f1] : kCases) {
    const Quality all = ScoreOf(right, predicted).Report().all;
    EXPECT_DOUBLE_EQ(all.precision, precision);
    EXPECT_DOUBLE_EQ(all.recall, recall);
    EXPECT_DOUBLE_EQ(all.f1, f1);
  }
}

// seqeval's classification_report(right, predicted, digits=4).
TEST(TaggingMetricsTest, TheReportIsThatOfSeqeval) {
  const TaggingScore score = ScoreOf({{"B-A", "I-B", "I-A", "O", "S-C", "E-C"}, {"E-A", "I-A", "S-A", "B-A", "E-A"}},
                                     {{"B-A", "I-A", "I-A", "O", "S-C", "S-C"}, {"E-A", "E-A", "S-A", "B-A", "I-A"}});
  EXPECT_EQ(ToText(score.Report()),
            "              precision    recall  f1-score   support\n"
            "\n"
            "           A     0.8000    0.6667    0.7273         6\n"
            "           B     0.0000    0.0000    0.0000         1\n"
            "           C     1.0000    1.0000    1.0000         2\n"
            "\n"
            "   micro avg     0.8571    0.6667    0.7500         9\n"
            "   macro avg     0.6000    0.5556    0.5758         9\n"
            "weighted avg     0.7556    0.6667    0.7071         9\n");
  EXPECT_DOUBLE_EQ(score.accuracy(), 7.0 / 11);
}

}  // namespace
}  // namespace weft
