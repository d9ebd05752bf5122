// A BertType describes the files of one model_type of encoders in Hugging Face: the keys of config.json and the names
// of weights. The model is always a Bert (models/bert.h). Fields of BertConfig express how types differ.
//
// To add a type, write one file with a `constexpr BertType`, such as distilbert.cc, and name it in the table of
// bert_type.cc. No other folder includes this header.
#ifndef WEFT_FORMATS_BERT_TYPE_H_
#define WEFT_FORMATS_BERT_TYPE_H_

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
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
  // Reads the keys of config.json, after setting the defaults of the type's class. `config` has those of BERT.
  void (*read)(KeyReader& keys, BertConfig& config);
  void (*write)(KeyWriter& keys, BertConfig& config);
  // The endings of the names of classes that can be read: "ForMaskedLM". The type's name comes before them.
  absl::Span<const absl::string_view> classes;
  // The layers whose names are not BERT's. `classifier`: of the class that classifies texts, if it differs from others.
  absl::Span<const LayerName> layers = {}, heads = {}, classifier = {};
};

// The endings of the names of classes. "Bert", or the name of another type, comes before them.
inline constexpr char kModelClass[] = "Model", kMaskedClass[] = "ForMaskedLM", kTrainingClass[] = "ForPreTraining",
                      kNextClass[] = "ForNextSentencePrediction", kTextClass[] = "ForSequenceClassification",
                      kTokensClass[] = "ForTokenClassification", kAnswerClass[] = "ForQuestionAnswering",
                      kChoiceClass[] = "ForMultipleChoice";
// The classes, heads and classifier that several types have.
inline constexpr absl::string_view kUsualClasses[] = {kModelClass,  kMaskedClass, kTextClass,
                                                      kTokensClass, kAnswerClass, kChoiceClass};
// The values of the key classifier_pooling.
inline constexpr std::pair<const char*, Pooling> kPoolings[] = {{"cls", Pooling::kFirst}, {"mean", Pooling::kMean}};
inline constexpr LayerName kRobertaHeads[] = {{"lm_head.dense", "cls.predictions.transform.dense"},
                                              {"lm_head.layer_norm", "cls.predictions.transform.LayerNorm"},
                                              {"lm_head.decoder", "cls.predictions.decoder"},
                                              {"lm_head", "cls.predictions"}};
inline constexpr LayerName kRobertaClassifier[] = {{"classifier.dense", "pooler.dense"},
                                                   {"classifier.out_proj", "classifier"}};

// Returns every model_type, in the order of the table.
absl::Span<const absl::string_view> BertModelTypes();
// Reports whether `suffix` is among the classes of `config`'s type.
bool HasClass(const BertConfig& config, absl::string_view suffix);
// Returns the lists of rules that turn Hugging Face's names into those of Bert (ReadFolderWeights).
std::vector<std::vector<Weights::Rule>> OwnNames(const BertConfig& config);
// Gives `weights`, of a model or an adapter, Hugging Face's names. `heads`: whether the class has heads, so that names
// have the type's prefix. `classifier`: whether it classifies texts.
absl::Status Publish(absl::string_view model_type, bool heads, bool classifier, Weights* weights);

// Lists the keys that most types share.
template <class Keys>
void ListBertKeys(Keys& keys, BertConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  ListEncoder(keys, config);
  keys.Field("attention_probs_dropout_prob", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Only("is_decoder", false);
  keys.Only("tie_word_embeddings", true);
}

// Lists the keys of tables of positions and segments. The first position is config.padding + 1 or, without it, 0.
template <class Keys>
void ListTables(Keys& keys, BertConfig& config) {
  const int64_t first = config.padding ? *config.padding + 1 : 0;
  int64_t positions = config.context + first;
  keys.Field("max_position_embeddings", positions);
  config.context = std::max<int64_t>(positions, 0) - first;
  if (config.segments > 0) keys.Field("type_vocab_size", config.segments);
}

// Lists the key of a classifier's dropout, which is written only if it differs from `dropout`.
template <class Keys>
void ListClassifierDropout(Keys& keys, BertConfig& config) {
  if (std::is_same_v<Keys, KeyReader> || config.classifier_dropout) {
    keys.Field("classifier_dropout", config.classifier_dropout, config.dropout);
  }
}

}  // namespace weft

#endif  // WEFT_FORMATS_BERT_TYPE_H_
