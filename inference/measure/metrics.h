// Figures that compare predictions with what is right: of classes, of tags of words, and of numbers.
//
//   ConfusionMatrix confusion = {{8, 2}, {1, 9}};   // [right class, predicted class]
//   const ClassReport report = ReportClasses(confusion);
//   report.classes[0].precision   // 8 / 9
//   std::fputs(ToText(confusion, {"neg", "pos"}).c_str(), stdout);
//
//   PearsonCorrelation(right, predicted)    // of the numbers
//   SpearmanCorrelation(right, predicted)   // of their ranks
#ifndef WEFT_INFERENCE_MEASURE_METRICS_H_
#define WEFT_INFERENCE_MEASURE_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// The number of examples of each right class that got each prediction: confusion[right][predicted].
using ConfusionMatrix = std::vector<std::vector<int64_t>>;

// Returns the confusion matrix of `classes` classes. All elements of `right` and `predicted` are below `classes`.
ConfusionMatrix CountConfusions(absl::Span<const int32_t> right, absl::Span<const int32_t> predicted, size_t classes);

// The figures of a class of examples, or of a type of entities. A fraction of nothing is 0.
struct Quality {
  double precision = 0;  // fraction of what was predicted that is right
  double recall = 0;     // fraction of what is right that was predicted
  double f1 = 0;         // harmonic mean of both; 0 if both are 0
  int64_t support = 0;   // number of examples of the class, or of entities of the type
};

struct ClassReport {
  std::vector<Quality> classes;
  // Means over the classes that occur, as a right class or as a prediction. `macro` counts each class once; `weighted`
  // counts it by its support. Their supports are the number of all examples.
  Quality macro, weighted;
};
// Equals scikit-learn's classification_report.
ClassReport ReportClasses(const ConfusionMatrix& confusion);

struct Confusion {
  int32_t right, predicted;
  int64_t count;
};
// Returns up to `max` pairs of different classes that were confused, the most frequent first; equally frequent ones by
// their right, then their predicted class.
std::vector<Confusion> MostFrequentConfusions(const ConfusionMatrix& confusion, size_t max);

// Returns a table of the classes, the averages and the confusion matrix, in lines of at most 80 characters. Of more
// than 20 classes, shows the 10 with the lowest F1. Shows the most frequent confusions instead of a matrix that is too
// wide. `labels`: a label of each class; long labels are cut.
std::string ToText(const ConfusionMatrix& confusion, absl::Span<const std::string> labels);

// The figures of entities by their type, and over all of them: seqeval's "micro avg", and the means over the types, of
// equal weight ("macro avg") or weighted by their support ("weighted avg").
struct TagReport {
  std::map<std::string, Quality> types;
  Quality all, macro, weighted;
};
// Returns a table in the layout of seqeval's classification_report, with 4 digits.
std::string ToText(const TagReport& report);

// Compares predicted tags of words, such as B-PER, I-PER and O, with the right ones. It counts entities, which are
// sequences of words, as the Python package seqeval does in its default mode. So an entity is right if its type, first
// word and last word are. Tags follow IOB2 (B-, I-, O), IOB1, or IOBES (also E- for the last word and S- for a single
// one).
//
//   TaggingScore score;
//   score.Add({"B-PER", "I-PER", "O"}, {"B-PER", "I-PER", "B-LOC"});   // a sentence
//   score.Report().all.f1   // 2/3
class TaggingScore {
 public:
  // Adds a sentence. Both spans have one tag for each word.
  void Add(absl::Span<const std::string> right, absl::Span<const std::string> predicted);

  TagReport Report() const;
  double accuracy() const;  // fraction of the words whose tag is right
  int64_t words() const { return words_; }

 private:
  struct Counts {
    int64_t right = 0, predicted = 0, both = 0;
  };

  std::map<std::string, Counts> counts_;  // by type
  int64_t words_ = 0, equal_ = 0;
};

// Returns Pearson's r: cov(x, y) / (σ_x · σ_y), from -1 to 1. The spans have equal sizes. Returns NaN if there are
// fewer than two values, or if all values of x or of y are equal.
double PearsonCorrelation(absl::Span<const double> x, absl::Span<const double> y);
// Returns Spearman's ρ: Pearson's r of the ranks.
double SpearmanCorrelation(absl::Span<const double> x, absl::Span<const double> y);
// Returns the rank of each value, from 1. Equal values have the mean of their ranks.
std::vector<double> RankValues(absl::Span<const double> values);

}  // namespace weft

#endif  // WEFT_INFERENCE_MEASURE_METRICS_H_
