// Everything that does not depend on the state is computed for all positions at once. A step has one product.
#include "weft/models/recurrent.h"

#include <cmath>
#include <limits>

#include "weft/base/status.h"

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
  LstmState state = options.initial;
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

}  // namespace weft
