// These functions of CheckOp run kernels, and check values, tiles, execution in place, and threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <latch>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/flush_subnormals.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/tests/op_check.h"

namespace weft {
namespace {

constexpr double kTolerance = 2e-6;          // of f32
constexpr double kF64PerF32 = 1e-12 / 2e-6;  // tolerance of f64 relative to that of f32
constexpr double kBF16Tolerance = 0.004;     // one rounding to 8 bits
constexpr double kBF16OfScale = 0x1p-7;      // maximum error of bf16 relative to the largest number of an output
constexpr int64_t kColumnQuantum = 64;       // tiles begin at multiples of this many columns

double ToleranceOf(const OpExample& example, DType dtype) {
  const double tolerance = example.tolerance > 0 ? example.tolerance : kTolerance;
  if (!IsFloat(dtype)) return 0;
  return dtype == kF64 ? tolerance * kF64PerF32 : dtype == kBF16 ? kBF16Tolerance : tolerance;
}

bool Near(double got, double wanted, double tolerance) {
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) && std::isnan(wanted);
  return got == wanted || std::abs(got - wanted) <= tolerance * (1 + std::abs(wanted));
}

// Reports the first few elements of each output that differ.
void ExpectNear(const OpExample& example, absl::Span<const Buffer> got, absl::Span<const std::vector<double>> wanted) {
  ASSERT_EQ(got.size(), wanted.size()) << "outputs";
  constexpr int kMaxShown = 5;
  for (size_t k = 0; k < got.size(); ++k) {
    const double tolerance = ToleranceOf(example, got[k].type().dtype);
    ASSERT_EQ(got[k].elements(), static_cast<int64_t>(wanted[k].size())) << "output " << k;
    double max_error = std::numeric_limits<double>::infinity();
    if (got[k].type().dtype == kBF16) {
      double scale = 0;
      for (double x : wanted[k]) scale = std::isfinite(x) ? std::max(scale, std::abs(x)) : scale;
      max_error = kBF16OfScale * scale;
    }
    int bad = 0;
    for (int64_t i = 0; i < got[k].elements(); ++i) {
      const bool far = std::isfinite(wanted[k][i]) && !(std::abs(got[k].Get(i) - wanted[k][i]) <= max_error);
      if (!far && Near(got[k].Get(i), wanted[k][i], tolerance)) continue;
      if (++bad > kMaxShown) break;
      ADD_FAILURE() << "output " << k << " " << ToString(got[k].type()) << " at " << i << ": got " << got[k].Get(i)
                    << ", wanted " << wanted[k][i];
    }
  }
}

absl::StatusOr<std::vector<std::vector<double>>> ElementaryValues(const NodeCase& node) {
  Tape tape;
  const VarList inputs = RecordInputs(&tape, node.input_types, node.op->writes, 0);
  const VarList outputs = node.op->elementary(node.attrs, inputs);
  if (!tape.status().ok()) return tape.status();
  auto compiled = CompiledCase::Make(tape, outputs, inputs);
  if (!compiled.ok()) return compiled.status();
  const auto results = (*compiled)->Run(node.inputs);
  if (!results.ok()) return results.status();
  std::vector<std::vector<double>> values;
  for (const Buffer& result : *results) values.push_back(result.Doubles());
  return values;
}

std::vector<std::vector<double>> ReferenceValues(const NodeCase& node) {
  std::vector<std::vector<double>> inputs, outputs;
  for (const Buffer& input : node.inputs) inputs.push_back(input.Doubles());
  for (const TensorType& type : node.output_types) outputs.emplace_back(type.shape.elements());
  node.op->reference({.attrs = node.attrs,
                      .input_types = node.input_types,
                      .output_types = node.output_types,
                      .inputs = inputs,
                      .outputs = absl::MakeSpan(outputs),
                      .random = kExampleRandom});
  return outputs;
}

// Returns the smallest tiles that the op allows.
std::vector<Rect> SmallestTiles(const NodeCase& node) {
  const OpDef& op = *node.op;
  const Shape& domain = DomainShape(op, node.args());
  const int64_t rows = domain.rows(), cols = domain.cols();
  if (op.cut == Cut::kNone || rows * cols == 0) return {WholeRect(domain)};
  const int64_t tile_rows = op.cut == Cut::kCols ? rows : op.quantum != nullptr ? op.quantum(node.args()) : 1;
  const int64_t tile_cols = op.cut == Cut::kRows ? cols : kColumnQuantum;
  std::vector<Rect> tiles;
  for (int64_t r = 0; r < rows; r += tile_rows) {
    for (int64_t c = 0; c < cols; c += tile_cols) {
      tiles.push_back({r, std::min(rows, r + tile_rows), c, std::min(cols, c + tile_cols)});
    }
  }
  return tiles;
}

// Runs single tiles of a node on the caller's inputs and outputs, as one of `workers` workers.
class TileRunner {
 public:
  TileRunner(const NodeCase& node, std::vector<Rect> tiles, int workers = 1) : node_(node), tiles_(std::move(tiles)) {
    const size_t bytes = node.op->workspace != nullptr ? node.op->workspace(node.args(), tiles_) : 0;
    for (int i = 0; i < workers; ++i) workspaces_.push_back(arena_.Allocate(bytes));
  }

