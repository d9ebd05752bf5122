// The function of a layer opens the layer's scope, declares its parameters there, and records its ops.
#include "weft/models/layers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/dtype.h"

namespace weft {

Var Linear(absl::string_view name, Var x, int64_t width, const LinearOptions& options, Var rows) {
  const Scope scope(x.tape, name);
  const Var weight = x.tape->Parameter("weight", {x.dtype(), {width, x.dim(-1)}}, options.initializer);
  const bool all = rows.tape == nullptr;
  Var y = MatMul(x, all ? weight : Embedding(weight, rows), {.transpose_b = true});  // [..., width]
  if (options.bias) {
    const Var bias = x.tape->Parameter("bias", {x.dtype(), {width}}, Zeros());
    y = y + (all ? bias : Gather(bias, rows, 0));
  }
  if (x.tape->adaptation() == nullptr) return y;
  if (!all) x.tape->Fail(InvalidArgument("linear: an adapted layer computes all of its outputs, so rows must be null"));
  return x.tape->adaptation()->Adapt(x, weight, y);
}

Var LayerNorm(absl::string_view name, Var x, double epsilon) { return Norm(name, x, {.epsilon = epsilon}); }

Var BatchNorm(absl::string_view name, Var x, const BatchNormOptions& options, VarList* updates) {
  Tape* const tape = x.tape;
  const Scope scope(tape, name);
  const TensorType type = {x.dtype(), {x.dim(-1)}};
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    tape->Fail(
        ShapeError("batch_norm", absl::StrCat("momentum = ", options.momentum, ", wanted in [0, 1]"), {x.type()}));
  }
  if (tape->adaptation() != nullptr) {
    tape->Fail(
        InvalidArgument("batch_norm: adapters are saved without statistics, so a model with BatchNorm has none"));
  }
  const Var gain = tape->Parameter("weight", type, Ones()), bias = tape->Parameter("bias", type, Zeros());
  if (!tape->status().ok()) return tape->Poison();
  const std::string weight = tape->ParameterName(gain), prefix = weight.substr(0, weight.rfind("weight"));
  const Var mean = tape->State(prefix + "running_mean", type, Zeros(), ParameterKind::kStatistic);
  const Var variance = tape->State(prefix + "running_var", type, Ones(), ParameterKind::kStatistic);
  const BatchNormResult batch = BatchNorm(x, gain, bias, mean, variance, options.epsilon);
  if (x.shape().rows() == 0) return batch.y;  // without rows there are no statistics
  const double n = static_cast<double>(x.shape().elements()) / std::max<double>(1, static_cast<double>(x.dim(-1)));
  const Var unbiased = Scale(batch.variance, n / std::max(1.0, n - 1));
  const auto update = [&](const char* statistic, Var running, Var of_batch) {
    const Var next = running + Scale(of_batch - running, options.momentum);
    if (updates != nullptr) {
      updates->push_back(Assign(running, next));
    } else {
      tape->Probe(absl::StrCat(statistic, kNextState), next);
    }
  };
  update("running_mean", mean, batch.mean);
  update("running_var", variance, unbiased);
  return batch.y;
}

Var EmbeddingTable(absl::string_view name, Tape* tape, int64_t vocabulary, int64_t width,
                   const EmbeddingTableOptions& options) {
  const Scope scope(tape, name);
  return tape->Parameter("weight", {options.dtype, {vocabulary, width}}, options.initializer, options.least);
}

Var ConstantTable(Tape* tape, DType dtype, int64_t rows, int64_t cols,
                  absl::FunctionRef<double(int64_t, int64_t)> value) {
  if (!Shape{rows, cols}.valid() || (dtype != kF32 && dtype != kF64)) {
    tape->Fail(ShapeError("constant table", "wanted f32 or f64, of a shape", {{dtype, {rows, cols}}}));
    return tape->Constant({});
  }
  const auto record = [&](auto zero) {
    std::vector<decltype(zero)> values;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) values.push_back(static_cast<decltype(zero)>(value(row, col)));
    }
    return tape->Constant({{kDTypeOf<decltype(zero)>, {rows, cols}}, reinterpret_cast<std::byte*>(values.data())});
  };
  return dtype == kF64 ? record(0.0) : record(0.0f);
}

double Sinusoid(int64_t position, int64_t feature, int64_t width, SinusoidLayout layout) {
  const int64_t half = std::max<int64_t>(width / 2, 1);
  const bool halves = layout == SinusoidLayout::kHalves;
  const int64_t i = halves ? feature % half : feature / 2;
  const double exponent = static_cast<double>(i) / (halves ? static_cast<double>(std::max<int64_t>(half - 1, 1))
                                                           : static_cast<double>(width) / 2);
  const double angle = static_cast<double>(position) * std::pow(10000.0, -exponent);
  return (halves ? feature < half : feature % 2 == 0) ? std::sin(angle) : std::cos(angle);
}

