// The lambda `residual` adds a layer's result to x. It applies the norm before the layer (pre_norm) or after the sum.
#include "weft/models/block.h"

namespace weft {

Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs) {
  const Scope scope(x.tape, name);
  const Ablation& ablation = options.attention.ablation;
  const auto residual = [&](const char* norm, auto layer) {
    const auto normalized = [&](Var h) { return Norm(norm, h, options.norm, ablation); };
    const auto sum = [&](Var h) { return ablation.residual ? h : Add(x, h); };
    x = options.pre_norm ? sum(layer(normalized(x))) : normalized(sum(layer(x)));
  };
  residual(options.attention_norm,
           [&](Var h) { return MultiHeadAttention(options.attention_name, h, options.attention, inputs.attention); });
  if (options.cross_attention) {
    residual(options.cross_norm, [&, &cross = *options.cross_attention](Var h) {
      return inputs.memory != nullptr ? AttendToStored(options.cross_name, h, cross, *inputs.memory)
                                      : MultiHeadAttention(options.cross_name, h, cross, inputs.cross);
    });
  }
  if (ablation.feed_forward) return x;
  residual(options.feed_forward_norm,
           [&](Var h) { return FeedForward(options.feed_forward_name, h, options.feed_forward); });
  return x;
}

VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const BlockOptions& options,
                    const AttentionCache& cache) {
  const Scope scope(memory.tape, name);
  return StoreMemory(options.cross_name, memory, width, *options.cross_attention, cache);
}

}  // namespace weft