  absl::Span<const Rect> tiles() const { return tiles_; }
  // Runs one tile. Outputs that replace state overwrite their own copy of the state. `in_place`: OpDef::in_place, or -1
  // to run out of place.
  void Run(const Rect& tile, absl::Span<const Buffer> inputs, absl::Span<const Buffer> outputs, int in_place = -1,
           int worker = 0) const {
    std::vector<Tensor> in, out;
    for (const Buffer& input : inputs) in.push_back(input.tensor());
    for (const Buffer& output : outputs) out.push_back(output.tensor());
    for (int i = 0; i < node_.op->writes; ++i) in[i].data = out[i].data;
    if (in_place >= 0) in[in_place].data = out[0].data;
    const KernelArgs args = {
        .attrs = node_.attrs, .inputs = in, .outputs = out, .workspace = workspaces_[worker], .random = kExampleRandom};
    const FlushSubnormals flush;
    KernelFor(*node_.op, node_.input_types, node_.output_types)(args, tile);
  }
  // Returns outputs whose bytes are all `fill`, except outputs that replace state: these hold the values of the state.
  std::vector<Buffer> Outputs(std::byte fill) const {
    std::vector<Buffer> outputs;
    for (size_t i = 0; i < node_.output_types.size(); ++i) {
      outputs.emplace_back(node_.output_types[i], fill);
      if (static_cast<int>(i) < node_.op->writes) outputs[i].Set(node_.inputs[i].tensor());
    }
    return outputs;
  }

 private:
  const NodeCase& node_;
  std::vector<Rect> tiles_;
  Arena arena_;
  std::vector<std::byte*> workspaces_;
};

bool Inside(const Rect& rect, const Shape& shape, int64_t element) {
  const int64_t row = element / shape.cols(), col = element % shape.cols();
  return row >= rect.row_begin && row < rect.row_end && col >= rect.col_begin && col < rect.col_end;
}

bool SameElement(const Buffer& a, const Buffer& b, int64_t i) {
  const size_t size = SizeOf(a.type().dtype);
  return std::memcmp(a.data() + i * size, b.data() + i * size, size) == 0;
}

// Returns the inputs, but changes the elements that the tile does not declare to read: floats to NaN, bools to the
// opposite, and integers to 0.
std::vector<Buffer> WithOnlyReadValues(const NodeCase& node, const Rect& tile) {
  std::vector<Buffer> inputs = node.inputs;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Rect read = Access(*node.op, node.args(), static_cast<int>(k), tile);
    const TensorType& type = inputs[k].type();
    for (int64_t i = 0; i < inputs[k].elements(); ++i) {
      if (Inside(read, type.shape, i)) continue;
      inputs[k].Set(i, IsFloat(type.dtype) ? std::nan("") : type.dtype == kBool ? 1 - inputs[k].Get(i) : 0);
    }
  }
  return inputs;
}

// Runs one tile alone on outputs with two different fillings. Checks that all elements that changed lie in the declared
// rectangle and have the wanted bits. Returns which elements of each output changed; nothing after a failure.
std::vector<std::vector<bool>> CheckOneTile(const NodeCase& node, TileRunner& runner, const Rect& tile,
                                            absl::Span<const Buffer> wanted) {
  const std::vector<Buffer> inputs = WithOnlyReadValues(node, tile);
  const std::byte fills[2] = {std::byte{0x5a}, std::byte{0xc3}};
  std::vector<std::vector<bool>> written;
  for (const Buffer& output : wanted) written.emplace_back(output.elements(), false);
  for (const std::byte fill : fills) {
    const std::vector<Buffer> before = runner.Outputs(fill), after = before;
    runner.Run(tile, inputs, after);
    for (size_t k = 0; k < after.size(); ++k) {
      const Rect rect = Access(*node.op, node.args(), static_cast<int>(node.inputs.size() + k), tile);
      for (int64_t i = 0; i < after[k].elements(); ++i) {
        if (SameElement(before[k], after[k], i)) continue;
        written[k][i] = true;
        if (!Inside(rect, after[k].type().shape, i)) {
          ADD_FAILURE() << "output " << k << ": a tile writes element " << i << " outside its rectangle";
          return {};
        }
        if (!SameElement(after[k], wanted[k], i)) {
          ADD_FAILURE() << "output " << k << ": a tile alone, on what it says it reads, gives element " << i << " = "
                        << after[k].Get(i) << ", wanted " << wanted[k].Get(i);
          return {};
        }
      }
    }
  }
  return written;
}

