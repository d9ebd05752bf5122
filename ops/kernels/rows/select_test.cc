#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/ops/kernels/instruction_set_test.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {
namespace {

using SelectTest = InstructionSetTest;

constexpr int64_t kSizes[] = {0, 1, 3, 7, 8, 9, 31, 32, 33, 65, 257};
constexpr int kStrides[] = {0, 1};

// Small whole numbers, so that some are equal. Floats also have zeros of both signs, infinities and NaNs.
template <class T>
std::vector<T> Numbers(int64_t n, int64_t factor) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
  std::vector<T> numbers;
  for (int64_t i = 0; i <= n; ++i) {
    const int64_t drawn = (i * factor + 3) % 104729 % 11;
    const bool whole = drawn < 6 || std::is_integral_v<T>;
    numbers.push_back(static_cast<T>(whole ? static_cast<double>(drawn - 3) : special[drawn - 6]));
  }
  return numbers;
}

template <class T>
bool Compares(Comparison c, T a, T b) {
  if (c == Comparison::kEqual) return a == b;
  return c == Comparison::kLess ? a < b : a <= b;
}

template <class T>
void ExpectComparisons(const std::string& type) {
  for (const Comparison c : {Comparison::kEqual, Comparison::kLess, Comparison::kLessEqual}) {
    for (const int64_t n : kSizes) {
      for (const auto& [a_stride, b_stride] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
        const std::vector<T> a = Numbers<T>(n, 7919), b = Numbers<T>(n, 5003);
        std::vector<uint8_t> y(n + 1, 7);
        Selects<T>().compare(c, a.data(), a_stride, b.data(), b_stride, reinterpret_cast<bool*>(y.data()), n);
        EXPECT_EQ(y[n], 7) << "written behind the end; " << type << " " << n;
        int trues = 0;
        for (int64_t i = 0; i < n; ++i) {
          const bool wanted = Compares(c, a[i * a_stride], b[i * b_stride]);
          ASSERT_EQ(y[i], wanted ? 1 : 0)
              << type << ", comparison " << static_cast<int>(c) << ", element " << i << " of " << n;
          trues += wanted;
        }
        EXPECT_TRUE(n < 200 || a_stride + b_stride == 0 || (0 < trues && trues < n)) << "all the same; " << type;
      }
    }
  }
}

template <class T>
void ExpectSelections(const std::string& type) {
  for (const int64_t n : kSizes) {
    for (const int a_stride : kStrides) {
      for (const int b_stride : kStrides) {
        const auto a = std::make_unique<T[]>(n + 1), b = std::make_unique<T[]>(n + 1), y = std::make_unique<T[]>(n + 1);
        const auto mask = std::make_unique<bool[]>(n + 1);
        for (int64_t i = 0; i <= n; ++i) {
          a[i] = static_cast<T>(i * 7 % 5 < 2 ? 0 : i % 128);  // representable in bf16
          b[i] = static_cast<T>(i * 7 % 5 < 2 ? 3 + i % 100 : 0);
          mask[i] = i * 7919 % 13 < 6;
        }
        const auto same = [&](T got, int64_t i) {
          return static_cast<double>(got) == static_cast<double>(mask[i] ? a[i * a_stride] : b[i * b_stride]);
        };
        Selects<T>().select(mask.get(), a.get(), a_stride, b.get(), b_stride, y.get(), n);
        EXPECT_EQ(static_cast<double>(y[n]), 0) << "written behind the end; " << type << " " << n;
        for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(same(y[i], i)) << type << ", element " << i << " of " << n;
        if (a_stride == 0 || b_stride == 0) continue;
        Selects<T>().select(mask.get(), a.get(), 1, b.get(), 1, b.get(), n);
        Selects<T>().select(mask.get(), a.get(), 1, b.get(), 1, a.get(), n);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(static_cast<double>(b[i]), static_cast<double>(y[i])) << "in place of b; element " << i;
          ASSERT_EQ(static_cast<double>(a[i]), static_cast<double>(y[i])) << "in place of a; element " << i;
        }
      }
    }
  }
}

TEST_P(SelectTest, ComparesAsCDoes) {
  ExpectComparisons<float>("f32");
  ExpectComparisons<double>("f64");
  ExpectComparisons<BF16>("bf16");
  ExpectComparisons<int32_t>("i32");
}

TEST_P(SelectTest, TakesWhatTheMaskSays) {
  ExpectSelections<float>("f32");
  ExpectSelections<double>("f64");
  ExpectSelections<BF16>("bf16");
  ExpectSelections<int32_t>("i32");
  ExpectSelections<bool>("bool");
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, SelectTest, InstructionSets(), InstructionSetName);

}  // namespace
}  // namespace weft
