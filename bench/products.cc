#include "weft/bench/products.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>

#include "weft/base/arena.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

// Returns the shape of a product C [rows, cols] whose operands are contiguous.
GemmShape Dense(int64_t batch, int64_t rows, int64_t cols, int64_t inner, bool transpose_a, bool transpose_b,
                DType precision) {
  return {.batch = batch,
          .rows = rows,
          .cols = cols,
          .inner = inner,
          .a_stride = transpose_a ? rows : inner,
          .b_stride = transpose_b ? inner : cols,
          .c_stride = cols,
          .a_batch_stride = rows * inner,
          .b_batch_stride = inner * cols,
          .c_batch_stride = rows * cols,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .in = precision,
          .out = precision};
}

void AddProduct(const StepProduct& product, std::vector<StepProduct>* products) {
  for (StepProduct& other : *products) {
    if (other.shape == product.shape) {
      other.count += product.count;
      return;
    }
  }
  products->push_back(product);
}

// A tile of a product: its shape, and its offsets into the operands.
struct Tile {
  GemmShape shape;
  int64_t a = 0, b = 0, c = 0;
};

// A product cut into tiles.
struct Tiled {
  std::vector<Tile> tiles;
  size_t workspace = 0;

  Tiled(const GemmShape& shape, int64_t batch, int64_t rows, int64_t cols) {
    for (int64_t m = 0; m < shape.batch; m += batch) {
      for (int64_t i = 0; i < shape.rows; i += rows) {
        for (int64_t j = 0; j < shape.cols; j += cols) {
          GemmShape tile = shape;
          tile.batch = std::min(batch, shape.batch - m);
          tile.rows = std::min(rows, shape.rows - i);
          tile.cols = std::min(cols, shape.cols - j);
          workspace = std::max(workspace, GemmWorkspace(tile));
          tiles.push_back({tile, m * shape.a_batch_stride + i * (shape.transpose_a ? 1 : shape.a_stride),
                           m * shape.b_batch_stride + j * (shape.transpose_b ? shape.b_stride : 1),
                           m * shape.c_batch_stride + i * shape.c_stride + j});
        }
      }
    }
  }
};

// The copies of one operand, contiguous in memory: one for each of several products of the same shape.
struct Matrices {
  std::byte* data = nullptr;
  int64_t elements = 0;  // of one matrix
  int64_t size = 0;      // bytes of an element

  const std::byte* at(int64_t copy, int64_t offset) const { return data + (copy * elements + offset) * size; }
  std::byte* at(int64_t copy, int64_t offset) { return data + (copy * elements + offset) * size; }
};

struct Operands {
  static constexpr int64_t kMinBytes = int64_t{64} << 20;  // 64 MiB for all copies: more than the caches hold

  int64_t copies = 1;  // copies of the operands: at most one for each occurrence in a step
  Arena arena;
  Matrices a, b, c;

  explicit Operands(const StepProduct& product) {
    const GemmShape& shape = product.shape;
    const auto matrices = [&](int64_t rows, int64_t cols, DType dtype) {
      return Matrices{.elements = shape.batch * rows * cols, .size = static_cast<int64_t>(SizeOf(dtype))};
    };
    a = matrices(shape.rows, shape.inner, shape.in);
    b = matrices(shape.inner, shape.cols, shape.in);
    c = matrices(shape.rows, shape.cols, shape.out);
    int64_t bytes = 0;
    for (const Matrices* m : {&a, &b, &c}) bytes += m->elements * m->size;
    copies = std::min(product.count, (kMinBytes + bytes - 1) / bytes);
    for (Matrices* m : {&a, &b, &c}) {
      const size_t count = static_cast<size_t>(copies * m->elements);
      m->data = arena.Allocate(AlignUp(count * static_cast<size_t>(m->size)));
      WEFT_CHECK(m->data != nullptr);
      m->size == sizeof(float) ? Fill<float>(m->data, count) : Fill<BF16>(m->data, count);
    }
  }

  template <class T>
  static void Fill(std::byte* data, size_t count) {
    T* const values = reinterpret_cast<T*>(data);
    for (size_t i = 0; i < count; ++i) {
      values[i] = i < 4096 ? static_cast<T>(2 * RandomStream{}.Uniform(i) - 1) : values[i - 4096];
    }
  }
};

class Multiplier {
 public:
  Multiplier(Team* team, const StepProduct& product) : team_(team), product_(product), operands_(product) {}

  // Returns the seconds of one product, measured over several passes. A pass multiplies all copies of the operands
  // once. At 100 GFLOP/s per thread, the passes would last `seconds_of_passes`; there is at least one pass.
  double Time(const Tiled& tiled, double seconds_of_passes) const {
    const double flops = product_.flops() / product_.share * static_cast<double>(operands_.copies);
    const int64_t passes =
        std::max<int64_t>(1, static_cast<int64_t>(seconds_of_passes * 1e11 * team_->threads() / flops));
    const int64_t per_copy = static_cast<int64_t>(tiled.tiles.size());
    const int64_t count = passes * operands_.copies * per_copy;
    std::atomic<int64_t> next{0};
    Arena arena;
    Matrices c = operands_.c;
    std::vector<std::byte*> workspaces;
    for (int t = 0; t < team_->threads(); ++t) workspaces.push_back(arena.Allocate(AlignUp(tiled.workspace + 1)));
    const double seconds = team_->Run([&](int t) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        const Tile& tile = tiled.tiles[static_cast<size_t>(i % per_copy)];
        const int64_t copy = i / per_copy % operands_.copies;
        Gemm(tile.shape, operands_.a.at(copy, tile.a), operands_.b.at(copy, tile.b), c.at(copy, tile.c),
             workspaces[static_cast<size_t>(t)]);
      }
    });
    return seconds / static_cast<double>(passes * operands_.copies);
  }

 private:
  Team* const team_;
  const StepProduct product_;
  const Operands operands_;
};

