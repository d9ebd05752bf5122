// Compares the kernels with double loops over the whole matrix of weights.
#include "weft/ops/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/ops/kernels/instruction_set_test.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kPad = 3;  // elements between rows, which kernels must not change
constexpr double kUntouched = 7;

enum class Mask { kNone, kMiddleBlock, kEnd, kWindow, kOddTargets, kLongRows, kAdded, kAddedAndEnd };

struct Row {
  const char* what;
  int64_t targets, sources, key_width, value_width;
  bool causal = false;  // hides later sources, beside `band`
  Mask mask = Mask::kNone;
  double rate = 0;
  int heads = 1;  // heads that share keys and values
  double scale = 0.25;
  // Tolerances in epsilons of the dtype, relative to the largest result: twice the observed errors. These come from
  // rounding exponentials and sums over at most 200 positions, which gradients multiply.
  double forward = 4, backward = 8;
  Band band = Band();
};
constexpr Row kRows[] = {
    {"one position", 1, 1, 1, 1},
    {"one target", 1, 130, 16, 16, /*causal=*/true},
    {"one source", 65, 1, 20, 7},
    {"just less than a block", 63, 63, 32, 32, /*causal=*/true},
    {"just more than a block", 65, 65, 64, 64, /*causal=*/true},
    {"more sources than targets, causal", 63, 130, 17, 33, /*causal=*/true},
    {"more targets than sources, causal: the first see nothing", 130, 65, 5, 9, /*causal=*/true},
    {"dropout over several blocks", 130, 200, 20, 24, false, Mask::kNone, 0.3},
    {"dropout over several blocks, causal", 131, 131, 20, 24, /*causal=*/true, Mask::kNone, 0.3},
    {"a hidden block in the middle", 130, 200, 24, 24, false, Mask::kMiddleBlock},
    {"a hidden block in the middle, causal, dropout", 200, 200, 24, 24, true, Mask::kMiddleBlock, 0.1},
    {"the end hidden", 63, 130, 8, 8, false, Mask::kEnd},
    {"a window", 130, 130, 16, 16, false, Mask::kWindow},
    {"a window, causal, dropout", 200, 200, 16, 16, true, Mask::kWindow, 0.2},
    {"every other target sees nothing", 65, 70, 16, 16, false, Mask::kOddTargets},
    {"a mask whose rows are longer", 65, 130, 12, 12, false, Mask::kLongRows},
    {"numbers added, of which some are -inf", 65, 130, 12, 12, false, Mask::kAdded},
    {"numbers added, and the end hidden", 130, 65, 12, 12, false, Mask::kAddedAndEnd, 0.5},
    {"a band before", 300, 300, 16, 16, true, Mask::kNone, 0.2, 1, 0.25, 4, 8, Band(70, -1)},
    {"a band on both sides", 200, 300, 16, 24, false, Mask::kNone, 0, 2, 0.25, 4, 8, Band(5, 90)},
    {"a band after, and the end hidden", 130, 130, 8, 8, false, Mask::kEnd, 0, 1, 0.25, 4, 8, Band(0, 64)},
    {"a band of one", 130, 65, 8, 8, true, Mask::kNone, 0, 1, 0.25, 4, 8, Band(0, 0)},
    {"a band of one target", 1, 300, 16, 16, true, Mask::kNone, 0, 1, 0.25, 4, 8, Band(100, -1)},
    {"heads that share keys", 65, 65, 16, 8, true, Mask::kNone, 0.1, 3},
    // A score of 100 has a rounding error; the relative error of its exponential is 100 times the relative error.
    {"scores that overflow without their maximum", 130, 130, 64, 16, false, Mask::kNone, 0, 1, 20, 400, 800},
};

// Rows of numbers, each followed by kPad others.
template <class T>
struct Rows {
  int64_t width;
  std::vector<T> data;

  Rows(int64_t rows, int64_t width_)
      : width(width_), data(static_cast<size_t>(rows * (width_ + kPad)), static_cast<T>(kUntouched)) {}
  Rows(int64_t rows, int64_t width_, uint32_t stream) : Rows(rows, width_) {
    const RandomStream random = {.stream = stream};
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(2 * random.Uniform(i) - 1);
  }
  operator Matrix<T>() { return {data.data(), width + kPad}; }
  operator Matrix<const T>() const { return {data.data(), width + kPad}; }
  double operator()(int64_t row, int64_t col) const {
    return static_cast<double>(data[static_cast<size_t>(row * (width + kPad) + col)]);
  }
};

