// RoBERTa (Liu et al., 2019) is a BERT without segments whose positions begin after the number of its padding token.
// XLM-R and CamemBERT have the same keys and names.
#include "absl/strings/str_cat.h"
#include "weft/formats/all_bert_types.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

template <class Keys>
void ListRoberta(Keys& keys, BertConfig& config) {
  int64_t padding = config.padding.value_or(1);
  keys.Field("pad_token_id", padding);
  config.padding = padding;
  ListBertKeys(keys, config);
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
}

void ReadRoberta(KeyReader& keys, BertConfig& config) {
  config.segment_inputs = false;
  config.masked_activation = Activation::kGelu;
  const nlohmann::ordered_json* const padding = keys.Find("pad_token_id");
  if (keys.IsNull("pad_token_id") || (padding != nullptr && !(*padding >= 0 && *padding <= kMaxPositions))) {
    return keys.Refuse("pad_token_id", absl::StrCat("0 .. ", kMaxPositions));
  }
  ListRoberta(keys, config);
  keys.Harmless({"position_embedding_type"});
}

}  // namespace

constexpr BertType kRobertaType = {.prefix = "roberta.",
                                   .read = ReadRoberta,
                                   .write = ListRoberta<KeyWriter>,
                                   .classes = kUsualClasses,
                                   .heads = kRobertaHeads,
                                   .classifier = kRobertaClassifier};

}  // namespace weft
