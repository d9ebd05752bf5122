// Fusion decides which nodes run, cuts them into tiles, and groups nodes that run together tile by tile.
//
// A node joins the latest group that produces one of its inputs, if each tile reads from the group only what the same
// tile wrote. The groups stay in a serial order, and each task finds its values in cache. An op that prepares for its
// tiles (OpDef::prepare) keeps them, because the bits of its results depend on them. All other ops take the group's.
#ifndef WEFT_GRAPH_FUSE_H_
#define WEFT_GRAPH_FUSE_H_

#include "weft/graph/graph.h"

namespace weft {

// Sets the storage roots, calls, tiles and groups of `graph`, whose program is set. `tile_seconds`: the aimed-at
// duration of a tile, above 0. `fuse`: if false, every kernel call is a group of its own.
void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph);

}  // namespace weft

#endif  // WEFT_GRAPH_FUSE_H_
