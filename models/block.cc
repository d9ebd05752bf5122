// The lambda `residual` adds a layer's result to x. It applies the norm before the layer (pre_norm) or after the sum.
#include "weft/models/block.h"

namespace weft {

Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs) {
  const Scope scope(x.tape, name);
  const Ablation& ablation = options.attention.ablation;
  const auto normalized = [&](const char* norm, Var h) {
    return norm != nullptr ? Norm(norm, h, options.norm, ablation) : h;
  };
  const auto result = [&](const char* norm, Var h) {
    return Scaled(options.result_norm ? normalized(norm, h) : h, options.residual_scale);
  };
  const auto residual = [&](const char* norm, const char* result_norm, auto layer) {
    const Var y = result(result_norm, layer(options.pre_norm ? normalized(norm, x) : x));
    x = ablation.residual ? y : Add(x, y);
    if (!options.pre_norm && !options.result_norm) x = normalized(norm, x);
  };
  const auto attention = [&](Var h) {
    return MultiHeadAttention(options.attention_name, h, options.attention, inputs.attention);
  };
  const auto feed_forward = [&](Var h) {
    return MixtureOfExperts(options.feed_forward_name, h, options.feed_forward, options.mixture);
  };
  if (options.residual != ResidualForm::kSequential && !ablation.feed_forward) {
    const Var h = normalized(options.attention_norm, x);
    const Var own = options.residual == ResidualForm::kParallel ? normalized(options.feed_forward_norm, x) : h;
    const Var y = Add(result(options.attention_result_norm, attention(h)),
                      result(options.feed_forward_result_norm, feed_forward(own)));
    return ablation.residual ? y : Add(x, y);
  }
  residual(options.attention_norm, options.attention_result_norm, attention);
  if (options.cross_attention) {
    residual(options.cross_norm, options.cross_result_norm, [&, &cross = *options.cross_attention](Var h) {
      return inputs.memory != nullptr ? AttendToStored(options.cross_name, h, cross, *inputs.memory)
                                      : MultiHeadAttention(options.cross_name, h, cross, inputs.cross);
    });
  }
  if (!ablation.feed_forward) residual(options.feed_forward_norm, options.feed_forward_result_norm, feed_forward);
  return x;
}

}  // namespace weft
