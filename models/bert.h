// A Bert records BERT-style encoders (Devlin et al., 2019). They have token, position and segment embeddings, one stack
// of blocks, and heads for masked tokens, the next sentence, classification and sentence vectors.
//
//   Bert bert({.vocabulary = 30522});
//   Var hidden = bert.Encode(tokens, {.lengths = lengths});   // tokens i32 [B, T] → [B, T, C]
//   Var logits = bert.Classify(bert.Pool(hidden), /*classes=*/2);
#ifndef WEFT_MODELS_BERT_H_
#define WEFT_MODELS_BERT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

// How the vectors of a text's tokens become one vector: their mean (Reimers and Gurevych, 2019), or the first of them.
enum class Pooling : uint8_t { kMean, kFirst };

struct BertConfig {
  int64_t vocabulary = 30522;
  int64_t context = 512;  // maximum number of positions
  int64_t segments = 2;   // number of different segment ids; 0: the model has no table of segments
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;       // C, a multiple of heads
  int64_t feed_forward = 0;  // F; 0: 4·C
  double dropout = 0.1;
  std::optional<double> attention_dropout, classifier_dropout;  // unset: as dropout
  double activation_dropout = 0;                                // probability between the feed-forward layers
  NormOptions norm = {.epsilon = 1e-12};
  Activation activation = Activation::kGelu;
  bool pre_norm = false;  // true: norms come first, and the stack ends with a norm
  bool bias = true;       // true: the blocks' linear layers have biases
  bool gated = false;     // true: feed-forward layers have a gate
  AttentionVariant attention;
  PositionKind positions = PositionKind::kAuto;
  std::optional<Initializer> initializer;        // of linear layers in blocks; unset: Gaussian(0.02)
  bool zero_output = false;                      // true: layers whose results are added to x begin with zeros
  Ablation ablation;                             // for study only: parts that are left out
  Pooling classifier_pooling = Pooling::kFirst;  // the classified vector of a text; kFirst: Pool(hidden)
  DType dtype = kF32;                            // kF32 or kF64, for weights and so for all computed values

  // What the encoders that followed BERT changed. Only published models set these fields; options do not.
  std::string model_type = "bert";    // names the model's files and weights (formats/bert_type.h)
  int64_t embedding_width = 0;        // E of the embeddings, which a linear layer brings to C; 0: C, without this layer
  bool shared_distance_bias = false;  // all layers have the first layer's table of distance biases
  bool segment_inputs = true;         // false: each token has segment 0, also in pairs of texts
  std::optional<int64_t> padding;     // set: positions begin at `padding` + 1, and leave out tokens of this id
  std::optional<Activation> pooler_activation;  // of Pool; unset: tanh
  std::optional<Activation> masked_activation;  // of MaskedTokens; unset: activation
  bool shared_layers = false;                   // all layers have the weights of the first (Lan et al., 2020)
  double next_sentence_dropout = 0;             // probability of dropout before NextSentence
  // Of ModernBERT (Warner et al., 2024).
  bool first_norm = true;         // false: the first layer has no norm before attention; needs pre_norm
  bool result_dropout = true;     // false: attention_dropout, and not `dropout`, is for results of attention, too,
                                  // and results of feed-forward layers have no dropout
  bool shared_transform = false;  // the layers before the output of MaskedTokens are also those of Classify
  bool transform_bias = true;     // the linear one of these layers has a bias
  bool masked_bias = true;        // the output of MaskedTokens has a bias
};

// Returns InvalidArgument if `config` does not describe a model that Bert can record.
absl::Status Validate(const BertConfig& config);

struct BertInputs {
  Var segments;  // i32 [B, T]; null: all 0. Unused unless config.segment_inputs
  Var lengths;   // i32 [B]: no token attends to tokens at or beyond it, which are padding; null: no padding.
                 // Or i32 [B, T]: 0 for each token that is padding, here and for the heads below
};

// Records a BERT. Parameters have the names of Hugging Face's BertModel and its heads:
// embeddings.word_embeddings.weight, encoder.layer.0.attention.self.query.weight, pooler.dense.weight,
// cls.predictions.bias, classifier.weight, ...
class Bert {
 public:
  explicit Bert(const BertConfig& config) : config_(config) {}

  // Returns the hidden states [B, T, C] of `tokens`, i32 [B, T]. T is at most the context.
  Var Encode(Var tokens, const BertInputs& inputs = {}) const;

  // Heads. `hidden` is a result of Encode, [B, T, C].
  Var Pool(Var hidden) const;          // [B, C]: activation of a layer on the first token
  Var MaskedTokens(Var hidden) const;  // logits [..., V] of [..., C]; the head's weight is the token table
  Var NextSentence(Var pooled) const;  // logits [B, 2] of [B, C]; class 0: the second sentence follows
  // Returns logits [..., classes] of [..., C], after the layers of config().shared_transform and dropout.
  Var Classify(Var x, int64_t classes) const;
  Var AnswerSpan(Var hidden) const;              // logits [B, T, 2]: an answer begins, or ends, at the token
  Var Replaced(Var hidden) const;                // logits [B, T, 1]: the token was replaced (Clark et al., 2020)
  Var Mean(Var hidden, Var lengths = {}) const;  // [B, C]: mean over the tokens that are not padding
  // Returns logits [B, classes] of whole texts. config().classifier_pooling selects Mean or Pool before Classify. With
  // config().shared_transform, the first token's vector is in place of Pool.
  Var ClassifyText(Var hidden, Var lengths, int64_t classes) const;
  // Returns vectors [B, C] of whole texts, scaled to length 1.
  Var SentenceEmbedding(Var hidden, Var lengths = {}, Pooling pooling = Pooling::kMean) const;

  const BertConfig& config() const { return config_; }

 private:
  Var First(Var hidden) const;  // [B, C]: the first token
  Var Transform(Var x) const;   // [..., E] of [..., C]: a linear layer with its activation, and a norm

  BertConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_BERT_H_
