#include "weft/graph/passes/recomputation.h"

#include <limits>
#include <queue>

#include "weft/graph/cost.h"
#include "weft/graph/passes/lifetimes.h"
#include "weft/graph/storage.h"

namespace weft {
namespace {

constexpr int kMaxChain = 256;      // nodes that one choice looks at
constexpr int64_t kSmallPart = 16;  // an input is kept, not computed again, if it has so many times fewer bytes
constexpr double kAged = 1.1;       // so many times dearer than it was known to be, a choice waits for cheaper ones
constexpr double kNone = std::numeric_limits<double>::infinity();

enum class Dead { kClone, kKeep };  // what is done about inputs that a clone needs and that are dead

bool CanRecompute(const Node& node) { return !node.op->view && node.op->writes == 0 && node.op != &kGroupOp; }

}  // namespace

struct RecomputationChooser::State {
  explicit State(const Rewrite& rewrite) : program(rewrite.program), lifetimes(rewrite), initial(lifetimes) {
    std::vector<Change> changes;
    for (uint32_t n = 0; n < lifetimes.end; ++n) {
      const Node& node = program.nodes[n];
      seconds.push_back(0);
      int64_t bytes = 0;
      for (uint32_t i = 0; i < node.output_count; ++i) {
        const uint32_t v = static_cast<uint32_t>(node.output(i));
        bytes += lifetimes.bytes[v];
        if (lifetimes.bytes[v] > 0) changes.push_back(initial.Added(n, lifetimes.until[v], lifetimes.bytes[v]));
      }
      if (bytes == 0 || !CanRecompute(node)) continue;
      const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
      seconds.back() = Seconds(*node.op, {node.attrs, inputs, outputs});
    }
    initial.Apply(changes);
  }

  Recomputation Choose(int64_t limit);
  // The cost of computing `node` again, in seconds per byte and time above the limit; kNone: it can't be, or is no use.
  double Score(uint32_t node);
  void Take(uint32_t node);
  double Try(uint32_t node, Dead dead);
  bool Split(uint32_t node);
  bool Clone(uint32_t node, uint32_t time, Dead dead);
  bool Need(ValueId input, uint32_t time, Dead dead);
  bool MoveClone(uint32_t v, uint32_t time, Dead dead);
  void Undo();

  void Set(std::vector<uint32_t>& values, uint32_t i, uint32_t value) {
    log.push_back({&values[i], values[i]});
    values[i] = value;
  }
  void KeepClone(uint32_t v, uint32_t first, uint32_t time) {  // its bytes are live from `first` to `time`, too
    changes.push_back(live.Added(first, time, lifetimes.bytes[v]));
    Set(clone_last, v, time);
    Set(clone_until, v, time);
  }
  int64_t BytesOf(uint32_t node) const {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < program.nodes[node].output_count; ++i) {
      bytes += lifetimes.bytes[static_cast<size_t>(program.nodes[node].output(i))];
    }
    return bytes;
  }

  const Program& program;
  const Lifetimes lifetimes;
  LiveBytes initial;
  std::vector<double> seconds;  // by node

  // What is chosen so far, and what is being tried.
  LiveBytes live{lifetimes};
  std::vector<uint32_t> from;                       // by node, as in Recomputation
  std::vector<uint32_t> last, until;                // by root: of the original, as in Lifetimes
  std::vector<uint32_t> clone_last, clone_until;    // by root: of the clone; kNever: nothing reads it
  std::vector<std::vector<uint32_t>> clones_read;   // by node: when clones read the original
  std::vector<std::pair<uint32_t*, uint32_t>> log;  // what was set: where, and what was there
  std::vector<uint32_t> read_log;                   // nodes to whose clones_read a time was added
  std::vector<Change> changes;
  double cost = 0;         // seconds of all clones that are tried
  int64_t freed = 0;       // bytes of what is tried
  int64_t chain_peak = 0;  // the most bytes of a clone and the clones that it alone needs
  int chain = 0;
};

