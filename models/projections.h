// Project records the layers that compute the queries, keys and values of attention. It is a part of
// models/attention.h, which other code includes.
//
//   const Projections p = Project(x, memory, options);   // options with all widths set
#ifndef WEFT_MODELS_PROJECTIONS_H_
#define WEFT_MODELS_PROJECTIONS_H_

#include "weft/models/attention.h"

namespace weft {

struct Projections {
  Var query, key, value;  // [B, H, T, d_q], [B, G, S, d_k], [B, G, S, d_v]; null without x or memory
};

// Projects x [B, T, C] to queries, and `memory` [B, S, C'] to keys and values. Either may be null, but not both.
// `options`: with the default widths filled in.
Projections Project(Var x, Var memory, const AttentionOptions& options);

}  // namespace weft

#endif  // WEFT_MODELS_PROJECTIONS_H_
