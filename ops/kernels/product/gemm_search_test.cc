// Searches for products whose bits depend on more than the inner dimension. For a given time, draws random products.
// Computes each one whole, and then in random tiles, with other gaps between rows, alignments, transpositions and
// packing. All elements must have equal bits. Gaps of A and B are NaN, gaps of C must stay as they are, and sums must
// be right.
//
//   bazel run -c opt //ops/kernels/product:gemm_search -- --seconds=3600
//
// Each instruction set that WEFT_INSTRUCTION_SET can name gets an equal part of the time, in a process of its own.
// Prints its time, its number of products and their differences. Exits with code 1 if there is a difference.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "weft/base/arena.h"
#include "weft/core/dtype.h"
#include "weft/ops/kernels/instruction_set.h"
#include "weft/ops/kernels/product/gemm.h"

namespace weft {
namespace {

struct SearchOptions {
  double seconds = 60;
  uint32_t seed = 1;
  int64_t products = std::numeric_limits<int64_t>::max();
};

using Random = std::mt19937;

int64_t Below(int64_t n, Random* random) { return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n)); }
bool Chance(int64_t one_in, Random* random) { return Below(one_in, random) == 0; }

// Returns a size of 1 to `limit`. Small sizes, and neighbours of multiples of 64, are more likely.
int64_t DrawSize(int64_t limit, Random* random) {
  const double log = std::log2(static_cast<double>(limit)) * static_cast<double>((*random)()) / 0x1p32;
  int64_t size = static_cast<int64_t>(std::exp2(log));
  if (size > 64 && Chance(2, random)) size = size / 64 * 64 + (Chance(2, random) ? 0 : Below(3, random) - 1);
  return std::clamp<int64_t>(size, 1, limit);
}

// A part of the rows or columns of C, or of a batch.
struct Range {
  int64_t begin = 0, size = 0;
};

Range DrawRange(int64_t size, Random* random) {
  const int64_t drawn = DrawSize(size, random);
  return {Below(size - drawn + 1, random), drawn};
}

// Holds the numbers of a batch of matrices, without gaps.
struct Numbers {
  int64_t rows = 0, cols = 0;
  std::vector<float> numbers;

  Numbers(int64_t batch, int64_t r, int64_t c, bool round, Random* random) : rows(r), cols(c) {
    for (int64_t i = 0; i < batch * r * c; ++i) {
      const float x = static_cast<float>((*random)()) * 0x1p-31f - 1;
      numbers.push_back(round ? static_cast<float>(BF16(x)) : x);
    }
  }
  float At(int64_t m, int64_t i, int64_t j) const { return numbers[static_cast<size_t>((m * rows + i) * cols + j)]; }
};

// Stores a part of a batch of matrices for a product, with random gaps and a random alignment.
class Operand {
 public:
  Operand(const Numbers& from, Range batch, Range rows, Range cols, bool transposed, DType dtype, Random* random)
      : batch_(batch.size), rows_(rows.size), cols_(cols.size), transposed_(transposed), dtype_(dtype) {
    const int64_t width = transposed ? rows.size : cols.size, height = transposed ? cols.size : rows.size;
    const int64_t gaps[] = {0, 0, Below(4, random), 16 * Below(4, random), Below(700, random)};
    stride = width + gaps[Below(5, random)];
    batch_stride = height * stride + (Chance(2, random) ? 0 : Below(40, random));
    const int64_t first = Chance(2, random) ? 0 : Below(33, random);
    bytes_.assign(static_cast<size_t>(first + batch_ * batch_stride) * SizeOf(dtype) + 64, std::byte{0xff});  // NaN
    void* aligned = bytes_.data();
    size_t space = bytes_.size();
    std::align(64, 1, aligned, space);
    data_ = static_cast<std::byte*>(aligned) + first * static_cast<int64_t>(SizeOf(dtype));
    for (int64_t m = 0; m < batch_; ++m) {
      for (int64_t i = 0; i < rows_; ++i) {
        for (int64_t j = 0; j < cols_; ++j) {
          Set(OffsetOf(m, i, j), from.At(batch.begin + m, rows.begin + i, cols.begin + j));
        }
      }
    }
  }