// An input that a clone made at `time` reads.
bool RecomputationChooser::State::Need(ValueId input, uint32_t time, Dead dead) {
  const size_t v = lifetimes.root(input);
  if (lifetimes.written[v] < time) return false;  // the state has its next version by then
  if (lifetimes.bytes[v] == 0) return true;
  if (++chain > kMaxChain) return false;
  const uint32_t node = static_cast<uint32_t>(program.values[v].producer);
  if (from[node] <= time) {
    if (clone_last[v] == kNever) {
      KeepClone(v, from[node], time);
    } else if (clone_last[v] < time) {
      KeepClone(v, clone_until[v] + 1, time);
    }
    return true;
  }
  if (time > last[v] && from[node] != kNever) return MoveClone(v, time, dead);
  if (time > last[v]) {
    if (dead == Dead::kClone && CanRecompute(program.nodes[node]) && lifetimes.bytes[v] * kSmallPart > freed) {
      Set(from, node, time);
      Set(clone_last, v, time);
      Set(clone_until, v, time);
      return Clone(node, time, dead);
    }
    changes.push_back(live.Added(until[v] + 1, time, lifetimes.bytes[v]));
    Set(last, v, time);
    Set(until, v, time);
  }
  clones_read[node].push_back(time);
  read_log.push_back(node);
  return true;
}

// The clone of the node that makes v is needed earlier.
bool RecomputationChooser::State::MoveClone(uint32_t v, uint32_t time, Dead dead) {
  const uint32_t node = static_cast<uint32_t>(program.values[v].producer), before = from[node];
  for (uint32_t i = 0; i < program.nodes[node].output_count; ++i) {
    const uint32_t output = static_cast<uint32_t>(program.nodes[node].output(i));
    if (clone_last[output] != kNever) changes.push_back(live.Added(time, before - 1, lifetimes.bytes[output]));
  }
  if (clone_last[v] == kNever) KeepClone(v, time, time);
  Set(from, node, time);
  for (ValueId in : program.nodes[node].inputs) {
    if (!Need(in, time, dead)) return false;
  }
  return true;
}

// A clone of `node`, made at `time`, and what it needs.
bool RecomputationChooser::State::Clone(uint32_t node, uint32_t time, Dead dead) {
  cost += seconds[node];
  int64_t bytes = BytesOf(node);
  for (size_t i = 0; i < program.nodes[node].inputs.size(); ++i) {
    const ValueId in = program.nodes[node].inputs[i];
    const size_t v = lifetimes.root(in);
    if (!Need(in, time, dead)) return false;
    const bool transient = clone_last[v] == time && from[static_cast<size_t>(program.values[v].producer)] == time;
    const bool taken_over = program.nodes[node].op->in_place == static_cast<int>(i) &&
                            MayOverwrite(program, program.nodes[node], lifetimes.roots);
    if (transient && !taken_over) bytes += lifetimes.bytes[v];
  }
  chain_peak = std::max(chain_peak, bytes);
  return true;
}

// Frees a node's outputs where they are not read for the longest time with too much live.
bool RecomputationChooser::State::Split(uint32_t node) {
  std::vector<uint32_t> times = lifetimes.reads[node];
  times.insert(times.end(), clones_read[node].begin(), clones_read[node].end());
  std::sort(times.begin(), times.end());
  uint32_t after = node, before = 0, most = 0, previous = node;
  for (uint32_t time : times) {
    const uint32_t above = previous < time ? live.TimeAbove(previous, time) : 0;
    if (above > most) {
      most = above;
      after = previous;
      before = time;
    }
    previous = time;
  }
  if (most == 0) return false;
  for (uint32_t i = 0; i < program.nodes[node].output_count; ++i) {
    const uint32_t v = static_cast<uint32_t>(program.nodes[node].output(i));
    if (lifetimes.bytes[v] == 0 || last[v] <= after) continue;
    changes.push_back(live.Freed(after, before, lifetimes.bytes[v]));
    freed += lifetimes.bytes[v];
    Set(clone_last, v, last[v]);
    Set(clone_until, v, until[v]);
    Set(last, v, after);
    Set(until, v, after);
  }
  Set(from, node, before);
  return true;
}

