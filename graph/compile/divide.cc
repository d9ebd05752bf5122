// A group is divided if all its ops may be cut so, and if no part touches bytes that another part writes. This is
// checked for the parts of the first tile and of the last one. It holds for other tiles, too: values that share bytes
// have equal columns, so a part touches the same rows and columns of all of them, wherever its tile is.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr double kPartsOfTile = 8;  // a part takes at least 1 / kPartsOfTile of the target duration of a tile
constexpr double kMaxParts = 1024;  // maximum number of parts of a group's first tile
// A part grows to 64 rows, then to 256 columns, then in rows again: a product of few rows copies its right operand for
// little work.
constexpr int64_t kRowsFirst = 64, kColsNext = 256;

class Divider {
 public:
  explicit Divider(CompiledGraph* graph) : graph_(*graph), program_(graph->program) {}

  void Run(double part_seconds) {
    for (Group& group : graph_.groups) {
      group.part_rows = group.part_cols = 0;
      double seconds = 0;
      for (uint32_t s = group.first_call; s < group.end_call(); ++s) seconds += graph_.calls[s].seconds;
      const double wanted = std::min(kMaxParts, seconds / group.tile_count / part_seconds);
      if (wanted < 2 || Divide(&group, wanted, /*columns=*/true) || Divide(&group, wanted, /*columns=*/false)) continue;
      group.part_rows = group.part_cols = 0;
    }
  }

 private:
  const Node& node(uint32_t call) const { return program_.node(graph_.calls[call].node); }

  // Reports whether both calls have tiles with the same numbers of rows and, if `columns`, of columns.
  bool HaveLikeTiles(uint32_t a, uint32_t b, bool columns) const {
    return absl::c_equal(graph_.tiles_of(a), graph_.tiles_of(b), [&](const Rect& x, const Rect& y) {
      return x.rows() == y.rows() && (!columns || x.cols() == y.cols());
    });
  }

  // Sets the parts of `group`, and returns whether it can be divided so. `columns`: whether tiles are cut into columns.
  bool Divide(Group* group, double wanted, bool columns) const {
    const Rect& tile = graph_.tiles_of(group->first_call)[0];
    if (tile.rows() == 0 || tile.cols() == 0) return false;
    int64_t most_rows = 0, most_cols = 0;  // of any tile: a unit that is larger cuts none
    for (const Rect& other : graph_.tiles_of(group->first_call)) {
      most_rows = std::max(most_rows, other.rows());
      most_cols = std::max(most_cols, other.cols());
    }
    int64_t row_unit = 1, col_unit = 1;
    for (uint32_t s = group->first_call; s < group->end_call(); ++s) {
      const std::optional<std::pair<int64_t, int64_t>> unit = UnitOf(s, columns);
      if (!unit || !HaveLikeTiles(group->first_call, s, columns)) return false;
      row_unit = std::min(std::lcm(row_unit, unit->first), most_rows);
      col_unit = std::min(std::lcm(col_unit, unit->second), most_cols);
    }
    int64_t rows = row_unit, cols = columns ? col_unit : tile.cols();
    const auto count = [&] { return static_cast<double>(CeilDiv(tile.rows(), rows) * CeilDiv(tile.cols(), cols)); };
    while (count() > wanted) {
      const bool high = rows >= tile.rows() || (rows >= kRowsFirst && cols < std::min(kColsNext, tile.cols()));
      int64_t& side = high && cols < tile.cols() ? cols : rows;
      side *= 2;
    }
    if (count() < 2) return false;
    group->part_rows = rows;
    group->part_cols = columns ? cols : 0;
    return graph_.addresses.empty() || PartsAreApart(*group);
  }

  // Returns the rows and columns at which tiles of a call may be cut, or nothing if they may not.
  std::optional<std::pair<int64_t, int64_t>> UnitOf(uint32_t s, bool columns) const {
    const Node& n = node(s);
    const OpDef& op = *n.op;
    if (!graph_.calls[s].messages.empty() || op.cut == Cut::kNone || op.cut == Cut::kCols) return std::nullopt;
    if (columns && op.cut == Cut::kRows) return std::nullopt;
    const Types inputs = program_.InputTypes(n), outputs = program_.OutputTypes(n);
    const OpArgs args = {n.attrs, inputs, outputs};
    if (op.unit != nullptr) return op.unit(args);
    if (op.workspace != nullptr) return std::nullopt;
    return QuantaOf(op, args);
  }

  // An operand of a call, with the bytes that it has in the graph.
  struct Operand {
    uint32_t call;
    size_t number;
    Address address;
    size_t bytes, element;  // sizes of the value and of an element
    bool written;
  };

