// Everything that does not depend on the state is computed for all positions at once. A step of an LSTM has one
// product. The decoder's weights are recorded once; its steps share them.
#include "weft/models/recurrent.h"

#include <cmath>
#include <limits>

#include "weft/base/status.h"
#include "weft/models/validate.h"

namespace weft {

LstmCell::LstmCell(absl::string_view name, Tape* tape, DType dtype, int64_t inputs, int64_t width) {
  const Scope scope(tape, name);
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  const Initializer initializer = Uniform(-bound, bound);
  weight_input_ = tape->Parameter("weight_ih", {dtype, {4 * width, inputs}}, initializer);
  weight_hidden_ = tape->Parameter("weight_hh", {dtype, {4 * width, width}}, initializer);
  bias_input_ = tape->Parameter("bias_ih", {dtype, {4 * width}}, initializer);
  bias_hidden_ = tape->Parameter("bias_hh", {dtype, {4 * width}}, initializer);
}

Var LstmCell::FromInput(Var x) const { return MatMul(x, weight_input_, {.transpose_b = true}) + bias_input_; }

LstmState LstmCell::Step(Var from_input, const LstmState& state) const {
  Var gates = from_input + bias_hidden_;
  if (state.hidden) gates = gates + MatMul(state.hidden, weight_hidden_, {.transpose_b = true});
  const VarList parts = Split(gates, -1, 4);  // [B, C] each
  const Var written = Sigmoid(parts[0]) * Tanh(parts[2]);
  const Var cell = state.cell ? Sigmoid(parts[1]) * state.cell + written : written;
  return {Sigmoid(parts[3]) * Tanh(cell), cell};
}

LstmResult Lstm(absl::string_view name, Var x, int64_t width, const LstmOptions& options) {
  Tape* const tape = x.tape;
  if (x.shape().rank() != 3 || x.dim(1) == 0) {
    tape->Fail(ShapeError("lstm", "x must be [B,T,C] with T > 0", {x.type()}));
  }
  if (!tape->status().ok()) return {tape->Poison(), {tape->Poison(), tape->Poison()}};
  const int64_t batch = x.dim(0), length = x.dim(1);
  const LstmCell cell(name, tape, x.dtype(), x.dim(2), width);
  const Var from_input = cell.FromInput(x);  // [B, T, 4·C]
  const Var lengths = options.lengths ? Reshape(options.lengths, {batch, 1}) : Var{};
  LstmState state;
  VarList outputs(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = options.reverse ? length - 1 - i : i;
    LstmState next = cell.Step(Reshape(Slice(from_input, 1, t, t + 1), {batch, 4 * width}), state);
    if (lengths) {
      const Var inside = Less(Fill(tape, {kI32, {batch, 1}}, static_cast<double>(t)), lengths);
      const auto keep = [&](Var now, Var before) {
        return Where(inside, now, before ? before : Fill(tape, now.type(), 0));
      };
      next = {keep(next.hidden, state.hidden), keep(next.cell, state.cell)};
    }
    state = next;
    outputs[static_cast<size_t>(t)] = Reshape(state.hidden, {batch, 1, width});
  }
  const Var all = Concat(outputs, 1);
  if (!lengths) return {all, state};
  const Var padding = Not(Less(Iota(tape, kI32, length), lengths));  // [B, T]
  return {MaskFill(all, Reshape(padding, {batch, length, 1}), 0), state};
}

AdditiveAttention::AdditiveAttention(absl::string_view name, Var memory, int64_t query_width, int64_t width, Var mask)
    : memory_(memory), mask_(mask) {
  Tape* const tape = memory.tape;
  const Scope scope(tape, name);
  keys_ = Linear("key", memory, width, {.bias = false, .initializer = XavierUniform()});
  query_weight_ = tape->Parameter("query.weight", {memory.dtype(), {width, query_width}}, XavierUniform());
  score_weight_ = tape->Parameter("score.weight", {memory.dtype(), {1, width}}, XavierUniform());
}

Var AdditiveAttention::Context(Var query) const {
  const int64_t batch = memory_.dim(0), sources = memory_.dim(1), width = keys_.dim(2);
  const Var q = Reshape(MatMul(query, query_weight_, {.transpose_b = true}), {batch, 1, width});
  Var scores = MatMul(Tanh(q + keys_), score_weight_, {.transpose_b = true});  // [B, S, 1]
  scores = Reshape(scores, {batch, 1, sources});
  if (mask_) scores = MaskFill(scores, Reshape(mask_, {batch, 1, sources}), -std::numeric_limits<double>::infinity());
  return Reshape(MatMul(Softmax(scores), memory_), {batch, memory_.dim(2)});
}

namespace {

struct Encoded {
  Var memory;  // [B, S, C]
  Var mask;    // bool [B, S], true at padding; null: no padding
  Var last;    // [B, C/2]: the last state of the backward LSTM, which has read the whole source
  Var table;   // the source's token table
};

EmbeddingTableOptions TableOptions(const LstmTranslatorConfig& config) {
  return {.initializer = Gaussian(1 / std::sqrt(static_cast<float>(config.width))), .dtype = config.dtype};
}

Encoded Encode(Var source, Var lengths, const LstmTranslatorConfig& config) {
  Tape* const tape = source.tape;
  Encoded encoded;
  encoded.table = EmbeddingTable(config.shared_embeddings ? "shared" : "encoder.embed_tokens", tape,
                                 config.source_vocabulary, config.width, TableOptions(config));
  const Scope scope(tape, "encoder");
  const Var x = Dropout(Embedding(encoded.table, source), config.dropout);  // [B, S, C]
  const LstmResult forward = Lstm("forward", x, config.width / 2, {.lengths = lengths});
  const LstmResult backward = Lstm("backward", x, config.width / 2, {.reverse = true, .lengths = lengths});
  encoded.memory = Concat({forward.outputs, backward.outputs}, 2);
  encoded.last = backward.last.hidden;
  if (lengths) {
    const int64_t batch = source.dim(0);
    encoded.mask = Not(Less(Iota(tape, kI32, source.dim(1)), Reshape(lengths, {batch, 1})));
  }
  return encoded;
}

constexpr char kModel[] = "lstm translator";

}  // namespace

absl::Status Validate(const LstmTranslatorConfig& config) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"source_vocabulary", config.source_vocabulary, 1, kMaxTokens},
                                   {"target_vocabulary", config.target_vocabulary, 1, kMaxTokens},
                                   {"context", config.context, 1, kMaxLayers},
                                   {"width", config.width, 2, kMaxFeatures}}));
  if (config.width % 2 != 0) {
    return InvalidArgument("width ", config.width, " is odd, but each direction of the encoder has half of it");
  }
  if (config.shared_embeddings && config.source_vocabulary != config.target_vocabulary) {
    return InvalidArgument("source_vocabulary ", config.source_vocabulary, " and target_vocabulary ",
                           config.target_vocabulary, " differ, but share their embeddings");
  }
  WEFT_RETURN_IF_ERROR(CheckDropout(config.label_smoothing, "label_smoothing"));
  WEFT_RETURN_IF_ERROR(CheckDType(config.dtype));
  return CheckDropout(config.dropout);
}

