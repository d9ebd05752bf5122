// GatherRows gathers a divided weight (distributed/weight_gathers.h) outside a graph, for example to save it.
//
//   std::vector<std::byte> whole(weight.type.bytes());
//   GatherRows(ranks, weight, parameters, GatherTo::kAll, whole.data());
#ifndef WEFT_DISTRIBUTED_WEIGHT_ROWS_H_
#define WEFT_DISTRIBUTED_WEIGHT_ROWS_H_

#include <cstddef>

#include "weft/core/parameters.h"
#include "weft/distributed/ranks.h"
#include "weft/distributed/weight_gathers.h"

namespace weft {

enum class GatherTo { kFirst, kAll };  // rank 0 or all ranks

// Writes the whole weight to `whole`, on rank 0 or on all ranks. `whole` may be null on a rank that receives nothing.
// `parameters` must have this rank's pieces. All ranks must call GatherRows; a rank waits until its messages have
// ended.
void GatherRows(const Ranks& ranks, const DividedWeight& weight, const Parameters& parameters, GatherTo to,
                std::byte* whole);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_WEIGHT_ROWS_H_