Var SinusoidalPositions(Tape* tape, DType dtype, int64_t length, int64_t width, SinusoidLayout layout, int64_t first) {
  return ConstantTable(tape, dtype, length, width,
                       [&](int64_t row, int64_t col) { return Sinusoid(row + first, col, width, layout); });
}

Var Norm(absl::string_view name, Var x, const NormOptions& options) {
  if (options.kind == NormKind::kBatchNorm) return BatchNorm(name, x, {.epsilon = options.epsilon});
  const Scope scope(x.tape, name);
  const TensorType type = {ComputedIn(x.dtype()), {x.dim(-1)}};
  const Var weight = x.tape->Parameter("weight", type, options.plus_one ? Zeros() : Ones());
  const Var gain = options.plus_one ? weight + 1.0 : weight;
  if (options.kind == NormKind::kRmsNorm) return RmsNorm(x, gain, options.epsilon);
  const Var bias = options.bias ? x.tape->Parameter("bias", type, Zeros()) : Fill(x.tape, type, 0);
  return LayerNorm(x, gain, bias, options.epsilon);
}

Var Norm(absl::string_view name, Var x, const NormOptions& options, const Ablation& ablation) {
  return ablation.norm ? x : Norm(name, x, options);
}

Var Activate(Var x, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return Relu(x);
    case Activation::kReluSquared: {  // So et al., "Primer", 2021
      const Var y = Relu(x);
      return y * y;
    }
    case Activation::kGelu:
      return Gelu(x, GeluForm::kErf);
    case Activation::kSilu:
      return Silu(x);
    case Activation::kGeluTanh:
      break;
  }
  return Gelu(x, GeluForm::kTanh);
}

Var FeedForward(absl::string_view name, Var x, const FeedForwardOptions& options) {
  const Scope scope(x.tape, name);
  const int64_t width = options.width > 0 ? options.width : 4 * x.dim(-1);
  const LinearOptions linear = {.bias = options.bias, .initializer = options.initializer};
  Var h = Linear(options.up, x, width, linear);  // [..., F]
  h = options.gate != nullptr ? Activate(Linear(options.gate, x, width, linear), options.activation) * h
                              : Activate(h, options.activation);
  const Var y = Linear(options.down, Dropout(h, options.hidden_dropout), x.dim(-1),
                       {.bias = options.bias, .initializer = options.output_initializer});
  return Dropout(y, options.dropout);
}

constexpr char kChoices[] = "router_choices", kProbabilities[] = "router_probabilities";  // names of probes

Var MixtureOfExperts(absl::string_view name, Var x, const FeedForwardOptions& options, const MixtureOptions& mixture) {
  if (mixture.experts == 0) return FeedForward(name, x, options);
  const Scope scope(x.tape, name);
  const int64_t experts = mixture.experts, width = x.dim(-1), rows = x.shape().elements() / width;
  const Var logits = Linear("gate", x, experts, {.bias = false, .initializer = options.initializer});
  const Var p = Softmax(Reshape(logits, {rows, experts}));
  const VarList top = TopK(p, mixture.per_token);                              // [rows, k]
  const Var weights = Unsqueeze(top[0] / Sum(top[0], -1, /*keep=*/true), -1);  // [rows, k, 1]
  const Var chosen = OneHot(top[1], experts, p.dtype());                       // [rows, k, E]
  x.tape->Probe(kChoices, Scale(Sum(chosen, {0, 1}), 1 / static_cast<double>(rows)));
  x.tape->Probe(kProbabilities, Mean(p, 0));
  const Var by_expert = Reshape(Sum(chosen * weights, 1), logits.shape());  // [..., E]
  Var y;
  for (int64_t e = 0; e < experts; ++e) {
    const Var part = FeedForward(absl::StrCat("experts.", e), x, options) * Slice(by_expert, -1, e, e + 1);
    y = e == 0 ? part : y + part;
  }
  return y;
}

Var BalanceLoss(const Tape& tape) {
  VarList choices, probabilities;
  for (const Tape::NamedValue& probe : tape.probes()) {
    if (absl::EndsWith(probe.name, kChoices)) choices.push_back(probe.value);
    if (absl::EndsWith(probe.name, kProbabilities)) probabilities.push_back(probe.value);
  }
  if (choices.empty()) return {};
  const Var f = Mean(Stack(choices, 0), 0), p = Mean(Stack(probabilities, 0), 0);
  return Scale(Sum(f * p), static_cast<double>(f.dim(0)));
}

Var SymmetricDivergence(Var a, Var b, Var targets) {
  a = Cast(a, kF32), b = Cast(b, kF32);
  // In each row, log(p) - log(q) is a - b and a constant, which adds nothing to the sum: p and q both sum to 1.
  const Var each = Sum((Softmax(a) - Softmax(b)) * (a - b), -1);
  const Var counted = Cast(NotEqual(targets, FillLike(targets, kIgnoredTarget)), kF32);
  return Sum(each * counted) / Sum(counted);
}

Var CountCorrect(Var logits, Var targets) { return Sum(Cast(Equal(ArgMax(logits), targets), kF32)); }

}  // namespace weft
