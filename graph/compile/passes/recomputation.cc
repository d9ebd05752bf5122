// Greedily chooses nodes to compute twice. A candidate has outputs that are not read for some time in which live bytes
// exceed the limit. The outputs are freed for this gap, and a clone of the node makes them again just before the next
// read. If inputs of the clone are dead then, large ones are cloned too, where possible. The others stay alive until
// the clone runs.
#include "weft/graph/compile/passes/recomputation.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "absl/algorithm/container.h"
#include "weft/base/arena.h"
#include "weft/graph/compile/cost.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr uint32_t kNever = 0xffffffff;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMaxClones = 256;  // of one candidate: longer chains take time to evaluate and are never cheap
// A dead input of a clone is kept alive, not cloned, if it has at most 1/4 of the bytes that the candidate frees. Of
// the fractions from 1/2 to 1/16, 1/4 gave the smallest arenas for GPT-2, BERT and the Transformer together.
constexpr int64_t kMinFreedPerKept = 4;

struct Change {  // of the live bytes in [begin, end)
  uint32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

struct Candidate {
  double score = kInfinity;      // seconds per byte of excess removed, summed over times
  double seconds = 0;            // of the clones
  uint32_t time = kNever;        // the time before which the clones are made
  int64_t freed = 0;             // bytes
  std::vector<uint32_t> clones;  // the node, and the inputs that are recomputed with it
  std::vector<ValueId> kept;     // the inputs that are kept alive until `time`
  std::vector<Change> changes;
};

class Chooser {
 public:
  Chooser(const Rewrite& rewrite, int64_t limit)
      : program_(rewrite.program),
        roots_(StorageRoots(program_)),
        limit_(limit),
        end_(static_cast<uint32_t>(program_.nodes.size())),
        bytes_(program_.values.size(), 0),
        overwritten_(program_.values.size(), kNever),
        reads_(program_.values.size()),
        seconds_(end_, kInfinity),
        clone_time_(end_, kNever),
        live_(end_ + 1, 0),
        delta_(end_ + 2, 0) {
    for (uint32_t n = 0; n < end_; ++n) AddNode(n);
    for (ValueId id : rewrite.roots) Insert(end_, &reads_[Root(id)]);
    for (uint32_t id = 0; id < bytes_.size(); ++id) {
      const ValueId v{id};
      if (bytes_[v] == 0) continue;
      const uint32_t made = Producer(v), last = reads_[v].empty() ? made : reads_[v].back();
      for (uint32_t t = made; t < last + (TakenOver(v, last) ? 0 : 1); ++t) live_[t] += bytes_[v];
    }
  }

  Recomputation Run() {
    while (CountTimesAbove() && TakeCheapest()) {
    }
    Recomputation result = {.seconds = total_seconds_, .fits = !CountTimesAbove()};
    for (uint32_t n = 0; n < end_; ++n) {
      if (clone_time_[n] != kNever) result.clones.push_back({clone_time_[n], n});
    }
    absl::c_sort(result.clones);
    return result;
  }

 private:
  void AddNode(uint32_t n) {
    const Node& node = program_.nodes[n];
    const Types inputs = program_.InputTypes(node), outputs = program_.OutputTypes(node);
    if (!IsCall(*node.op, inputs, outputs)) return;
    for (ValueId in : node.inputs) Insert(n, &reads_[Root(in)]);
    for (int i = 0; i < node.op->writes; ++i) overwritten_[Root(node.inputs[i])] = n;
    for (uint32_t i = static_cast<uint32_t>(node.op->writes); i < node.output_count; ++i) {
      bytes_[node.output(i)] = static_cast<int64_t>(AlignUp(std::max<size_t>(outputs[i].bytes(), 1)));
    }
    if (node.op->writes == 0 && node.op->messages == nullptr)
      seconds_[n] = Seconds(*node.op, {node.attrs, inputs, outputs});
  }

  // Reports whether the node at time `last`, the last reader of `v`, overwrites `v` with its own output.
  bool TakenOver(ValueId v, uint32_t last) const {
    if (last == end_ || last == Producer(v)) return false;
    const Node& node = program_.nodes[last];
    return node.op->in_place >= 0 && Root(node.inputs[node.op->in_place]) == v && Overwrites(node);
  }
  bool Overwrites(const Node& node) const { return node.op->writes == 0 && MayOverwrite(program_, node, roots_); }