// A case's operands.
template <class T>
struct Case {
  Row row;
  Rows<T> key, value, dkey, dvalue;
  std::vector<Rows<T>> query, y, dy, dquery;  // one for each head
  std::vector<Rows<Computed<T>>> lse, dlse;
  std::unique_ptr<bool[]> hides;
  std::vector<T> added;
  std::vector<AttentionMask> masks;

  explicit Case(const Row& r)
      : row(r),
        key(r.sources, r.key_width, 1),
        value(r.sources, r.value_width, 2),
        dkey(r.sources, r.key_width),
        dvalue(r.sources, r.value_width) {
    for (int h = 0; h < r.heads; ++h) {
      const uint32_t stream = 10 * static_cast<uint32_t>(h + 1);
      query.emplace_back(r.targets, r.key_width, stream);
      dy.emplace_back(r.targets, r.value_width, stream + 1);
      dlse.emplace_back(r.targets, 1, stream + 2);
      y.emplace_back(r.targets, r.value_width);
      dquery.emplace_back(r.targets, r.key_width);
      lse.emplace_back(r.targets, 1);
    }
    MakeMasks();
  }

  // Returns bools that hide source s from target t if hidden(t, s).
  template <class Hidden>
  void Hide(int64_t target_stride, int64_t source_stride, Hidden hidden) {
    hides = std::make_unique<bool[]>(
        static_cast<size_t>((row.targets - 1) * target_stride + (row.sources - 1) * source_stride + 1));
    for (int64_t t = 0; t < row.targets; ++t) {
      for (int64_t s = 0; s < row.sources; ++s) hides[t * target_stride + s * source_stride] = hidden(t, s);
    }
    masks.push_back({hides.get(), false, target_stride, source_stride});
  }
  void Add() {
    for (int64_t i = 0; i < row.targets * row.sources; ++i) {
      added.push_back(static_cast<T>(i % 11 == 3 ? -kInf : -0.125 * static_cast<double>(i % 7)));
    }
    masks.push_back({added.data(), true, row.sources, 1});
  }
  void MakeMasks() {
    const int64_t sources = row.sources;
    switch (row.mask) {
      case Mask::kNone:
        return;
      case Mask::kMiddleBlock:
        return Hide(0, 1, [](int64_t, int64_t s) { return s >= kAttentionBlock && s < 2 * kAttentionBlock; });
      case Mask::kEnd:
        return Hide(0, 1, [&](int64_t, int64_t s) { return s >= sources - 9; });
      case Mask::kWindow:
        return Hide(sources, 1, [](int64_t t, int64_t s) { return std::abs(t - s) > 5; });
      case Mask::kOddTargets:
        return Hide(1, 0, [](int64_t t, int64_t) { return t % 2 == 1; });
      case Mask::kLongRows:
        return Hide(sources + 2, 1, [](int64_t t, int64_t s) { return (t + s) % 3 == 0; });
      case Mask::kAdded:
        return Add();
      case Mask::kAddedAndEnd:
        Add();
        return Hide(0, 1, [&](int64_t, int64_t s) { return s >= sources - 9; });
    }
  }

  AttentionHead<T> Head(int h, bool one_by_one = false) const {
    AttentionHead<T> head = {.query = query[h],
                             .key = key,
                             .value = value,
                             .one_by_one = one_by_one,
                             .targets = row.targets,
                             .sources = row.sources,
                             .key_width = row.key_width,
                             .value_width = row.value_width,
                             .scale = row.scale,
                             .band = row.band,
                             .mask_count = static_cast<int>(masks.size())};
    if (row.causal) head.band.right = 0;
    std::copy(masks.begin(), masks.end(), head.masks.begin());
    head.dropout = {row.rate, {.seed = 5, .stream = 6, .step = 7}, h * row.targets * row.sources + 1};
    return head;
  }
};

