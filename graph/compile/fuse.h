// Fusion cuts the nodes that have kernels into tiles, and groups nodes that run together tile by tile.
//
// A node can join the latest group that makes one of its inputs, if tile i of the node reads only those values of the
// group that tile i wrote. So groups stay in a serial order, and each task finds its values in cache. An op with
// a workspace (OpDef::workspace) keeps its tiles: the workspace is sized for them, and bits may depend on them. Other
// ops take the tiles of their group.
#ifndef WEFT_GRAPH_COMPILE_FUSE_H_
#define WEFT_GRAPH_COMPILE_FUSE_H_

#include "weft/graph/graph.h"

namespace weft {

// Sets the storage roots, calls, tiles and groups of `graph`, whose program must be set. `tile_seconds`: target
// duration of a tile, above 0. `fuse`: if false, every kernel call is a group of its own.
void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_FUSE_H_
