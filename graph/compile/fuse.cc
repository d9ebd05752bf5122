// The fuser walks the nodes that have kernels in program order and puts each into a group. This is the latest group
// that produces one of its inputs, a group of small updates, or a new group. A joining node takes the group's tiles or,
// if its own tiles are fixed (OpDef::workspace), may give them to the group. At the end, the groups are written out as
// kernel calls.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "weft/graph/compile/cost.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr double kMaxTaskSeconds = 300e-6;  // longer tasks would leave other workers waiting
// Tasks of a group may also exceed kMaxTaskSeconds if the group takes at most 1.5 times as long as its longest op with
// fixed tiles.
constexpr double kMaxGrowth = 1.5;
constexpr double kMaxDelaySeconds = 20e-6;  // a task at most this long may grow although other groups wait for it
constexpr double kCallSeconds = 0.1e-6;     // overhead of calling a kernel
constexpr size_t kMaxGroupsBack = 16;       // nodes join only these latest groups: older values would live longer
constexpr uint32_t kMaxRetiled = 16;  // only groups of at most 16 members take an op's fixed tiles; bounds compile time

struct Member {  // a node that becomes a kernel call
  KernelCall call;
  std::vector<Rect> tiles;
  int64_t rows = 0, cols = 0;  // size of the domain that the tiles cut
  double seconds = 0;          // of all tiles, with the overhead of the call
};

struct GroupBuilder {
  absl::InlinedVector<uint32_t, 4> members;
  uint32_t tile_count = 0;
  bool writes = true;        // true: all members are writes with one tile
  double seconds = 0;        // of all tiles
  double fixed_seconds = 0;  // of the longest member with fixed tiles; 0 if there is none
  uint32_t readers = 0;      // reads of the group's values by nodes outside, counted once per node and value
};

// Adapts the tiles of `from` to a domain [rows, cols]. Returns false if the domains differ in rows, or if they differ
// in columns and a tile of `from` does not span all columns.
bool TranslateTiles(const Member& from, int64_t rows, int64_t cols, std::vector<Rect>* tiles) {
  if (from.rows != rows) return false;
  *tiles = from.tiles;
  if (from.cols == cols) return true;
  for (Rect& tile : *tiles) {
    if (tile.cols() != from.cols) return false;
    tile.col_end = cols;
  }
  return true;
}