  // Counts in `above_`, for each time, the earlier times at which live bytes exceed the limit. Returns false if they
  // never do.
  bool CountTimesAbove() {
    above_.assign(1, 0);
    for (int64_t bytes : live_) above_.push_back(above_.back() + (bytes > limit_ ? 1 : 0));
    return above_.back() > 0;
  }

  // Takes candidates, cheapest first, until the limit is met or no candidate is left. Returns false if it took none.
  bool TakeCheapest() {
    using Entry = std::pair<double, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (uint32_t n = 0; n < end_; ++n) {
      const double score = Evaluate(n).score;
      if (score < kInfinity) queue.push({score, n});
    }
    bool any = false;
    while (!queue.empty() && CountTimesAbove()) {
      const uint32_t node = queue.top().second;
      queue.pop();
      const Candidate candidate = Evaluate(node);  // its score may have changed since it was queued
      if (candidate.score == kInfinity) continue;
      if (!queue.empty() && candidate.score > queue.top().first) {
        queue.push({candidate.score, node});
        continue;
      }
      Take(candidate);
      any = true;
    }
    return any;
  }

  // Returns the candidate that recomputes `node`; its score is infinite if that does not help. Of the gaps between uses
  // of the node's outputs, the candidate takes the one with the most times above the limit.
  Candidate Evaluate(uint32_t node) {
    Candidate c;
    if (clone_time_[node] != kNever || !CanClone(node, 0)) return c;
    const Node& n = program_.nodes[node];
    std::vector<uint32_t> times = {node};
    for (ValueId v : n.outputs()) times.insert(times.end(), reads_[v].begin(), reads_[v].end());
    absl::c_sort(times);
    uint32_t begin = 0, longest = 0;
    for (size_t i = 0; i + 1 < times.size(); ++i) {
      if (times[i] == times[i + 1]) continue;
      const uint32_t above = above_[times[i + 1]] - above_[times[i] + 1];
      if (above <= longest) continue;
      longest = above;
      begin = times[i] + 1;
      c.time = times[i + 1];
    }
    if (longest == 0 || !CanClone(node, c.time)) return c;
    for (ValueId v : n.outputs()) {
      if (bytes_[v] == 0 || NextRead(v, c.time) == kNever) continue;
      c.freed += bytes_[v];
      c.changes.push_back({begin, c.time, -bytes_[v]});
    }
    AddClone(node, &c);
    const int64_t transient = TransientBytes(c) - OutputBytes(n);
    if (transient > 0) c.changes.push_back({c.time, c.time + 1, transient});
    const int64_t gain = Gain(c.changes);
    if (gain > 0) c.score = c.seconds / static_cast<double>(gain);
    return c;
  }

  // Adds a clone of `node` to candidate `c`. For each input of the node that is dead at `c->time`, adds a clone of its
  // producer, or keeps the input alive until then.
  void AddClone(uint32_t node, Candidate* c) const {
    c->clones.push_back(node);
    const Node& n = program_.nodes[node];
    if (clone_time_[node] == kNever) {
      c->seconds += seconds_[node];
    } else {  // the clone exists, but is made later: it moves forward
      for (ValueId v : n.outputs()) {
        if (NextRead(v, clone_time_[node]) == kNever) continue;
        c->changes.push_back({c->time, clone_time_[node], bytes_[v]});
      }
    }
    for (ValueId in : n.inputs) {
      const ValueId v = Root(in);
      const uint32_t producer = Producer(v);
      if (bytes_[v] == 0 || IsLive(v, c->time)) continue;
      if (absl::c_linear_search(c->clones, producer) || absl::c_linear_search(c->kept, v)) continue;
      if (bytes_[v] * kMinFreedPerKept > c->freed && clone_time_[producer] > c->time && CanClone(producer, c->time) &&
          c->clones.size() < kMaxClones) {
        AddClone(producer, c);
      } else {
        c->kept.push_back(v);
        c->changes.push_back({LastUse(v, c->time) + 1, c->time + 1, bytes_[v]});
      }
    }
  }

  // Returns the maximum, over the clones, of the bytes of a clone's outputs and cloned inputs. An input that the clone
  // overwrites does not count.
  int64_t TransientBytes(const Candidate& c) const {
    int64_t largest = 0;
    for (uint32_t clone : c.clones) {
      const Node& node = program_.nodes[clone];
      int64_t bytes = OutputBytes(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = Root(node.inputs[i]);
        const bool taken_over = node.op->in_place == static_cast<int>(i) && Overwrites(node);
        if (absl::c_linear_search(c.clones, Producer(v)) && !taken_over) bytes += bytes_[v];
      }
      largest = std::max(largest, bytes);
    }
    return largest;
  }