  float At(int64_t m, int64_t i, int64_t j) const {
    const std::byte* const at = data_ + OffsetOf(m, i, j) * static_cast<int64_t>(SizeOf(dtype_));
    return dtype_ == kBF16 ? static_cast<float>(*reinterpret_cast<const BF16*>(at))
                           : *reinterpret_cast<const float*>(at);
  }
  // Returns the number of bytes that are in no element and are not 0xff.
  int64_t ChangedGaps() const {
    std::vector<std::byte> bytes = bytes_;
    for (int64_t m = 0; m < batch_; ++m) {
      for (int64_t i = 0; i < rows_; ++i) {
        const int64_t from = data_ - bytes_.data() + OffsetOf(m, i, 0) * static_cast<int64_t>(SizeOf(dtype_));
        std::fill_n(bytes.begin() + from, cols_ * static_cast<int64_t>(SizeOf(dtype_)), std::byte{0xff});
      }
    }
    return std::count_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0xff}; });
  }
  std::byte* data() { return data_; }

  int64_t stride = 0, batch_stride = 0;

 private:
  int64_t OffsetOf(int64_t m, int64_t i, int64_t j) const {
    return m * batch_stride + (transposed_ ? j * stride + i : i * stride + j);
  }
  void Set(int64_t offset, float x) {
    std::byte* const at = data_ + offset * static_cast<int64_t>(SizeOf(dtype_));
    if (dtype_ == kBF16) {
      *reinterpret_cast<BF16*>(at) = BF16(x);
    } else {
      *reinterpret_cast<float*>(at) = x;
    }
  }

  int64_t batch_, rows_, cols_;
  bool transposed_;
  DType dtype_;
  std::vector<std::byte> bytes_;
  std::byte* data_ = nullptr;
};

std::string ToString(const GemmShape& s, const char* kind) {
  char text[300];
  std::snprintf(text, sizeof text,
                "%s: batch %d, rows %d, cols %d, inner %d, strides %d %d %d, batch strides %d %d %d%s%s%s%s, %s to %s",
                kind, static_cast<int>(s.batch), static_cast<int>(s.rows), static_cast<int>(s.cols),
                static_cast<int>(s.inner), static_cast<int>(s.a_stride), static_cast<int>(s.b_stride),
                static_cast<int>(s.c_stride), static_cast<int>(s.a_batch_stride), static_cast<int>(s.b_batch_stride),
                static_cast<int>(s.c_batch_stride), s.transpose_a ? ", A transposed" : "",
                s.transpose_b ? ", B transposed" : "", s.packed_b ? ", B packed" : "",
                s.accumulate ? ", adds to C" : "", std::string(Name(s.in)).c_str(), std::string(Name(s.out)).c_str());
  return text;
}

// A random product, and its elements as they are computed whole.
class RandomProduct {
 public:
  explicit RandomProduct(Random* random)
      : random_(random),
        shape_(Draw(random)),
        a_(Drawn(shape_.batch, shape_.rows, shape_.inner)),
        b_(Drawn(shares_b_ ? 1 : shape_.batch, shape_.inner, shape_.cols)),
        c_(Drawn(shape_.batch, shape_.rows, shape_.cols)) {}

  // Computes the product whole and in tiles. Returns the first difference; empty: none.
  std::string Check() {
    const Range batch = {0, shape_.batch}, rows = {0, shape_.rows}, cols = {0, shape_.cols};
    GemmShape whole_shape;
    const Operand whole = Compute(batch, rows, cols, &whole_shape);
    const int64_t m = Below(shape_.batch, random_), i = Below(shape_.rows, random_), j = Below(shape_.cols, random_);
    double sum = shape_.accumulate ? double{c_.At(m, i, j)} : 0, scale = std::abs(sum);
    for (int64_t k = 0; k < shape_.inner; ++k) {
      const double term = double{a_.At(m, i, k)} * double{b_.At(shares_b_ ? 0 : m, k, j)};
      sum += term;
      scale += std::abs(term);
    }
    if (!(std::abs(whole.At(m, i, j) - sum) <= 1e-6 * scale + (shape_.out == kBF16 ? 0x1p-8 * std::abs(sum) : 0))) {
      return ToString(whole_shape, "wrong");
    }
    for (int tile = 0; tile < 6; ++tile) {
      const Range b = DrawRange(shape_.batch, random_), r = DrawRange(shape_.rows, random_),
                  c = DrawRange(shape_.cols, random_);
      GemmShape tile_shape;
      const Operand part = Compute(b, r, c, &tile_shape);
      if (part.ChangedGaps() != 0) return ToString(tile_shape, "changed gaps");
      for (int64_t x = 0; x < b.size; ++x) {
        for (int64_t y = 0; y < r.size; ++y) {
          for (int64_t z = 0; z < c.size; ++z) {
            if (part.At(x, y, z) == whole.At(b.begin + x, r.begin + y, c.begin + z)) continue;
            return ToString(tile_shape, "tile") + "\n    " + ToString(whole_shape, "whole");
          }
        }
      }
    }
    return "";
  }