struct FreeAligned {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kAlignment}); }
};
using Workspace = std::unique_ptr<std::byte[], FreeAligned>;
// Filled with NaN, so that a read before a write is found.
Workspace MakeWorkspace(size_t bytes) {
  Workspace space(new (std::align_val_t{kAlignment}) std::byte[bytes]);
  std::fill_n(space.get(), bytes, std::byte{0xff});
  return space;
}

template <class T>
void RunKernels(Case<T>* c, bool one_by_one) {
  const Row& r = c->row;
  const AttentionKernels<T>& kernels = AttentionKernelsOf<T>();
  const auto forward = MakeWorkspace(AttentionWorkspace(kDTypeOf<T>, r.key_width, r.value_width));
  const auto backward = MakeWorkspace(AttentionGradientWorkspace(kDTypeOf<T>, r.sources, r.key_width, r.value_width));
  for (int h = 0; h < r.heads; ++h) {
    const AttentionHead<T> head = c->Head(h, one_by_one);
    kernels.forward(head, 0, r.targets, c->y[h], c->lse[h], forward.get());
    const AttentionGradient<T> gradient = {c->y[h], c->dy[h], c->lse[h], c->dlse[h], c->dquery[h]};
    kernels.backward(head, gradient, {h == 0, h + 1 == r.heads}, c->dkey, c->dvalue, backward.get());
  }
}

// The operands as doubles, in arrays without padding.
struct Results {
  std::vector<double> y, lse, dquery, dkey, dvalue;
};
bool Hidden(const AttentionMask& mask, int64_t t, int64_t s) {
  return !mask.adds && static_cast<const bool*>(mask.data)[t * mask.target_stride + s * mask.source_stride];
}

template <class T>
std::vector<double> WeightsOf(const Case<T>& c, int h, int64_t t, double* lse) {
  const Row& r = c.row;
  std::vector<double> weights(static_cast<size_t>(r.sources));
  double max = -kInf, sum = 0;
  for (int64_t s = 0; s < r.sources; ++s) {
    double score = 0;
    for (int64_t i = 0; i < r.key_width; ++i) score += c.query[h](t, i) * c.key(s, i);
    score *= r.scale;
    const int64_t distance = s - (t + r.sources - r.targets);
    if ((r.causal && distance > 0) || distance < -r.band.left || distance > r.band.right) score = -kInf;
    for (const AttentionMask& mask : c.masks) {
      if (mask.adds) score += static_cast<double>(c.added[t * r.sources + s]);
      if (Hidden(mask, t, s)) score = -kInf;
    }
    weights[s] = score;
    max = std::max(max, score);
  }
  *lse = max;
  if (max == -kInf) return std::vector<double>(weights.size());
  for (double& weight : weights) sum += weight = std::exp(weight - max);
  for (double& weight : weights) weight /= sum;
  *lse += std::log(sum);
  return weights;
}

template <class T>
Results Reference(const Case<T>& c) {
  const Row& r = c.row;
  Results results;
  results.dkey.resize(r.sources * r.key_width);
  results.dvalue.resize(r.sources * r.value_width);
  for (int h = 0; h < r.heads; ++h) {
    const AttentionDropout dropout = c.Head(h).dropout;
    for (int64_t t = 0; t < r.targets; ++t) {
      double lse, delta = -c.dlse[h](t, 0);
      const std::vector<double> weights = WeightsOf(c, h, t, &lse);
      std::vector<double> keep(weights.size(), 1.0), dweights(weights.size()), y(r.value_width), dquery(r.key_width);
      for (int64_t s = 0; s < r.sources; ++s) {
        const auto index = static_cast<uint64_t>(dropout.first + t * r.sources + s);
        if (r.rate > 0) keep[s] = dropout.random.Uniform(index) >= r.rate ? 1 / (1 - r.rate) : 0;
        for (int64_t i = 0; i < r.value_width; ++i) {
          y[i] += weights[s] * keep[s] * c.value(s, i);
          dweights[s] += keep[s] * c.dy[h](t, i) * c.value(s, i);
          results.dvalue[s * r.value_width + i] += weights[s] * keep[s] * c.dy[h](t, i);
        }
        delta += weights[s] * dweights[s];
      }
      for (int64_t s = 0; s < r.sources; ++s) {
        const double dscore = weights[s] * (dweights[s] - delta) * r.scale;
        for (int64_t i = 0; i < r.key_width; ++i) {
          dquery[i] += dscore * c.key(s, i);
          results.dkey[s * r.key_width + i] += dscore * c.query[h](t, i);
        }
      }
      results.lse.push_back(lse);
      results.y.insert(results.y.end(), y.begin(), y.end());
      results.dquery.insert(results.dquery.end(), dquery.begin(), dquery.end());
    }
  }
  return results;
}