// Returns the tilings to try. In a batched product, a tile is one or more whole matrices of the batch. Otherwise, it is
// a block of the output matrix.
std::vector<Tiling> Tilings(const GemmShape& shape, int threads) {
  std::vector<Tiling> tilings;
  if (shape.batch > 1) {
    for (int64_t batch = 1; batch == 1 || batch * threads <= shape.batch; batch *= 2) {
      tilings.push_back({batch, shape.rows, shape.cols});
    }
    return tilings;
  }
  const auto sizes = [&](int64_t whole, std::initializer_list<int64_t> parts) {
    std::vector<int64_t> result = {whole};
    const int64_t even = (whole + threads - 1) / threads;
    if (even < whole) result.push_back(even);
    for (int64_t part : parts) {
      if (part < whole && part != even) result.push_back(part);
    }
    return result;
  };
  for (int64_t rows : sizes(shape.rows, {512, 256, 128, 64})) {
    for (int64_t cols : sizes(shape.cols, {2048, 1024, 512, 256, 128})) {
      const int64_t tiles = ((shape.rows + rows - 1) / rows) * ((shape.cols + cols - 1) / cols);
      if (tiles >= threads && tiles <= 512 * threads) tilings.push_back({1, rows, cols});
    }
  }
  return tilings;
}

}  // namespace

std::vector<StepProduct> ProductsOf(const Tape& tape, const BenchModel& model, DType precision) {
  std::vector<StepProduct> products;
  const Program& program = tape.program();
  for (const Node& node : program.nodes) {
    if (node.op != &kMatmul) continue;
    const bool transpose_b = node.attrs.as<MatMulAttrs>().transpose_b;
    WEFT_CHECK(!node.attrs.as<MatMulAttrs>().transpose_a);
    const Types in = program.InputTypes(node);
    const bool shared = in[1].shape.rank() == 2;  // one matrix B serves the whole batch
    const int64_t batch = shared ? 1 : in[1].shape.Product(0, in[1].shape.rank() - 2);
    const int64_t rows = in[0].shape.rows() / batch, inner = in[0].shape.dim(-1);
    const int64_t cols = in[1].shape.dim(transpose_b ? -2 : -1);
    const double blocks = static_cast<double>((rows + 63) / 64);
    const double share = !shared && model.causal ? (blocks + 1) / (2 * blocks) : 1;
    const auto add = [&](const GemmShape& shape) { AddProduct({.shape = shape, .share = share}, &products); };
    add(Dense(batch, rows, cols, inner, false, transpose_b, precision));
    if (!model.trains) continue;
    add(Dense(batch, rows, inner, cols, false, !transpose_b, precision));  // dA = dY B'ᵀ
    add(transpose_b ? Dense(batch, cols, inner, rows, true, false, precision)
                    : Dense(batch, inner, cols, rows, true, false, precision));  // dB = dYᵀ A or Aᵀ dY
  }
  return products;
}

Tiling BestTiling(Team* team, const StepProduct& product, double seconds) {
  const Multiplier multiplier(team, product);
  std::vector<Tiling> tilings = Tilings(product.shape, team->threads());
  for (Tiling& tiling : tilings) {
    const Tiled tiled(product.shape, tiling.batch, tiling.rows, tiling.cols);
    tiling.seconds = std::min(multiplier.Time(tiled, 1e-3), multiplier.Time(tiled, 1e-3));
  }
  std::sort(tilings.begin(), tilings.end(), [](const Tiling& a, const Tiling& b) { return a.seconds < b.seconds; });
  tilings.resize(std::min<size_t>(3, tilings.size()));
  for (Tiling& tiling : tilings) {
    const Tiled tiled(product.shape, tiling.batch, tiling.rows, tiling.cols);
    const Clock::time_point start = Clock::now();
    do tiling.seconds = std::min(tiling.seconds, multiplier.Time(tiled, seconds / 10));
    while (SecondsSince(start) < seconds);
  }
  Tiling best =
      *std::min_element(tilings.begin(), tilings.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  best.seconds *= product.share;
  return best;
}

double AdamWSeconds(int64_t weights, int threads, double seconds) {
  const int64_t n = std::min<int64_t>(weights, int64_t{16} << 20);
  Tape tape;
  const TensorType type = {kF32, {n}};
  const Var w = tape.Parameter("w", type, Gaussian(0.02f));
  const Var m = tape.State("m", type, Zeros()), v = tape.State("v", type, Zeros());
  const Var gradient = tape.Input("gradient", type), rate = tape.Input("rate", {kF32, {}});
  const VarList updated =
      AdamWUpdate(w, m, v, gradient, rate, Fill(&tape, {kF32, {}}, 1), Fill(&tape, {kI32, {}}, 1), {});
  const absl::StatusOr<Graph> graph = Compile(tape, {.update = {tape.Group(updated)}});
  WEFT_CHECK(graph.ok());
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = threads});
  const std::vector<float> gradients(static_cast<size_t>(n), 1e-3f);
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    WEFT_CHECK(runner.Run({{gradient, gradients}, {rate, 1e-4f}}).ok());
    best = std::min(best, SecondsSince(begin));
  } while (SecondsSince(start) < seconds);
  return best * static_cast<double>(weights) / static_cast<double>(n);
}

}  // namespace weft
