// These functions record recurrent layers: the LSTM (Hochreiter and Schmidhuber, 1997; with a forget gate: Gers et al.,
// 2000) and the additive attention of a decoder's state to an encoder's states (Bahdanau et al., 2015). A layer over T
// positions is recorded as T steps, so graphs grow with T.
//
//   const LstmResult encoded = Lstm("forward", x, 256);                     // x [B, T, C'] → outputs [B, T, 256]
//   const AdditiveAttention attention("attention", encoded.outputs, 256, mask);
//   const Var context = attention.Context(state.hidden);                    // [B, 256]
#ifndef WEFT_MODELS_RECURRENT_H_
#define WEFT_MODELS_RECURRENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/models/layers.h"
#include "weft/ops/ops.h"

namespace weft {

struct LstmState {
  Var hidden, cell;  // [B, C]; both null: zeros
};

// The weights of an LSTM, which all steps share. They have the names, shapes and initial values of PyTorch's LSTMCell:
// "NAME.weight_ih" [4·C, C'], "NAME.weight_hh" [4·C, C], "NAME.bias_ih" and "NAME.bias_hh" [4·C].
class LstmCell {
 public:
  // `inputs`: C', the width of a step's input. `width`: C.
  LstmCell(absl::string_view name, Tape* tape, DType dtype, int64_t inputs, int64_t width);

  // Returns the part of the gates that depends on inputs x [..., C'], for all of them in one product: [..., 4·C].
  Var FromInput(Var x) const;
  // Returns the state after one step:
  //   i, f, g, o = from_input + W_hh · hidden + b_hh;  cell' = σ(f) · cell + σ(i) · tanh(g);  hidden' = σ(o) ·
  //   tanh(cell')
  // `from_input`: [B, 4·C].
  LstmState Step(Var from_input, const LstmState& state) const;

 private:
  Var weight_input_, weight_hidden_, bias_input_, bias_hidden_;
};

struct LstmOptions {
  bool reverse = false;  // true: reads from the last position to the first
  Var lengths;           // i32 [B]: a step at or beyond a text's length leaves its state as it is; null: no padding
};
struct LstmResult {
  Var outputs;     // [B, T, C]: the hidden state after each position, in the order of positions; 0 at padding
  LstmState last;  // the state after the last step
};
// Records an LSTM of width C over x [B, T, C'], with T > 0. Fails the tape if x has another rank.
LstmResult Lstm(absl::string_view name, Var x, int64_t width, const LstmOptions& options = {});

// Attention of one state at a time to a memory. The score of state q and memory row m is v · tanh(W q + U m). The
// weights are "NAME.query.weight" [A, C], "NAME.key.weight" [A, C'] and "NAME.score.weight" [1, A].
class AdditiveAttention {
 public:
  // `memory`: [B, S, C']. `query_width`: C. `width`: A. `mask`: bool [B, S], true hides a row; null: no mask.
  AdditiveAttention(absl::string_view name, Var memory, int64_t query_width, int64_t width, Var mask = {});

  // Returns the mean of the memory's rows, weighted by softmax(scores), for `query` [B, C]: [B, C'].
  Var Context(Var query) const;

 private:
  Var memory_, mask_, keys_;  // keys [B, S, A]
  Var query_weight_, score_weight_;
};

// An encoder-decoder of LSTMs with additive attention (Bahdanau et al., 2015), a recurrent model to compare with the
// Transformer. It takes the same tokens and has the same loss.
//
//   LstmTranslator model({.source_vocabulary = 8000, .target_vocabulary = 8000});
//   Var logits = model.Logits(source, target);   // i32 [B, S], i32 [B, T] → [B, T, V]
//   Var loss = model.Loss(logits, next);         // with label smoothing
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

 private:
  LstmTranslatorConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_RECURRENT_H_