class Fuser {
 public:
  Fuser(double tile_seconds, bool fuse, CompiledGraph* graph)
      : fuse_(fuse),
        graph_(*graph),
        program_(graph->program),
        member_of_(program_.nodes.size(), kNone),
        readers_(program_.values.size()),
        last_reader_(program_.values.size()),
        seen_(program_.values.size()) {
    graph_.storage_roots = StorageRoots(program_);
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      const Node& node = program_.nodes[n];
      const Types inputs = program_.InputTypes(node), outputs = program_.OutputTypes(node);
      if (!IsCall(*node.op, inputs, outputs)) continue;
      const OpArgs args = {node.attrs, inputs, outputs};
      const double seconds = Seconds(*node.op, args);
      KernelCall call = {.node = NodeId{n}, .seconds = seconds};
      if (node.op->messages != nullptr) call.messages = node.op->messages(args);
      call.kernel = KernelFor(*node.op, inputs, outputs);
      const Shape& domain = DomainShape(*node.op, args);
      member_of_[n] = static_cast<uint32_t>(members_.size());
      members_.push_back({.call = std::move(call),
                          .tiles = Tiles(*node.op, args, tile_seconds),
                          .rows = domain.rows(),
                          .cols = domain.cols(),
                          .seconds = seconds + kCallSeconds});
      ForEachRead(node, [&](ValueId value) { ++readers_[value]; });
    }
  }

  void Run() {
    for (uint32_t m = 0; m < members_.size(); ++m) Add(m, GroupFor(m));
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      graph_.groups.push_back({.first_call = static_cast<uint32_t>(graph_.calls.size()),
                               .call_count = static_cast<uint32_t>(groups_[g].members.size()),
                               .tile_count = groups_[g].tile_count});
      for (uint32_t m : groups_[g].members) {
        Member& member = members_[m];
        member.call.first_tile = static_cast<uint32_t>(graph_.tiles.size());
        member.call.tile_count = groups_[g].tile_count;
        graph_.calls.push_back(std::move(member.call));
        graph_.tiles.insert(graph_.tiles.end(), member.tiles.begin(), member.tiles.end());
      }
    }
  }

 private:
  const Node& node(uint32_t member) const { return program_.node(members_[member].call.node); }
  ValueId Root(ValueId id) const { return graph_.storage_roots[id]; }

  // Calls `function` with the storage root of each value that the node reads: once, even if the node reads several
  // views of the value.
  template <class Function>
  void ForEachRead(const Node& node, Function function) const {
    ++round_;
    for (ValueId in : node.inputs) {
      const ValueId value = Root(in);
      if (std::exchange(seen_[value], round_) != round_) function(value);
    }
  }
  // Returns the index in `members_` of the node that produces a value, or kNone for inputs, parameters and constants.
  uint32_t Producer(ValueId value) const { return member_of_[program_.value(Root(value)).producer]; }
  uint32_t GroupOf(ValueId value) const {
    const uint32_t producer = Producer(value);
    return producer == kNone ? kNone : members_[producer].call.group;
  }
  // Returns the number of values of `group` that the node reads.
  uint32_t ReadsOf(const Node& node, uint32_t group) const {
    uint32_t reads = 0;
    ForEachRead(node, [&](ValueId value) { reads += GroupOf(value) == group; });
    return reads;
  }

  // Returns the index of the group that member `m` joins, or groups_.size() if the member begins a new group.
  uint32_t GroupFor(uint32_t m) {
    const uint32_t new_group = static_cast<uint32_t>(groups_.size());
    if (!fuse_ || node(m).op->messages != nullptr) return new_group;
    uint32_t latest = kNone;
    for (ValueId in : node(m).inputs) {
      const uint32_t group = GroupOf(in);
      if (group != kNone && (latest == kNone || group > latest)) latest = group;
    }
    if (latest != kNone && Joins(m, latest)) return latest;
    return JoinsBatch(m, latest) ? batch_ : new_group;
  }

  // Reports whether member `m` joins group `g`. If so, the member may have taken over the tiles of the group, or the
  // group the tiles of the member.
  bool Joins(uint32_t m, uint32_t g) {
    const Node& n = node(m);
    if (n.op->writes > 0 ? !WritesAfterReaders(n, g) : groups_.size() - g > kMaxGroupsBack && !Shrinks(program_, n))
      return false;
    const GroupBuilder& group = groups_[g];
    if (node(group.members[0]).op->messages != nullptr) return false;
    Member& member = members_[m];
    const size_t tiles = member.tiles.size();
    const double seconds = group.seconds + member.seconds, fixed = n.op->workspace == nullptr ? 0 : member.seconds;
    const auto short_enough = [&](size_t count) {
      return seconds <= std::max(count * kMaxTaskSeconds, kMaxGrowth * std::max(group.fixed_seconds, fixed));
    };
    if (group.tile_count == 1 && tiles == 1) {
      if (ReadsOf(n, g) == group.readers) return short_enough(1);
      return n.op->writes == 0 && seconds <= kMaxDelaySeconds;  // other groups wait for this one, too
    }
    if (group.tile_count > 1 && short_enough(group.tile_count) &&
        ((n.op->workspace == nullptr && TakesTilesOf(m, g)) || (tiles == group.tile_count && Follows(m, g)))) {
      return true;
    }
    return n.op->workspace != nullptr && tiles >= group.tile_count && short_enough(tiles) && GivesTilesTo(m, g);
  }

  // Reports whether member `m` is a write of one tile that joins `batch_`, the latest group of such writes. So many
  // small updates become one task. `latest`: the latest group from which the member reads, or kNone; it must precede
  // the batch.
  bool JoinsBatch(uint32_t m, uint32_t latest) const {
    const Node& n = node(m);
    if (n.op->writes == 0 || members_[m].tiles.size() > 1 || batch_ == kNone || !groups_[batch_].writes) return false;
    if (latest != kNone && latest >= batch_) return false;
    return groups_[batch_].seconds + members_[m].seconds <= kMaxDelaySeconds && WritesAfterReaders(n, batch_);
  }

  // Reports whether all earlier nodes that read a state which node `n` overwrites are in groups before `g`.
  bool WritesAfterReaders(const Node& n, uint32_t g) const {
    return std::all_of(n.inputs.begin(), n.inputs.begin() + n.op->writes,
                       [&](ValueId state) { return last_reader_[Root(state)] <= g; });
  }

  // Reports whether tile i of member `m` reads only those values of group `g` that tile i of the group wrote, for all
  // i.
  bool Follows(uint32_t m, uint32_t g) const {
    const Node& n = node(m);
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (GroupOf(n.inputs[k]) != g) continue;
      const Member& producer = members_[Producer(n.inputs[k])];
      const Node& producing_node = program_.node(producer.call.node);
      const uint32_t output = Root(n.inputs[k]) - producing_node.first_output;
      const OperandTiles written(program_, producing_node, producing_node.inputs.size() + output, producer.tiles);
      if (!TileByTile({program_, n, k, members_[m].tiles}, written)) return false;
    }
    return true;
  }

  // Reports whether the op of member `m` may be cut into the tiles that the member now has.
  bool HasValidTiles(uint32_t m) const {
    const Member& member = members_[m];
    const Node& n = node(m);
    const OpDef& op = *n.op;
    if (member.tiles.size() == 1) return true;
    if (op.cut == Cut::kNone) return false;
    const Types inputs = program_.InputTypes(n), outputs = program_.OutputTypes(n);
    const std::pair<int64_t, int64_t> quanta = QuantaOf(op, {n.attrs, inputs, outputs});
    return absl::c_all_of(member.tiles, [&](const Rect& tile) {
      const bool rows = op.cut == Cut::kCols ? tile.rows() == member.rows : tile.row_begin % quanta.first == 0;
      const bool cols = op.cut == Cut::kRows ? tile.cols() == member.cols : tile.col_begin % quanta.second == 0;
      return rows && cols;
    });
  }

  // Gives member `m` the tiles of group `g` and returns true. Changes nothing and returns false if the op can't be cut
  // so, or if a tile would read what other tiles of the group write.
  bool TakesTilesOf(uint32_t m, uint32_t g) {
    Member& member = members_[m];
    std::vector<Rect> tiles;
    for (ValueId in : node(m).inputs) {
      if (GroupOf(in) != g || !TranslateTiles(members_[Producer(in)], member.rows, member.cols, &tiles)) continue;
      std::swap(member.tiles, tiles);
      if (HasValidTiles(m) && Follows(m, g)) return true;
      std::swap(member.tiles, tiles);
    }
    return false;
  }

  // Gives the fixed tiles of member `m` to all members of group `g` and returns true. If their ops can't be cut so, or
  // if the group has fixed tiles already or more than kMaxRetiled members, changes nothing and returns false.
  bool GivesTilesTo(uint32_t m, uint32_t g) {
    GroupBuilder& group = groups_[g];
    if (group.fixed_seconds > 0 || group.members.size() > kMaxRetiled) return false;
    std::vector<std::vector<Rect>> before;
    bool all = true;
    for (uint32_t i : group.members) {
      std::vector<Rect> tiles;
      all = all && TranslateTiles(members_[m], members_[i].rows, members_[i].cols, &tiles);
      if (!all) break;
      before.push_back(std::exchange(members_[i].tiles, std::move(tiles)));
      all = HasValidTiles(i) && Follows(i, g);
    }
    if (all && Follows(m, g)) {
      group.tile_count = static_cast<uint32_t>(members_[m].tiles.size());
      return true;
    }
    for (size_t i = 0; i < before.size(); ++i) members_[group.members[i]].tiles = std::move(before[i]);
    return false;
  }

  // Puts member `m` into group `g`, which may be a new one.
  void Add(uint32_t m, uint32_t g) {
    Member& member = members_[m];
    const Node& n = node(m);
    if (g == groups_.size()) {
      groups_.push_back({.tile_count = static_cast<uint32_t>(member.tiles.size())});
      if (n.op->writes > 0 && member.tiles.size() == 1 && n.op->messages == nullptr) batch_ = g;
    }
    GroupBuilder& group = groups_[g];
    group.readers -= ReadsOf(n, g);
    group.members.push_back(m);
    member.call.group = g;
    group.writes = group.writes && n.op->writes > 0 && group.tile_count == 1;
    group.seconds += member.seconds;
    if (n.op->workspace != nullptr) group.fixed_seconds = std::max(group.fixed_seconds, member.seconds);
    for (ValueId value : n.outputs()) group.readers += readers_[value];
    ForEachRead(n, [&](ValueId value) {
      uint32_t& last = last_reader_[value];
      last = std::max(last, g + 1);
    });
  }

  const bool fuse_;
  CompiledGraph& graph_;
  const Program& program_;
  std::vector<uint32_t> member_of_;     // by node
  std::vector<uint32_t> readers_;       // by value: the number of nodes that read it
  std::vector<uint32_t> last_reader_;   // by value: 1 + the last group so far that reads it; 0: none
  mutable std::vector<uint64_t> seen_;  // by value: the last round of ForEachRead in which it was read
  mutable uint64_t round_ = 0;
  std::vector<Member> members_;  // in program order
  std::vector<GroupBuilder> groups_;
  uint32_t batch_ = kNone;  // the latest group that began with a write of one tile
};

}  // namespace

void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph) { Fuser(tile_seconds, fuse, graph).Run(); }

}  // namespace weft
