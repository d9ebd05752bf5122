// Records ONNX's layers that read sequences: attention, rotary positions and recurrent layers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// [B, T, heads · D] → [B, heads, T, D].
Var ByHead(Var x, int64_t heads) {
  if (x.shape().rank() == 4) return x;
  if (heads < 1 || x.dim(2) % heads != 0) {
    return x.tape->Fail(InvalidArgument(heads, " heads do not divide ", ToString(x.type())));
  }
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Var ByRow(Var x) { return Reshape(Permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}); }
Var RepeatHeads(Var x, int64_t times) {
  const Shape shape = x.shape();
  const Var apart = BroadcastTo(Unsqueeze(x, 2), {shape.dim(0), shape.dim(1), times, shape.dim(2), shape.dim(3)});
  return Reshape(apart, {shape.dim(0), shape.dim(1) * times, shape.dim(2), shape.dim(3)});
}

struct Problem {
  Var query, key, value;  // [B, heads, length, D]
  double scale, soft_cap;
  VarList masks;  // bools hide scores, numbers are added to them
};

// Returns a mask for Weft, where true hides a source. In the node's bool masks, true shows it. Float masks are added to
// scores and stay as they are. Sources beyond the mask's end are hidden.
Var Hides(Var mask, int64_t sources) {
  const int64_t missing = sources - mask.dim(-1);
  if (mask.dtype() == kBool) return Pad(Not(mask), -1, 0, missing, 1);
  return Pad(mask, -1, 0, missing, kHidden);
}
Var AtLeastRank(Var x, int rank) {
  while (x.tape->status().ok() && x.shape().rank() < rank) x = Unsqueeze(x, 0);
  return x;
}

Problem ProblemOf(const OnnxNode& node) {
  Problem p = {.soft_cap = node.Float("softcap", 0)};
  const int64_t groups = node.Int("kv_num_heads", 1);
  p.query = ByHead(node.in(0), node.Int("q_num_heads", 1));
  p.key = ByHead(node.in(1), groups);
  p.value = ByHead(node.in(2), groups);
  int64_t past = 0;
  if (node.has(4)) {
    past = node.in(4).dim(2);
    p.key = Concat({node.in(4), p.key}, 2);
    p.value = Concat({node.in(5), p.value}, 2);
  }
  p.scale = node.Float("scale", 1 / std::sqrt(static_cast<double>(p.query.dim(3))));
  const int64_t targets = p.query.dim(2), sources = p.key.dim(2);
  if (node.has(3)) p.masks.push_back(AtLeastRank(Hides(node.in(3), sources), 2));
  const Var column = Iota(node.tape(), kI32, sources);
  if (node.Int("is_causal", 0) != 0) {
    Var last = Reshape(Iota(node.tape(), kI32, targets), {targets, 1}) + static_cast<double>(past);
    if (node.has(6)) {  // the targets are the last of each text's sources
      last = last - static_cast<double>(targets) + Reshape(node.in(6), {node.in(6).dim(0), 1, 1, 1});
    }
    p.masks.push_back(Greater(column, last));
  }
  if (node.has(6)) {
    const Var length = node.in(6);
    p.masks.push_back(GreaterEqual(column, Reshape(length, {length.dim(0), 1, 1, 1})));
  }
  return p;
}

// Returns the scores that the node may output: with `mode` 0 before the soft cap, with 1 before masks, with 2 after
// masks, with 3 after softmax.
Var Scores(const Problem& p, int64_t mode) {
  const Var key = RepeatHeads(p.key, p.query.dim(1) / std::max<int64_t>(p.key.dim(1), 1));
  Var scores = p.scale * MatMul(p.query, key, {.transpose_b = true});
  if (p.soft_cap > 0 && mode != 0) scores = p.soft_cap * Tanh(scores / p.soft_cap);
  if (mode < 2) return scores;
  for (Var mask : p.masks) {
    scores = mask.dtype() == kBool ? Where(mask, Number(scores, kHidden), scores) : scores + mask;
  }
  return mode == 2 ? scores : Softmax(scores);
}

