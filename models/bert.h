// BERT-style encoders (Devlin et al., 2019): token, position and segment embeddings, one stack of post-norm blocks, and
// heads for what they are used for.
//
//   Bert bert({.vocabulary = 30522});
//   Var hidden = bert.Encode(tokens, {.lengths = lengths});   // tokens i32 [B, T] → [B, T, C]
//   Var logits = bert.Classify(bert.Pool(hidden), /*classes=*/2);
#ifndef WEFT_MODELS_BERT_H_
#define WEFT_MODELS_BERT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "weft/models/layers.h"

namespace weft {

// What a text's vector is: the mean of its tokens' (Reimers and Gurevych, 2019), or the first one's.
enum class Pooling : uint8_t { kMean, kFirst };

struct BertConfig {
  int64_t vocabulary = 30522;
  int64_t context = 512;  // the most positions
  int64_t segments = 2;   // kinds of segments
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;       // C, a multiple of heads
  int64_t feed_forward = 0;  // F; 0: 4·C
  double dropout = 0.1;
  std::optional<double> attention_dropout, classifier_dropout;  // where they differ from dropout
  double norm_epsilon = 1e-12;
  Activation activation = Activation::kGelu;
  Pooling classifier_pooling = Pooling::kFirst;  // what of a text is classified: kFirst is what Pool gives
  DType dtype = kF32;  // of the weights, and so of all that is computed from them: kF32 or kF64
};

absl::Status Validate(const BertConfig& config);

struct BertInputs {
  Var segments;  // i32 [B, T]; null: all 0
  Var lengths;   // i32 [B]: tokens from there on are padding, which nobody attends to; null: none is
};

// Parameters have the names of Hugging Face's BertModel, and of its heads: embeddings.word_embeddings.weight,
// encoder.layer.0.attention.self.query.weight, pooler.dense.weight, cls.predictions.bias, classifier.weight, ...
class Bert {
 public:
  explicit Bert(const BertConfig& config) : config_(config) {}

  Var Encode(Var tokens, const BertInputs& inputs = {}) const;  // i32 [B, T] with T at most the context → [B, T, C]
  Var Pool(Var hidden) const;                                   // [B, T, C] → [B, C], from the first token
  Var MaskedTokens(Var hidden) const;  // [B, T, C] → logits [B, T, V]; the head's weight is the token table
  Var NextSentence(Var pooled) const;  // [B, C] → logits [B, 2]: 0 where the second sentence follows the first
  Var Classify(Var x, int64_t classes) const;    // [..., C] → logits [..., classes], after dropout
  Var Mean(Var hidden, Var lengths = {}) const;  // over the tokens that are not padding: [B, T, C] → [B, C]
  // Of a whole text, pooled as the configuration says: [B, T, C] → logits [B, classes].
  Var ClassifyText(Var hidden, Var lengths, int64_t classes) const;
  // Of the tokens that are not padding, scaled to length 1: [B, T, C] → [B, C].
  Var SentenceEmbedding(Var hidden, Var lengths = {}, Pooling pooling = Pooling::kMean) const;

  const BertConfig& config() const { return config_; }

 private:
  BertConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_BERT_H_
