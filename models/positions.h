// AddPositions adds to embeddings what tells their positions: a learned table or sinusoids.
//
//   x = AddPositions(x, {.kind = Resolve(config.positions, config.attention), .context = config.context});
#ifndef WEFT_MODELS_POSITIONS_H_
#define WEFT_MODELS_POSITIONS_H_

#include <cstdint>

#include "weft/models/attention.h"

namespace weft {

// What is added to token embeddings to tell their positions. kAuto: nothing if attention has rotary positions or a
// distance bias, and otherwise what the model's paper has.
enum class PositionKind : uint8_t { kAuto, kLearned, kSinusoidal, kSinusoidalHalves, kNone };
// Returns `positions` or, for kAuto, kNone or `usual`.
PositionKind Resolve(PositionKind positions, const AttentionVariant& variant,
                     PositionKind usual = PositionKind::kLearned);

struct PositionOptions {
  PositionKind kind = PositionKind::kLearned;  // not kAuto
  const char* name = "wpe";                    // of the table of learned positions
  int64_t context = 0;                         // rows of this table
  int64_t first = 0;                           // the first position of sinusoids
};
// Returns x [B, T, C] plus the vectors of its positions: 0 .. T - 1 or, with a cache, cache->positions.
Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache = nullptr);

}  // namespace weft

#endif  // WEFT_MODELS_POSITIONS_H_