  std::vector<Operand> OperandsOf(const Group& group) const {
    std::vector<Operand> operands;
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      const Node& n = node(s);
      for (size_t k = 0; k < n.inputs.size() + n.output_count; ++k) {
        const bool written = k >= n.inputs.size();
        const ValueId id = written ? n.output(static_cast<uint32_t>(k - n.inputs.size())) : n.inputs[k];
        const TensorType& type = program_.value(id).type;
        operands.push_back({s, k, graph_.addresses[id], type.bytes(), BytesOf(type.dtype, 1), written});
      }
    }
    return operands;
  }

  // Reports whether no part of a tile writes bytes that another part reads or writes.
  bool PartsAreApart(const Group& group) const {
    const std::vector<Operand> operands = OperandsOf(group);
    std::vector<std::vector<Rect>> parts;  // by call of the group: of its first and its last tile
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) parts.push_back(PartsOf(group, s));
    const auto tiles_of = [&](const Operand& o) {
      return OperandTiles(program_, node(o.call), o.number, parts[o.call - group.first_call]);
    };
    for (const Operand& write : operands) {
      if (!write.written) continue;
      const OperandTiles written = tiles_of(write);
      for (const Operand& other : operands) {
        if (!Overlap(write, other)) continue;
        // The same elements of two values have the same bytes if both values begin there, with elements of one size.
        const OperandTiles touched = tiles_of(other);
        const bool alike = write.address.offset == other.address.offset && write.element == other.element &&
                           touched.shape().cols() == written.shape().cols();
        if (!alike || !TileByTile(touched, written)) return false;
      }
    }
    return true;
  }

  // Returns the parts of the first tile of call `s` and of its last tile.
  std::vector<Rect> PartsOf(const Group& group, uint32_t s) const {
    std::vector<Rect> parts;
    const absl::Span<const Rect> tiles = graph_.tiles_of(s);
    for (size_t t = 0; t < tiles.size(); t += std::max<size_t>(1, tiles.size() - 1)) {
      for (uint32_t p = 0; p < PartCount(group, tiles[t]); ++p) {
        ForEachRect(group, tiles[t], p, p + 1, [&](Rect rect) { parts.push_back(rect); });
      }
    }
    return parts;
  }

  // Reports whether two operands have bytes in common.
  static bool Overlap(const Operand& a, const Operand& b) {
    if (a.address.kind != b.address.kind) return false;
    if (a.address.kind != Address::Kind::kArena) return a.address.index == b.address.index;
    return a.address.offset < b.address.offset + b.bytes && b.address.offset < a.address.offset + a.bytes;
  }

  CompiledGraph& graph_;
  const Program& program_;
};

}  // namespace

void DivideTasks(double tile_seconds, CompiledGraph* graph) { Divider(graph).Run(tile_seconds / kPartsOfTile); }

uint32_t PartCount(const Group& group, const Rect& tile) {
  if (group.part_rows == 0) return 1;
  const int64_t cols = group.part_cols == 0 ? 1 : CeilDiv(tile.cols(), group.part_cols);
  return static_cast<uint32_t>(std::max<int64_t>(1, CeilDiv(tile.rows(), group.part_rows) * cols));
}

void ForEachRect(const Group& group, const Rect& tile, uint32_t begin, uint32_t end, absl::FunctionRef<void(Rect)> f) {
  if (begin == 0 && end == PartCount(group, tile)) return f(tile);
  const uint32_t in_column = static_cast<uint32_t>(CeilDiv(tile.rows(), group.part_rows));
  const auto call = [&](uint32_t first_col, uint32_t last_col, uint32_t first_row, uint32_t last_row) {
    if (first_col >= last_col || first_row >= last_row) return;
    Rect rect = tile;
    rect.row_begin = tile.row_begin + first_row * group.part_rows;
    rect.row_end = std::min(tile.row_end, tile.row_begin + last_row * group.part_rows);
    if (group.part_cols > 0) {
      rect.col_begin = tile.col_begin + first_col * group.part_cols;
      rect.col_end = std::min(tile.col_end, tile.col_begin + last_col * group.part_cols);
    }
    f(rect);
  };
  uint32_t first = begin / in_column;
  const uint32_t last = end / in_column, above = begin % in_column, below = end % in_column;
  if (first == last) return call(first, first + 1, above, below);
  if (above > 0) call(first, first + 1, above, in_column), ++first;
  call(first, last, 0, in_column);
  call(last, last + 1, 0, below);
}

}  // namespace weft