bool HasTiles(const NodeCase& node) { return !node.op->view && node.op->lower == nullptr; }

}  // namespace

void CheckValues(const OpExample& example, const NodeCase& node, const NodeCase& twin) {
  const std::vector<Buffer> got = EvaluateNode(node);
  if (node.op->view) {
    EXPECT_EQ(got[0].Doubles(), node.inputs[0].Doubles());
    return;
  }
  if (node.op->reference != nullptr) {
    SCOPED_TRACE("against the reference");
    ExpectNear(example, got, ReferenceValues(node));
  }
  if (node.op->elementary == nullptr) return;
  SCOPED_TRACE("against the elementary spelling");
  const auto wanted = ElementaryValues(twin);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  ExpectNear(example, got, *wanted);
}

void CheckTiles(const NodeCase& node) {
  if (!HasTiles(node)) return;
  const std::vector<Buffer> wanted = EvaluateNode(node);
  TileRunner runner(node, SmallestTiles(node));
  const std::vector<Buffer> backwards = runner.Outputs(std::byte{0x5a});
  for (size_t t = runner.tiles().size(); t-- > 0;) runner.Run(runner.tiles()[t], node.inputs, backwards);
  for (size_t k = 0; k < wanted.size(); ++k) {
    EXPECT_TRUE(backwards[k].SameBits(wanted[k])) << "output " << k << ": small tiles, last first, give other bits";
  }

  std::vector<std::vector<int>> writes;
  for (const Buffer& output : wanted) writes.emplace_back(output.elements(), 0);
  for (const Rect& tile : runner.tiles()) {
    const auto written = CheckOneTile(node, runner, tile, wanted);
    if (written.empty()) return;
    for (size_t k = 0; k < wanted.size(); ++k) {
      for (size_t i = 0; i < written[k].size(); ++i) writes[k][i] += written[k][i];
    }
  }
  for (size_t k = node.op->writes; k < wanted.size();
       ++k) {  // an output that replaces state may leave elements unchanged
    const auto other = std::find_if(writes[k].begin(), writes[k].end(), [](int n) { return n != 1; });
    if (other == writes[k].end()) continue;
    ADD_FAILURE() << "output " << k << ": element " << other - writes[k].begin() << " is written by " << *other
                  << " tiles";
  }
}

void CheckInPlace(const NodeCase& node) {
  const int input = node.op->in_place;
  if (!HasTiles(node) || input < 0 || node.input_types[input] != node.output_types[0]) return;
  const std::vector<Buffer> wanted = EvaluateNode(node);
  TileRunner runner(node, SmallestTiles(node));
  std::vector<Buffer> outputs = runner.Outputs(std::byte{0x5a});
  outputs[0].Set(node.inputs[input].tensor());
  for (const Rect& tile : runner.tiles()) runner.Run(tile, node.inputs, outputs, input);
  for (size_t k = 0; k < wanted.size(); ++k) {
    EXPECT_TRUE(outputs[k].SameBits(wanted[k])) << "output " << k << ": in place, it gets other bits";
  }
}

void CheckConcurrentTiles(const NodeCase& node) {
  constexpr int kWorkers = 4, kRounds = 4;
  if (!HasTiles(node)) return;
  const TileRunner runner(node, SmallestTiles(node), kWorkers);
  const std::vector<Buffer> wanted = runner.Outputs(std::byte{0x5a});
  for (const Rect& tile : runner.tiles()) runner.Run(tile, node.inputs, wanted);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Buffer> outputs = runner.Outputs(std::byte{0xc3});
    std::atomic<size_t> next{0};
    std::latch start(kWorkers);
    std::vector<std::thread> workers;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&, worker] {
        start.arrive_and_wait();
        for (size_t t = next++; t < runner.tiles().size(); t = next++) {
          runner.Run(runner.tiles()[t], node.inputs, outputs, /*in_place=*/-1, worker);
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (outputs[k].SameBits(wanted[k])) continue;
      ADD_FAILURE() << "output " << k << ": small tiles on four threads at once give other bits";
      return;
    }
  }
}

void CheckThreads(const OpCase& c) {
  std::vector<std::vector<Buffer>> results;
  for (const int threads : {1, 4}) {
    const auto compiled = CompiledCase::Make(*c.tape, c.outputs, c.inputs, threads);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto outputs = (*compiled)->Run(c.values);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    results.push_back(*outputs);
  }
  for (size_t k = 0; k < c.outputs.size(); ++k) {
    EXPECT_TRUE(results[0][k].SameBits(results[1][k])) << "output " << k << " differs with the number of threads";
  }
}

}  // namespace weft
