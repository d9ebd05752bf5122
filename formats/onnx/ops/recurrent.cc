// Records ONNX's recurrent layers, one step after the other. x is [T, B, I]; each direction has weights [G·H, I] and
// [G·H, H] for its G gates, and two biases [G·H].
#include <functional>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

// The operands of one time step of one direction.
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
    {"GRU", Gru},
    {"LSTM", Lstm},
    {"RNN", Rnn},
};

}  // namespace

absl::Span<const OnnxOp> OnnxRecurrent() { return kOps; }

}  // namespace weft
