// An LstmTranslator records an encoder-decoder of LSTMs with additive attention (Bahdanau et al., 2015), a recurrent
// model to compare with the Transformer. It takes the same tokens and has the same loss.
//
//   LstmTranslator model({.source_vocabulary = 8000, .target_vocabulary = 8000});
//   Var logits = model.Logits(source, target);                         // i32 [B, S], i32 [B, T] → [B, T, V]
//   Var tokens = model.Greedy(source, lengths, /*begin=*/1, /*steps=*/20);   // i32 [B, 20]
#ifndef WEFT_MODELS_LSTM_TRANSLATOR_H_
#define WEFT_MODELS_LSTM_TRANSLATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/ops/ops.h"

namespace weft {

struct LstmTranslatorConfig {
  int64_t source_vocabulary = 37000, target_vocabulary = 37000;
  int64_t context = 48;            // maximum number of tokens on either side; graphs grow with the number of tokens
  int64_t width = 256;             // C, even: of embeddings, of both directions together, and of the decoder's state
  double dropout = 0.1;            // probability after embeddings and before the output layer
  double label_smoothing = 0.1;    // as TransformerConfig has it
  bool shared_embeddings = false;  // true: both sides have one token table, and equal vocabularies
  DType dtype = kF32;              // kF32 or kF64, for weights and so for all computed values
};

// Returns InvalidArgument if `config` does not describe a model that LstmTranslator can record.
absl::Status Validate(const LstmTranslatorConfig& config);

// The encoder has one LSTM of width C/2 in each direction. Step t of the decoder is
//   context = attention(hidden); hidden', cell' = lstm([embedding, context], hidden, cell);
//   logits = table · tanh(W [hidden', context, embedding] + b)
// The first hidden state is tanh of a layer on the last state of the backward LSTM.
class LstmTranslator {
 public:
  explicit LstmTranslator(const LstmTranslatorConfig& config) : config_(config) {}

  // Returns logits [B, T, V] of the token after each of `target`, i32 [B, T], which begins with the begin token.
  // `source`: i32 [B, S]. `source_lengths`: i32 [B]; source tokens at or beyond it are padding; null: no padding.
  Var Logits(Var source, Var target, Var source_lengths = {}) const;
  // Returns the mean cross-entropy, with label smoothing, of the targets `next`, i32 [B, T]; targets -100 are ignored.
  Var Loss(Var logits, Var next) const;
  // Returns the likeliest token after each earlier one, i32 [B, steps], from the token `begin` on. What follows an end
  // token has no meaning.
  Var Greedy(Var source, Var source_lengths, int32_t begin, int64_t steps) const;

  const LstmTranslatorConfig& config() const { return config_; }

 private:
  LstmTranslatorConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_LSTM_TRANSLATOR_H_
