// Names of pieces of weights: "h.0.mlp.c_fc.weight[0:1536]" are the rows 0 .. 1535 of that weight, seen as [rows,
// cols]. The optimizer's states of a piece have such names, too: "adamw.m.h.0.mlp.c_fc.weight[0:1536]".
//
//   const std::string name = PieceName("w", {0, 8});   // "w[0:8]"
//   const std::optional<Piece> piece = ParsePiece(name);  // {"w", {0, 8}}
#ifndef WEFT_DISTRIBUTED_PIECE_NAME_H_
#define WEFT_DISTRIBUTED_PIECE_NAME_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "weft/distributed/index_range.h"

namespace weft {

// A piece of a weight that ranks have divided, and the rank to which it belongs.
struct WeightPiece {
  int owner = 0;
  IndexRange rows;  // of the weight seen as [rows, cols]
  friend bool operator==(const WeightPiece&, const WeightPiece&) = default;
};

// The meaning of a name.
struct Piece {
  absl::string_view weight;  // a part of the parsed name
  IndexRange rows;
};

std::string PieceName(absl::string_view weight, IndexRange rows);
// Returns the piece that `name` names, or nullopt if `name` names no piece.
std::optional<Piece> ParsePiece(absl::string_view name);
// Returns the weight of the piece `name`. If `name` names no piece, returns `name`.
absl::string_view WeightOfPiece(absl::string_view name);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_PIECE_NAME_H_
