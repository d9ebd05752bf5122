// MPNet (Song et al., 2020) is a BERT without segments. All layers add the same learnt numbers to their scores, by
// buckets of distances.
#include "weft/formats/all_bert_types.h"

namespace weft {
namespace {

template <class Keys>
void ListMpNet(Keys& keys, BertConfig& config) {
  ListBertKeys(keys, config);
  ListTables(keys, config);
  keys.Only("relative_attention_num_buckets",
            config.attention.buckets);  // transformers uses the first 32 of any number
}

void ReadMpNet(KeyReader& keys, BertConfig& config) {
  config.vocabulary = 30527;
  config.segments = 0;
  config.segment_inputs = false;
  config.padding = 1;  // whatever pad_token_id is
  config.positions = PositionKind::kLearned;
  config.attention = {.distance_bias = DistanceBias::kBuckets, .buckets = 32, .max_distance = 128};
  config.shared_distance_bias = true;
  config.masked_activation = Activation::kGelu;
  ListMpNet(keys, config);
}

constexpr LayerName kLayers[] = {
    {"encoder.relative_attention_bias", "encoder.layer.0.attention.relative_attention_bias"},
    {"encoder.layer.#.attention.attn.q", "encoder.layer.#.attention.self.query"},
    {"encoder.layer.#.attention.attn.k", "encoder.layer.#.attention.self.key"},
    {"encoder.layer.#.attention.attn.v", "encoder.layer.#.attention.self.value"},
    {"encoder.layer.#.attention.attn.o", "encoder.layer.#.attention.output.dense"},
    {"encoder.layer.#.attention.LayerNorm", "encoder.layer.#.attention.output.LayerNorm"}};

}  // namespace

constexpr BertType kMpNetType = {.prefix = "mpnet.",
                                 .read = ReadMpNet,
                                 .write = ListMpNet<KeyWriter>,
                                 .classes = kUsualClasses,
                                 .layers = kLayers,
                                 .heads = kRobertaHeads,
                                 .classifier = kRobertaClassifier};

}  // namespace weft
