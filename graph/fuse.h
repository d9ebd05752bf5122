// Fusion: which nodes run, in which tiles, and which of them run together, tile by tile.
//
// A node joins the latest group that makes one of its inputs, if what each of its tiles reads of the group lies inside
// what the same tile wrote; so an order stays an order, and a task of the group finds its values in cache. Ops that
// prepare for their tiles keep their own, which their bits depend on; all others take those of the group.
#ifndef WEFT_GRAPH_FUSE_H_
#define WEFT_GRAPH_FUSE_H_

#include "weft/graph/graph.h"

namespace weft {

// Fills in storage roots, calls, tiles and groups of a graph whose program is there. Tiles take about `tile_seconds`,
// above 0; unless `fuse`, every call is a group.
void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph);

}  // namespace weft

#endif  // WEFT_GRAPH_FUSE_H_
