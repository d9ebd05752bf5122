// The lambda `residual` adds a layer's result to x. It applies the norm before the layer (pre_norm) or after the sum.
#include "weft/models/block.h"

namespace weft {

Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs) {
  const Scope scope(x.tape, name);
  const auto residual = [&](const char* norm, auto layer) {
    x = options.pre_norm ? Add(x, layer(Norm(norm, x, options.norm))) : Norm(norm, Add(x, layer(x)), options.norm);
  };
  residual(options.attention_norm,
           [&](Var h) { return MultiHeadAttention(options.attention_name, h, options.attention, inputs.attention); });
  if (options.cross_attention) {
    residual(options.cross_norm, [&](Var h) {
      if (inputs.stored_memory.empty()) {
        return MultiHeadAttention(options.cross_name, h, *options.cross_attention, inputs.cross);
      }
      return AttendToStored(options.cross_name, h, *options.cross_attention, inputs.stored_memory, inputs.stored_length,
                            inputs.cross.mask);
    });
  }
  residual(options.feed_forward_norm,
           [&](Var h) { return FeedForward(options.feed_forward_name, h, options.feed_forward); });
  return x;
}

VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const BlockOptions& options,
                    const std::string& prefix) {
  const Scope scope(memory.tape, name);
  return StoreMemory(options.cross_name, memory, width, *options.cross_attention, prefix);
}

}  // namespace weft
