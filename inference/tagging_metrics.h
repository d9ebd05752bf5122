// A TaggingScore compares predicted tags of words, such as B-PER, I-PER and O, with the right ones. It counts entities,
// which are sequences of words, as the Python package seqeval does in its default mode. So an entity is right if its
// type, first word and last word are.
//
//   TaggingScore score;
//   score.Add({"B-PER", "I-PER", "O"}, {"B-PER", "I-PER", "B-LOC"});   // a sentence
//   score.All().f1   // 2/3
//   score.Report()   // a table: precision, recall and F1 of each type
//
// Tags follow IOB2 (B-, I-, O), IOB1, or IOBES (also E- for the last word and S- for a single one).
#ifndef WEFT_INFERENCE_TAGGING_METRICS_H_
#define WEFT_INFERENCE_TAGGING_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct Entity {
  std::string type;
  size_t first = 0, last = 0;  // indices of words

  bool operator==(const Entity&) const = default;
};
// Returns the entities of the tags of one sentence.
std::vector<Entity> EntitiesOf(absl::Span<const std::string> tags);

// The figures of one type of entities, or of all types. A fraction of nothing is 0.
struct EntityFigures {
  double precision = 0;  // fraction of the predicted entities that are right
  double recall = 0;     // fraction of the right entities that are predicted
  double f1 = 0;         // 2 · precision · recall / (precision + recall)
  int64_t support = 0;   // number of right entities
};

class TaggingScore {
 public:
  // Adds a sentence. Both spans have one tag for each word.
  void Add(absl::Span<const std::string> right, absl::Span<const std::string> predicted);

  // Returns the figures over the entities of all types together, seqeval's "micro avg".
  EntityFigures All() const;
  // Returns the means over the types: of equal weight ("macro avg"), or weighted by their support ("weighted avg").
  EntityFigures Macro() const;
  EntityFigures Weighted() const;
  std::map<std::string, EntityFigures> ByType() const;
  double accuracy() const;  // fraction of the words whose tag is right
  int64_t words() const { return words_; }

  // Returns a table in the layout of seqeval's classification_report, with 4 digits.
  std::string Report() const;

 private:
  struct Counts {
    int64_t right = 0, predicted = 0, both = 0;
  };
  static EntityFigures FiguresOf(const Counts& counts);

  std::map<std::string, Counts> counts_;  // by type
  int64_t words_ = 0, equal_ = 0;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_TAGGING_METRICS_H_
