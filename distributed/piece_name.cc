#include "weft/distributed/piece_name.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft {

std::string PieceName(absl::string_view weight, IndexRange rows) {
  return absl::StrCat(weight, "[", rows.begin, ":", rows.end, "]");
}

std::optional<Piece> ParsePiece(absl::string_view name) {
  const size_t bracket = name.rfind('[');
  if (bracket == absl::string_view::npos || !absl::ConsumeSuffix(&name, "]")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(name.substr(bracket + 1), ':');
  Piece piece = {.weight = name.substr(0, bracket)};
  if (!absl::SimpleAtoi(ends.first, &piece.rows.begin) || !absl::SimpleAtoi(ends.second, &piece.rows.end)) {
    return std::nullopt;
  }
  return piece;
}

absl::string_view WeightOfPiece(absl::string_view name) {
  const std::optional<Piece> piece = ParsePiece(name);
  return piece ? piece->weight : name;
}

}  // namespace weft
