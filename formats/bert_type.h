// A BertType describes the files of one model_type of encoders in Hugging Face: the keys of config.json and the names
// of weights. The model is always a Bert (models/bert.h). Fields of BertConfig express how types differ. bert_type.cc
// has the types and their table. Only ModernBERT has its own file, modernbert.cc. No other folder
// includes this header.
#ifndef WEFT_FORMATS_BERT_TYPE_H_
#define WEFT_FORMATS_BERT_TYPE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"
#include "weft/models/bert.h"

namespace weft {

struct BertType {
  absl::string_view prefix;  // comes before the names of all tensors except those of heads
  // Reads or writes the keys of config.json. Before reading, sets the defaults of the type's class; `config` has those
  // of BERT.
  void (*list)(Keys& keys, BertConfig& config);
  // The endings of the names of classes that can be read: "ForMaskedLM". The type's name comes before them.
  absl::Span<const absl::string_view> classes;
  // The layers whose names are not BERT's. `classifier`: of the class that classifies texts, if it differs from others.
  absl::Span<const LayerName> layers = {}, heads = {}, classifier = {};
};
extern const BertType kModernBertType;

// The endings of the names of classes. "Bert", or the name of another type, comes before them.
inline constexpr char kModelClass[] = "Model", kMaskedClass[] = "ForMaskedLM", kTrainingClass[] = "ForPreTraining",
                      kNextClass[] = "ForNextSentencePrediction", kTextClass[] = "ForSequenceClassification",
                      kTokensClass[] = "ForTokenClassification", kAnswerClass[] = "ForQuestionAnswering",
                      kChoiceClass[] = "ForMultipleChoice";
// The values of the key classifier_pooling.
inline constexpr std::pair<const char*, Pooling> kPoolings[] = {{"cls", Pooling::kFirst}, {"mean", Pooling::kMean}};

// Returns every model_type, in the order of the table.
absl::Span<const absl::string_view> BertModelTypes();
// Reports whether `suffix` is among the classes of `config`'s type.
bool HasClass(const BertConfig& config, absl::string_view suffix);
// Returns the lists of rules that turn Hugging Face's names into those of Bert (ReadFolderWeights).
std::vector<std::vector<Weights::Rule>> OwnNames(const PublishedBert& bert);
// Gives `weights`, of a model or an adapter, Hugging Face's names. `heads`: whether the class has heads, so that names
// have the type's prefix. `classifier`: whether it classifies texts.
absl::Status Publish(absl::string_view model_type, bool heads, bool classifier, Weights* weights);

}  // namespace weft

#endif  // WEFT_FORMATS_BERT_TYPE_H_