Var LstmTranslator::Logits(Var source, Var target, Var source_lengths) const {
  Tape* const tape = source.tape;
  const Scope scope(tape, "lstm_translator", Scope::kNoNames);
  if (!CheckTokens(kModel, "source's tokens", source, config_)) return tape->Poison();
  if (!CheckTokens(kModel, "target's tokens", target, config_)) return tape->Poison();
  if (target.dim(1) == 0) tape->Fail(ShapeError(kModel, "target must be [B,T] with T > 0", {target.type()}));
  if (!tape->status().ok()) return tape->Poison();
  const Encoded encoded = Encode(source, source_lengths, config_);
  const int64_t batch = target.dim(0), length = target.dim(1), width = config_.width;
  const Var table = config_.shared_embeddings ? encoded.table
                                              : EmbeddingTable("decoder.embed_tokens", tape, config_.target_vocabulary,
                                                               width, TableOptions(config_));
  const AdditiveAttention attention("decoder.attention", encoded.memory, width, width, encoded.mask);
  const LstmCell cell("decoder.cell", tape, config_.dtype, 2 * width, width);
  LstmState state;
  state.hidden = Tanh(Linear("decoder.initial", encoded.last, width, {.initializer = XavierUniform()}));
  state.cell = Fill(tape, state.hidden.type(), 0);
  const Var weight = tape->Parameter("decoder.readout.weight", {config_.dtype, {width, 3 * width}}, XavierUniform());
  const Var bias = tape->Parameter("decoder.readout.bias", {config_.dtype, {width}}, Zeros());
  const Var embedded = Dropout(Embedding(table, target), config_.dropout);  // [B, T, C]
  VarList steps;
  for (int64_t t = 0; t < length; ++t) {
    const Var token = Reshape(Slice(embedded, 1, t, t + 1), {batch, width});
    const Var context = attention.Context(state.hidden);
    state = cell.Step(cell.FromInput(Concat({token, context}, 1)), state);
    steps.push_back(Reshape(Concat({state.hidden, context, token}, 1), {batch, 1, 3 * width}));  // [B, 1, 3·C]
  }
  const Var readout = Tanh(MatMul(Concat(steps, 1), weight, {.transpose_b = true}) + bias);  // [B, T, C]
  return MatMul(Dropout(readout, config_.dropout), table, {.transpose_b = true});
}

Var LstmTranslator::Loss(Var logits, Var next) const {
  return CrossEntropy(logits, next, {.label_smoothing = config_.label_smoothing});
}

}  // namespace weft
