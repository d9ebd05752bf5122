// Weights that ranks have divided among themselves by rows, and the messages that gather them inside a graph.
//
// A compiled program reads whole weights. Insert replaces each divided weight by gathers: a node that sends this rank's
// rows to all ranks, and receives the other rows. The gathered weight is an ordinary value of the graph, so its bytes
// are free after its last reader. A weight is gathered at most twice in an execution: before the first reader, and
// again before the readers after the longest gap. In a training step, this gap is between the forward and the backward
// pass.
//
//   WeightGathers gathers(weights, rank, ranks);
//   compile.distribute = [&](Program* program, std::vector<ValueId>* roots) { return gathers.Insert(program, roots); };
//
// All ranks must gather the same weights in the same order, even if their programs differ or a rank has nothing to
// compute. The first program of Insert decides this order. The other programs, and Record, follow it. Between other
// messages, such as gradients, a gather has the same place in all programs.
#ifndef WEFT_DISTRIBUTED_WEIGHT_GATHERS_H_
#define WEFT_DISTRIBUTED_WEIGHT_GATHERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/initializer.h"
#include "weft/core/parameters.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/ranks.h"

namespace weft {

// A weight that is divided into pieces, each of which one rank owns. PieceName gives the name of a piece, which is a
// parameter of its own.
struct DividedWeight {
  std::string name;
  TensorType type;
  Initializer initializer;
  std::vector<WeightPiece> pieces;  // in the order of rows; together they have all rows
};

class WeightGathers {
 public:
  // `weights`: equal on all ranks. `rank`: this rank. `ranks`: the number of ranks. `bucket_of`: maps the tag of
  // another message of the programs to the number of its bucket. Messages of one bucket follow each other, and buckets
  // are numbered in the order of the program. Null: the programs have no other messages.
  WeightGathers(std::vector<DividedWeight> weights, int rank, int ranks, std::function<int(int tag)> bucket_of = {});

  // Replaces the divided weights in `program` by gathers, and maps `roots`. The first call chooses the order of the
  // gathers. If a weight of this order has no reader, it is gathered nevertheless.
  absl::Status Insert(Program* program, std::vector<ValueId>* roots);
  // Records the gathers of an execution without readers, for a rank that has nothing to compute. Insert must have been
  // called. Returns values to list as updates.
  VarList Record(Tape* tape) const;

 private:
  class Inserter;
  // Records one gather, whose number in the order is `index`. Returns the whole weight, and a value that exists once
  // the messages have ended. `own`: by weight, this rank's pieces, which the first gather of a weight records.
  VarList Gather(Tape* tape, size_t index, std::vector<VarList>* own) const;

  std::vector<DividedWeight> weights_;
  int rank_, ranks_;
  std::function<int(int tag)> bucket_of_;
  std::vector<size_t> order_;           // the weight of each gather; empty before the first call of Insert
  std::vector<size_t> buckets_before_;  // by gather: number of the buckets whose messages come before it
};

enum class GatherTo { kFirst, kAll };  // rank 0 or all ranks

// Gathers a divided weight outside a graph, for example to save it. Writes the whole weight to `whole`, on rank 0 or on
// all ranks. `whole` may be null on a rank that receives nothing. `parameters` must have this rank's pieces. All ranks
// must call GatherRows; a rank waits until its messages have ended.
void GatherRows(const Ranks& ranks, const DividedWeight& weight, const Parameters& parameters, GatherTo to,
                std::byte* whole);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_WEIGHT_GATHERS_H_
