#include "weft/graph/passes/lifetimes.h"

#include "weft/core/arena.h"
#include "weft/graph/passes/recomputation.h"
#include "weft/graph/storage.h"

namespace weft {
namespace {

constexpr uint32_t kMaxBuckets = 4096;

// Whether output 0 of a node takes over the bytes of `input`, as the memory plan lets it at the last use.
bool TakesOver(const Program& program, const Lifetimes& lifetimes, const Node& node, size_t input) {
  return node.op->in_place == static_cast<int>(input) && node.op->writes == 0 &&
         MayOverwrite(program, node, lifetimes.roots);
}

}  // namespace

Lifetimes::Lifetimes(const Rewrite& rewrite)
    : end(static_cast<uint32_t>(rewrite.program.nodes.size())), roots(StorageRoots(rewrite.program)) {
  const Program& program = rewrite.program;
  bytes.assign(program.values.size(), 0);
  last.assign(program.values.size(), 0);
  written.assign(program.values.size(), kNever);
  reads.resize(end);
  const auto read = [&](ValueId id, uint32_t time) {
    const size_t r = root(id);
    last[r] = time;
    std::vector<uint32_t>& times = reads[static_cast<size_t>(program.values[r].producer)];
    if (times.empty() || times.back() != time) times.push_back(time);
  };
  for (uint32_t n = 0; n < end; ++n) {
    const Node& node = program.nodes[n];
    const bool placed = !node.op->view && KernelFor(*node.op, program.InputTypes(node), program.OutputTypes(node));
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const size_t v = static_cast<size_t>(node.output(i));
      last[v] = n;
      if (placed && static_cast<int>(i) >= node.op->writes) {
        bytes[v] = static_cast<int64_t>(AlignUp(std::max<size_t>(program.values[v].type.bytes(), 1)));
      }
    }
    if (placed) {  // a group only orders
      for (ValueId in : node.inputs) read(in, n);
    }
    for (int i = 0; i < node.op->writes; ++i) written[root(node.inputs[i])] = n;
  }
  for (ValueId id : rewrite.roots) read(id, end);
  until = last;
  for (uint32_t n = 0; n < end; ++n) {
    const Node& node = program.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const size_t r = root(node.inputs[i]);
      if (last[r] == n && TakesOver(program, *this, node, i)) until[r] = n - 1;
    }
  }
}

LiveBytes::LiveBytes(const Lifetimes& lifetimes) {
  stride_ = lifetimes.end / kMaxBuckets + 1;
  live_.assign(lifetimes.end / stride_ + 2, 0);
  above_.assign(live_.size() + 1, 0);
}

void LiveBytes::SetLimit(int64_t bytes) {
  limit_ = bytes;
  excess_ = 0;
  for (size_t i = 0; i < live_.size(); ++i) {
    above_[i + 1] = above_[i] + (live_[i] > limit_ ? 1 : 0);
    excess_ += std::max<int64_t>(0, live_[i] - limit_);
  }
}

void LiveBytes::Apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    for (uint32_t i = change.begin; i < change.end; ++i) live_[i] += change.bytes;
  }
  SetLimit(limit_);
}

int64_t LiveBytes::Gain(const std::vector<Change>& changes) {
  steps_.clear();
  for (const Change& change : changes) {
    if (change.begin >= change.end) continue;
    steps_.push_back({change.begin, change.bytes});
    steps_.push_back({change.end, -change.bytes});
  }
  std::sort(steps_.begin(), steps_.end());
  int64_t gain = 0, more = 0;
  for (size_t s = 0; s + 1 < steps_.size(); ++s) {
    more += steps_[s].second;
    if (more == 0) continue;
    for (uint32_t i = steps_[s].first; i < steps_[s + 1].first; ++i) {
      gain += std::max<int64_t>(0, live_[i] - limit_) - std::max<int64_t>(0, live_[i] + more - limit_);
    }
  }
  return gain;
}

}  // namespace weft
