// ELECTRA (Clark et al., 2020) has a generator, which guesses masked tokens, and a discriminator, which finds the
// tokens that the generator replaced. Both are BERTs without pooler whose embeddings may be narrower than the model.
#include "weft/formats/all_bert_types.h"

namespace weft {
namespace {

template <class Keys>
void ListElectra(Keys& keys, BertConfig& config) {
  ListBertKeys(keys, config);
  int64_t width = config.embedding_width != 0 ? config.embedding_width : config.width;
  keys.Field("embedding_size", width);
  config.embedding_width = width == config.width ? 0 : width;
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
}

void ReadElectra(KeyReader& keys, BertConfig& config) {
  config.embedding_width = 128;
  config.width = 256;
  config.heads = 4;
  config.feed_forward = 1024;
  config.pooler_activation = config.masked_activation = Activation::kGelu;
  ListElectra(keys, config);
  if (keys.IsNull("num_attention_heads")) keys.Refuse("num_attention_heads", "a whole number");
  // The summary is a layer of a head that no model here has.
  keys.Harmless(
      {"position_embedding_type", "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});
}

constexpr absl::string_view kClasses[] = {kModelClass, kTrainingClass, kMaskedClass,
                                          kTextClass,  kTokensClass,   kAnswerClass};
constexpr LayerName kHeads[] = {{"generator_predictions.dense", "cls.predictions.transform.dense"},
                                {"generator_predictions.LayerNorm", "cls.predictions.transform.LayerNorm"},
                                {"generator_lm_head", "cls.predictions"}};
constexpr LayerName kClassifier[] = {{"classifier.dense", "pooler.dense"}, {"classifier.out_proj", "classifier"}};

}  // namespace

constexpr BertType kElectraType = {.prefix = "electra.",
                                   .read = ReadElectra,
                                   .write = ListElectra<KeyWriter>,
                                   .classes = kClasses,
                                   .heads = kHeads,
                                   .classifier = kClassifier};

}  // namespace weft