// Compares rows of all heads. `tolerance` is relative to the largest wanted number, or to 1 if all are smaller.
template <class T>
void ExpectRows(const char* what, const std::vector<Rows<T>>& got, const std::vector<double>& wanted,
                double tolerance) {
  double largest = 1;
  for (const double x : wanted) largest = std::isinf(x) ? largest : std::max(largest, std::abs(x));
  size_t next = 0;
  for (const Rows<T>& rows : got) {
    const int64_t count = static_cast<int64_t>(rows.data.size()) / (rows.width + kPad);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < rows.width; ++j, ++next) {
        if (rows(i, j) == wanted[next]) continue;  // also for -inf
        ASSERT_LE(std::abs(rows(i, j) - wanted[next]), tolerance * largest) << what << " at " << i << ", " << j;
      }
      for (int64_t j = 0; j < kPad; ++j) ASSERT_EQ(rows(i, rows.width + j), kUntouched) << what << " behind row " << i;
    }
  }
  EXPECT_EQ(next, wanted.size());
}

template <class T>
void ExpectReference(const Row& row, double forward, double backward) {
  for (const bool one_by_one : {false, true}) {
    SCOPED_TRACE(testing::Message() << row.what << ", " << Name(kDTypeOf<T>) << (one_by_one ? ", one by one" : ""));
    Case<T> c(row);
    RunKernels(&c, one_by_one);
    const Results wanted = Reference(c);
    ExpectRows("y", c.y, wanted.y, forward);
    ExpectRows("lse", c.lse, wanted.lse, row.forward * std::numeric_limits<Computed<T>>::epsilon());
    ExpectRows("dquery", c.dquery, wanted.dquery, backward);
    ExpectRows("dkey", std::vector{c.dkey}, wanted.dkey, backward);
    ExpectRows("dvalue", std::vector{c.dvalue}, wanted.dvalue, backward);
  }
}

using AttentionTest = InstructionSetTest;
INSTANTIATE_TEST_SUITE_P(InstructionSets, AttentionTest, InstructionSets(), InstructionSetName);

TEST_P(AttentionTest, F32AndF64) {
  constexpr double kSingle = std::numeric_limits<float>::epsilon(), kDouble = std::numeric_limits<double>::epsilon();
  for (const Row& row : kRows) {
    ExpectReference<float>(row, row.forward * kSingle, row.backward * kSingle);
    ExpectReference<double>(row, row.forward * kDouble, row.backward * kDouble);
  }
}

// bf16 operands are computed in f32, and results have a relative rounding error of 2^-9. The backward kernel reads the
// rounded y, so that the dy · y of a row has the same error once more.
TEST_P(AttentionTest, BF16) {
  for (const Row& row : kRows) {
    if (row.scale < 1) ExpectReference<BF16>(row, 0x1p-8, 0x1p-8);
  }
}

// Calls for blocks of targets must give the same bits as one call for all targets.
TEST_P(AttentionTest, BlocksOfTargetsAreIndependent) {
  for (const Row& row : kRows) {
    Case<float> whole(row), blocks(row);
    const Workspace space = MakeWorkspace(AttentionWorkspace(kF32, row.key_width, row.value_width));
    const auto forward = AttentionKernelsOf<float>().forward;
    forward(whole.Head(0), 0, row.targets, whole.y[0], whole.lse[0], space.get());
    for (int64_t t = (row.targets - 1) / kAttentionBlock * kAttentionBlock; t >= 0; t -= kAttentionBlock) {
      forward(blocks.Head(0), t, std::min(t + kAttentionBlock, row.targets), blocks.y[0], blocks.lse[0], space.get());
    }
    EXPECT_EQ(whole.y[0].data, blocks.y[0].data) << row.what;
    EXPECT_EQ(whole.lse[0].data, blocks.lse[0].data) << row.what;
  }
}

}  // namespace
}  // namespace weft