OnnxResult Attention(const OnnxNode& node) {
  const Problem p = ProblemOf(node);
  const int64_t heads = p.query.dim(1), mode = node.Int("qk_matmul_output_mode", 0);
  const ScaledDotProductOptions options = {
      .heads = heads, .key_value_heads = p.key.dim(1), .scale = p.scale, .soft_cap = p.soft_cap};
  const Var y = ScaledDotProductAttention(p.query, p.key, p.value, options, p.masks);
  VarList outputs = {node.in(0).shape().rank() == 4 ? ByHead(y, heads) : y};
  if (node.output_count() > 1) outputs.push_back(p.key + 0);
  if (node.output_count() > 2) outputs.push_back(p.value + 0);
  if (node.output_count() > 3) outputs.push_back(Scores(p, mode));
  return outputs;
}

OnnxResult Rotation(const OnnxNode& node) {
  const bool by_head = node.in(0).shape().rank() == 4;
  const Var x = ByHead(node.in(0), node.Int("num_heads", 1));
  int64_t width = node.Int("rotary_embedding_dim", 0);
  if (width == 0) width = x.dim(3);
  Var cosine = node.in(1), sine = node.in(2);  // [B, T, width / 2], or of all positions
  if (node.has(3)) {
    const Var positions = node.ids(3);
    cosine = Gather(cosine, positions, 0);
    sine = Gather(sine, positions, 0);
  }
  const RotaryLayout layout = node.Int("interleaved", 0) != 0 ? RotaryLayout::kPairs : RotaryLayout::kHalves;
  Var y = Rotary(Slice(x, 3, 0, width), Unsqueeze(cosine, 1), Unsqueeze(sine, 1), layout);
  if (width < x.dim(3)) y = Concat({y, Slice(x, 3, width, x.dim(3))}, 3);
  return VarList{by_head ? y : ByRow(y)};
}

// The operands of one time step of one direction of a recurrent layer. Steps are recorded one after the other. x is
// [T, B, I]; each direction has weights [G·H, I] and [G·H, H] for its G gates, and two biases [G·H].
struct Step {
  Var gates;            // the products of the step's input with the weights of all gates, [B, G·H]
  Var recurrent, bias;  // the weights of the hidden state, [G·H, H], and the bias of their product, [G·H]
  Var hidden, cell;     // the states before the step, [B, H]
};
using StepFunction = std::function<void(Step*)>;  // computes the next `hidden` and `cell`

Var Gate(Var gates, int64_t i, int64_t width) { return Slice(gates, -1, i * width, (i + 1) * width); }
Var Product(Var x, Var weight, Var bias) { return MatMul(x, weight, {.transpose_b = true}) + bias; }

// `activations`: the usual functions of a direction, in order.
absl::Status CheckPlain(const OnnxNode& node, size_t inputs, absl::Span<const absl::string_view> activations) {
  if (const onnx::Attribute* const given = node.Find("activations")) {
    for (int i = 0; i < given->strings_size(); ++i) {
      if (given->strings(i) == activations[static_cast<size_t>(i) % activations.size()]) continue;
      return absl::UnimplementedError(absl::StrCat("the activation ", given->strings(i)));
    }
  }
  for (const char* const name : {"layout", "input_forget"}) {
    if (node.Int(name, 0) != 0) return absl::UnimplementedError(absl::StrCat("the attribute ", name));
  }
  if (node.has(4)) return absl::UnimplementedError("sequences of different lengths");
  if (node.input_count() > inputs && node.has(inputs)) return absl::UnimplementedError("peepholes");
  return absl::OkStatus();
}