  // Returns by how many bytes `changes` lower the excess of live bytes over the limit, summed over all times.
  int64_t Gain(const std::vector<Change>& changes) {
    uint32_t begin = end_, end = 0;
    for (const Change& change : changes) {
      delta_[change.begin] += change.bytes;
      delta_[change.end] -= change.bytes;
      begin = std::min(begin, change.begin);
      end = std::max(end, change.end);
    }
    int64_t gain = 0, change = 0;
    for (uint32_t t = begin; t < end; ++t) {
      change += std::exchange(delta_[t], 0);
      gain += std::max<int64_t>(0, live_[t] - limit_) - std::max<int64_t>(0, live_[t] + change - limit_);
    }
    delta_[end] = 0;
    return gain;
  }

  void Take(const Candidate& c) {
    total_seconds_ += c.seconds;
    for (uint32_t n : c.clones) {
      clone_time_[n] = c.time;
      for (ValueId in : program_.nodes[n].inputs) Insert(c.time, &reads_[Root(in)]);
    }
    for (const Change& change : c.changes) {
      for (uint32_t t = change.begin; t < change.end; ++t) live_[t] += change.bytes;
    }
  }

  ValueId Root(ValueId id) const { return roots_[id]; }
  uint32_t Producer(ValueId v) const { return program_.value(v).producer; }
  int64_t OutputBytes(const Node& node) const {
    int64_t bytes = 0;
    for (ValueId v : node.outputs()) bytes += bytes_[v];
    return bytes;
  }
  // Reports whether `node` can be computed again just before `time`: it writes no state, and no state that it reads has
  // been overwritten by then.
  bool CanClone(uint32_t node, uint32_t time) const {
    return seconds_[node] < kInfinity &&
           absl::c_all_of(program_.nodes[node].inputs, [&](ValueId in) { return overwritten_[Root(in)] >= time; });
  }
  // Returns the first read of value `v`, or of its clone, at or after `time`; kNever if there is none.
  uint32_t NextRead(ValueId v, uint32_t time) const {
    const auto next = absl::c_lower_bound(reads_[v], time);
    return next == reads_[v].end() ? kNever : *next;
  }
  // Returns the last time at or before `time` at which value `v`, or its clone, is made or read.
  uint32_t LastUse(ValueId v, uint32_t time) const {
    const uint32_t producer = Producer(v), made = clone_time_[producer] <= time ? clone_time_[producer] : producer;
    const auto next = absl::c_upper_bound(reads_[v], time);
    return next == reads_[v].begin() ? made : std::max(made, *std::prev(next));
  }
  bool IsLive(ValueId v, uint32_t time) const {
    const uint32_t read = NextRead(v, time), clone = clone_time_[Producer(v)];
    return read != kNever && (time >= clone || read < clone);
  }
  static void Insert(uint32_t time, std::vector<uint32_t>* times) {
    const auto at = absl::c_lower_bound(*times, time);
    if (at == times->end() || *at != time) times->insert(at, time);
  }

  const Program& program_;
  const std::vector<ValueId> roots_;
  const int64_t limit_;
  const uint32_t end_;                        // the end of the program
  std::vector<int64_t> bytes_;                // by storage root; 0 if the value is outside the arena
  std::vector<uint32_t> overwritten_;         // by storage root: the time of the write that overwrites it, or kNever
  std::vector<std::vector<uint32_t>> reads_;  // by storage root: times, rising, with those of clones
  std::vector<double> seconds_;               // by node; infinite if it can't be recomputed
  std::vector<uint32_t> clone_time_;          // by node; kNever if it has no clone
  std::vector<int64_t> live_;                 // by time: bytes
  std::vector<int64_t> delta_;                // by time: scratch space of Gain, all 0
  std::vector<uint32_t> above_;               // by time: number of earlier times with too many live bytes
  double total_seconds_ = 0;
};

}  // namespace

Recomputation ChooseRecomputation(const Rewrite& rewrite, size_t limit) {
  return Chooser(rewrite, static_cast<int64_t>(limit)).Run();
}

}  // namespace weft