double RecomputationChooser::State::Try(uint32_t node, Dead dead) {
  changes.clear();
  cost = 0;
  freed = chain_peak = 0;
  chain = 0;
  if (!Split(node)) return kNone;
  const uint32_t time = from[node];
  if (!Clone(node, time, dead)) return kNone;
  const int64_t more = chain_peak - BytesOf(node);
  if (more > 0) changes.push_back(live.Added(time, time, more));
  const int64_t gain = live.Gain(changes);
  return gain > 0 ? cost / static_cast<double>(gain) : kNone;
}

void RecomputationChooser::State::Undo() {
  for (; !log.empty(); log.pop_back()) *log.back().first = log.back().second;
  for (; !read_log.empty(); read_log.pop_back()) clones_read[read_log.back()].pop_back();
}

double RecomputationChooser::State::Score(uint32_t node) {
  if (from[node] != kNever || seconds[node] == 0) return kNone;
  double best = kNone;
  for (Dead dead : {Dead::kClone, Dead::kKeep}) {
    best = std::min(best, Try(node, dead));
    Undo();
  }
  return best;
}

void RecomputationChooser::State::Take(uint32_t node) {
  const double clone = Try(node, Dead::kClone);
  Undo();
  const double keep = Try(node, Dead::kKeep);
  if (clone < keep) {
    Undo();
    Try(node, Dead::kClone);
  }
  log.clear();
  read_log.clear();
  live.Apply(changes);
}

Recomputation RecomputationChooser::State::Choose(int64_t limit) {
  const size_t values = program.values.size();
  live = initial;
  live.SetLimit(limit);
  from.assign(lifetimes.end, kNever);
  last = lifetimes.last;
  until = lifetimes.until;
  clone_last.assign(values, kNever);
  clone_until.assign(values, kNever);
  clones_read.assign(lifetimes.end, {});
  Recomputation result;

  // Cheapest first. Scores age as choices are made; one that comes to the front is looked at again.
  using Candidate = std::pair<double, uint32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](uint32_t node) {
    const double score = Score(node);
    if (score != kNone) queue.push({score, node});
  };
  for (bool progress = true; progress && live.excess() > 0;) {
    progress = false;
    for (uint32_t n = 0; n < lifetimes.end; ++n) offer(n);
    while (!queue.empty() && live.excess() > 0) {
      const auto [known, node] = queue.top();
      queue.pop();
      const double score = Score(node);
      if (score == kNone) continue;
      if (!queue.empty() && score > queue.top().first && score > kAged * known) {
        queue.push({score, node});
        continue;
      }
      Take(node);
      result.seconds += cost;
      progress = true;
      for (ValueId in : program.nodes[node].inputs) {  // these may be cheaper now
        offer(static_cast<uint32_t>(program.values[lifetimes.root(in)].producer));
      }
      for (uint32_t reader : lifetimes.reads[node]) {
        if (reader < lifetimes.end) offer(reader);
      }
    }
  }
  result.from = from;
  result.fits = live.excess() == 0;
  return result;
}

RecomputationChooser::RecomputationChooser(const Rewrite& rewrite) : state_(std::make_unique<State>(rewrite)) {}
RecomputationChooser::~RecomputationChooser() = default;
size_t RecomputationChooser::most_live() const { return static_cast<size_t>(state_->initial.most()); }
Recomputation RecomputationChooser::Choose(size_t bytes) { return state_->Choose(static_cast<int64_t>(bytes)); }

}  // namespace weft