 private:
  // Draws sizes and dtypes. Strides, transpositions and packing are drawn for each tile.
  GemmShape Draw(Random* random) {
    constexpr int64_t kMaxTerms = 1 << 24, kMaxBatch = 4, kMaxRows = 700, kMaxInner = 5000;
    GemmShape s;
    do {
      s.batch = Chance(2, random) ? 1 : DrawSize(kMaxBatch, random);
      s.rows = DrawSize(kMaxRows, random);
      s.cols = DrawSize(kMaxRows, random);
      s.inner = DrawSize(kMaxInner, random);
    } while (s.batch * s.rows * s.cols * s.inner > kMaxTerms);
    s.in = Chance(2, random) ? kF32 : kBF16;
    s.out = s.in == kBF16 && Chance(2, random) ? kBF16 : kF32;
    s.accumulate = s.out == kF32 && Chance(3, random);
    shares_b_ = s.batch > 1 && Chance(3, random);
    return s;
  }
  Numbers Drawn(int64_t batch, int64_t rows, int64_t cols) { return {batch, rows, cols, shape_.in == kBF16, random_}; }

  // Computes a part of C with random strides and forms of operands, and sets `shape` to the part's.
  Operand Compute(Range batch, Range rows, Range cols, GemmShape* shape) {
    *shape = shape_;
    shape->transpose_a = Chance(3, random_);
    shape->packed_b = shape_.in == kBF16 && batch.size == 1 && Chance(4, random_);
    shape->transpose_b = !shape->packed_b && Chance(2, random_);
    const Range inner = {0, shape_.inner};
    Operand a(a_, batch, rows, inner, shape->transpose_a, shape_.in, random_);
    Operand b(b_, shares_b_ ? Range{0, 1} : batch, inner, cols, shape->transpose_b, shape_.in, random_);
    Operand c(c_, batch, rows, cols, false, shape_.out, random_);
    shape->batch = batch.size;
    shape->rows = rows.size;
    shape->cols = cols.size;
    shape->a_stride = a.stride;
    shape->b_stride = b.stride;
    shape->c_stride = c.stride;
    shape->a_batch_stride = a.batch_stride;
    shape->b_batch_stride = shares_b_ ? 0 : b.batch_stride;
    shape->c_batch_stride = c.batch_stride;
    Arena arena;
    const std::byte* b_data = b.data();
    if (shape->packed_b) {
      std::vector<float> plain;
      for (int64_t k = 0; k < shape_.inner; ++k) {
        for (int64_t j = 0; j < cols.size; ++j) plain.push_back(b.At(0, k, j));
      }
      const PanelShape panels = {.inner = shape_.inner, .cols = cols.size, .dtype = kBF16};
      std::byte* const packed = arena.Allocate(panels.bytes());
      PackPanels(panels, /*transposed=*/false, plain.data(), 0, panels.count(), packed);
      b_data = packed;
    }
    Gemm(*shape, a.data(), b_data, c.data(), arena.Allocate(GemmWorkspace(*shape)));
    return c;
  }

  Random* random_;
  bool shares_b_ = false;
  GemmShape shape_;
  Numbers a_, b_, c_;
};

double Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Searches with the instruction set of this process. Returns the exit code.
int Search(const SearchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  constexpr int64_t kShown = 20;
  int64_t products = 0, differences = 0;
  for (; products < options.products && Since(start) < options.seconds; ++products) {
    const uint32_t seed = options.seed + static_cast<uint32_t>(products);
    Random random(seed);
    const std::string difference = RandomProduct(&random).Check();
    if (difference.empty()) continue;
    if (++differences <= kShown) std::printf("  again with --products=1 --seed=%u: %s\n", seed, difference.c_str());
  }
  std::printf("%s: %.0f s, %lld products, %lld differences\n", NameOf(InstructionSetLimit()), Since(start),
              static_cast<long long>(products), static_cast<long long>(differences));
  return differences == 0 ? 0 : 1;
}

// Runs this program anew with an instruction set. Returns its exit code.
int SearchWith(const char* set, char** argv) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv(kInstructionSetVariable, set, 1);
    execv("/proc/self/exe", argv);
    std::_Exit(1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::SearchOptions options;
  CLI::App app("Searches for matrix products whose bits depend on more than the inner dimension.");
  app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--seconds", options.seconds, "time of the search, which the instruction sets share")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "seed of the first product; each product has the next one");
  app.add_option("--products", options.products, "maximum number of products for each instruction set");
  CLI11_PARSE(app, argc, argv);
  constexpr int kSets = static_cast<int>(weft::InstructionSet::kAll) + 1;
  options.seconds /= kSets;
  if (std::getenv(weft::kInstructionSetVariable) != nullptr) return weft::Search(options);
  int code = 0;
  for (int set = 0; set < kSets; ++set) {
    code |= weft::SearchWith(weft::NameOf(static_cast<weft::InstructionSet>(set)), argv);
  }
  return code;
}
