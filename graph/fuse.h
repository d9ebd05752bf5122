// Fusion: decides which nodes run, cuts them into tiles, and groups nodes that run together tile by tile.
//
// A node joins the latest group that produces one of its inputs, if each of its tiles reads only what the same tile of
// the group wrote. The groups stay in a serial order, and each task finds its values in cache. Ops that prepare for
// their tiles (OpDef::prepare) keep their own tiles, because the bits of their results depend on the tiles. All other
// ops take the group's tiles.
#ifndef WEFT_GRAPH_FUSE_H_
#define WEFT_GRAPH_FUSE_H_

#include "weft/graph/graph.h"

namespace weft {

// Fills in storage roots, calls, tiles and groups of `graph`, which has its program. `tile_seconds`: the wanted
// duration of a tile, above 0. If `fuse` is false, every kernel call is a group of its own.
void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph);

}  // namespace weft

#endif  // WEFT_GRAPH_FUSE_H_