OnnxResult Layer(const OnnxNode& node, int64_t gates, std::initializer_list<absl::string_view> activations,
                 const StepFunction& step) {
  const bool has_cell = gates == 4;
  WEFT_RETURN_IF_ERROR(CheckPlain(node, has_cell ? 7 : 6, activations));
  const Var x = node.in(0), weight = node.in(1), recurrent = node.in(2);
  const int64_t length = x.dim(0), batch = x.dim(1), width = recurrent.dim(2), directions = weight.dim(0);
  const std::string direction = node.String("direction", "forward");
  if (directions != (direction == "bidirectional" ? 2 : 1) || recurrent.dim(0) != directions || length < 1) {
    return InvalidArgument("its weight ", ToString(weight.shape()), " and input ", ToString(x.shape()),
                           " do not fit the direction ", direction);
  }
  WEFT_RETURN_IF_ERROR(CheckOnnxSteps(length * directions));
  const auto of = [](Var v, int64_t d) { return Squeeze(Slice(v, 0, d, d + 1), {0}); };
  const Var zeros = Fill(x.tape, {x.dtype(), {directions, batch, width}}, 0);
  const Var biases = node.has(3) ? node.in(3) : Fill(x.tape, {x.dtype(), {directions, 2 * gates * width}}, 0);
  std::vector<VarList> rows(static_cast<size_t>(length));
  VarList hiddens, cells;
  for (int64_t d = 0; d < directions; ++d) {
    const Var all = Product(x, of(weight, d), Gate(of(biases, d), 0, gates * width));  // [T, B, G·H]
    Step s = {.gates = {},
              .recurrent = of(recurrent, d),
              .bias = Gate(of(biases, d), 1, gates * width),
              .hidden = of(node.has(5) ? node.in(5) : zeros, d),
              .cell = of(has_cell && node.has(6) ? node.in(6) : zeros, d)};
    for (int64_t i = 0; i < length; ++i) {
      const int64_t t = d == 1 || direction == "reverse" ? length - 1 - i : i;
      s.gates = of(all, t);
      step(&s);
      rows[static_cast<size_t>(t)].push_back(s.hidden);
    }
    hiddens.push_back(s.hidden);
    cells.push_back(s.cell);
  }
  VarList y;
  for (const VarList& row : rows) y.push_back(Stack(row, 0));
  return has_cell ? VarList{Stack(y, 0), Stack(hiddens, 0), Stack(cells, 0)} : VarList{Stack(y, 0), Stack(hiddens, 0)};
}

// Hochreiter and Schmidhuber, 1997: gates i, o, f and the candidate c.
OnnxResult Lstm(const OnnxNode& node) {
  return Layer(node, 4, {"Sigmoid", "Tanh", "Tanh"}, [](Step* s) {
    const int64_t width = s->hidden.dim(1);
    const Var gates = s->gates + Product(s->hidden, s->recurrent, s->bias);
    s->cell = Sigmoid(Gate(gates, 2, width)) * s->cell + Sigmoid(Gate(gates, 0, width)) * Tanh(Gate(gates, 3, width));
    s->hidden = Sigmoid(Gate(gates, 1, width)) * Tanh(s->cell);
  });
}

// Cho et al., 2014: gates z, r and the candidate. The reset gate multiplies the state before its product or, with
// linear_before_reset, after it.
OnnxResult Gru(const OnnxNode& node) {
  const bool after = node.Int("linear_before_reset", 0) != 0;
  return Layer(node, 3, {"Sigmoid", "Tanh"}, [after](Step* s) {
    const int64_t width = s->hidden.dim(1);
    const Var from_state = Product(s->hidden, s->recurrent, s->bias);
    const auto gate = [&](int64_t i) { return Sigmoid(Gate(s->gates, i, width) + Gate(from_state, i, width)); };
    const Var update = gate(0), reset = gate(1);
    const Var candidate =
        after ? reset * Gate(from_state, 2, width)
              : Product(reset * s->hidden, Slice(s->recurrent, 0, 2 * width, 3 * width), Gate(s->bias, 2, width));
    s->hidden = (1 - update) * Tanh(Gate(s->gates, 2, width) + candidate) + update * s->hidden;
  });
}

OnnxResult Rnn(const OnnxNode& node) {
  return Layer(node, 1, {"Tanh"},
               [](Step* s) { s->hidden = Tanh(s->gates + Product(s->hidden, s->recurrent, s->bias)); });
}

constexpr OnnxOp kOps[] = {
    {"Attention", Attention},
    {.name = "FlexAttention", .build = Attention, .domain = "ai.onnx.preview"},
    {"GRU", Gru},
    {"LSTM", Lstm},
    {"RNN", Rnn},
    {"RotaryEmbedding", Rotation},
};

}  // namespace

absl::Span<const OnnxOp> OnnxSequences() { return kOps; }

}  // namespace weft
