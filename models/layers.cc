#include "weft/models/layers.h"

namespace weft {

Var Linear(absl::string_view name, Var x, int64_t width, const LinearOptions& options) {
  const Scope scope(x.tape, name);
  const Var weight = x.tape->Parameter("weight", {x.dtype(), {width, x.dim(-1)}}, options.initializer);
  const Var y = MatMul(x, weight, {.transpose_b = true});  // [..., width]
  return options.bias ? y + x.tape->Parameter("bias", {x.dtype(), {width}}, Zeros()) : y;
}

Var LayerNorm(absl::string_view name, Var x, double epsilon) {
  const Scope scope(x.tape, name);
  const TensorType type = {x.dtype(), {x.dim(-1)}};
  const Var gain = x.tape->Parameter("weight", type, Ones());
  return LayerNorm(x, gain, x.tape->Parameter("bias", type, Zeros()), epsilon);
}

Var EmbeddingTable(absl::string_view name, Tape* tape, int64_t vocabulary, int64_t width, Initializer initializer) {
  const Scope scope(tape, name);
  return tape->Parameter("weight", {kF32, {vocabulary, width}}, initializer);
}

Var Activate(Var x, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return Relu(x);
    case Activation::kGelu:
      return Gelu(x, GeluForm::kErf);
    case Activation::kGeluTanh:
      break;
  }
  return Gelu(x, GeluForm::kTanh);
}

Var FeedForward(absl::string_view name, Var x, const FeedForwardOptions& options) {
  const Scope scope(x.tape, name);
  const int64_t width = options.width > 0 ? options.width : 4 * x.dim(-1);
  const Var h = Activate(Linear("c_fc", x, width, {.bias = options.bias}), options.activation);  // [..., F]
  const Var y = Linear("c_proj", h, x.dim(-1), {.bias = options.bias, .initializer = options.output_initializer});
  return Dropout(y, options.dropout);
}

}  // namespace weft
