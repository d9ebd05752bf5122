// ReportClasses computes precision, recall and F1 of each class from a confusion matrix, and their averages, equal to
// scikit-learn's classification_report.
//
//   ConfusionMatrix confusion = {{8, 2}, {1, 9}};   // [right class, predicted class]
//   const ClassReport report = ReportClasses(confusion);
//   report.classes[0].precision   // 8 / 9
//   std::fputs(ToText(confusion, {"neg", "pos"}).c_str(), stdout);
#ifndef WEFT_INFERENCE_METRICS_H_
#define WEFT_INFERENCE_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// The number of examples of each right class that got each prediction: confusion[right][predicted].
using ConfusionMatrix = std::vector<std::vector<int64_t>>;

// Returns the confusion matrix of `classes` classes. All elements of `right` and `predicted` are below `classes`.
ConfusionMatrix CountConfusions(absl::Span<const int32_t> right, absl::Span<const int32_t> predicted, size_t classes);

struct ClassQuality {
  double precision = 0;  // fraction of the examples with this prediction that are right; 0 if there are none
  double recall = 0;     // fraction of the examples of this class that are found; 0 if there are none
  double f1 = 0;         // harmonic mean of both; 0 if both are 0
  int64_t support = 0;   // number of examples of this class
};

struct ClassReport {
  std::vector<ClassQuality> classes;
  // Means over the classes that occur, as a right class or as a prediction. `macro` counts each class once; `weighted`
  // counts it by its support. Their supports are the number of all examples.
  ClassQuality macro, weighted;
};
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

}  // namespace weft

#endif  // WEFT_INFERENCE_METRICS_H_
