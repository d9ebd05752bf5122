// A table of all positions is sliced or, with a cache, its rows are looked up.
#include "weft/models/positions.h"

#include "weft/models/layers.h"

namespace weft {

PositionKind Resolve(PositionKind positions, const AttentionVariant& variant, PositionKind usual) {
  if (positions != PositionKind::kAuto) return positions;
  return variant.rotary || variant.distance_bias != DistanceBias::kNone ? PositionKind::kNone : usual;
}

Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache) {
  if (options.kind == PositionKind::kNone) return x;
  Tape* const tape = x.tape;
  const int64_t width = x.dim(-1), length = x.dim(1);
  const Var table =
      options.kind == PositionKind::kLearned
          ? EmbeddingTable(options.name, tape, options.context, width, {.dtype = x.dtype(), .least = kF32})
          : SinusoidalPositions(
                tape, x.dtype(), cache != nullptr ? cache->capacity() : length, width,
                options.kind == PositionKind::kSinusoidal ? SinusoidLayout::kInterleaved : SinusoidLayout::kHalves,
                options.first);
  return x + (cache != nullptr ? Embedding(table, cache->positions) : Slice(table, 0, 0, length));
}

}  // namespace weft
