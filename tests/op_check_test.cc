// Each op below breaks one rule. CheckOp must report it.
#include "weft/tests/op_check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "weft/base/status.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Returns the messages of all failures that CheckOp reports.
std::string FailuresOf(const OpDef& op) {
  ::testing::TestPartResultArray results;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    CheckOp(op);
  }
  std::string messages;
  for (int i = 0; i < results.size(); ++i) {
    messages += std::string(results.GetTestPartResult(i).message()) + "\n";
  }
  return messages;
}

// y = x³, in tiles of rows. This op is correct; each broken op below differs from it in one field.
absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("cube", "x needs rank >= 1", in);
  return Types{in[0]};
}

template <class T>
void Cube(const KernelArgs& a, Rect tile) {
  const int64_t cols = a.output_shape(0).cols();
  for (int64_t i = tile.row_begin * cols; i < tile.row_end * cols; ++i) {
    a.output<T>(0)[i] = a.input<T>(0)[i] * a.input<T>(0)[i] * a.input<T>(0)[i];
  }
}

VarList Gradient(const GradientArgs& a) { return {3 * a.input(0) * a.input(0) * a.grad(0)}; }
VarList Elementary(const Attrs&, VarSpan in) { return {in[0] * in[0] * in[0]}; }

constexpr OpExample kExamples[] = {
    {.in = "[3,5]", .out = "[3,5]"},
    {.in = "[]", .error = "rank >= 1"},
};
constexpr OpDef kCube = {.name = "cube",
                         .infer = Infer,
                         .kernels = {Cube<float>, Cube<double>},
                         .cut = Cut::kRows,
                         .in_place = 0,
                         .gradient = Gradient,
                         .elementary = Elementary,
                         .examples = kExamples};

template <class Change>
constexpr OpDef Changed(Change change) {
  OpDef op = kCube;
  change(op);
  return op;
}

TEST(OpCheckTest, PassesWhatIsRight) {
  EXPECT_EQ(FailuresOf(kCube), "");
  const OpCheckResult result = CheckOp(kCube);
  EXPECT_EQ(result.gradients, 1);
  EXPECT_EQ(result.second_gradients, 1);
}

TEST(OpCheckTest, NeedsExamplesAnErrorRowAndAGradient) {
  static constexpr OpDef kNone = Changed([](OpDef& op) { op.examples = {}; });
  EXPECT_THAT(FailuresOf(kNone), HasSubstr("cube has no examples"));
  static constexpr OpDef kNoErrorRow = Changed([](OpDef& op) { op.examples = op.examples.subspan(0, 1); });
  EXPECT_THAT(FailuresOf(kNoErrorRow), HasSubstr("cube has no error row"));
  static constexpr OpDef kNoGradient = Changed([](OpDef& op) {
    op.gradient = nullptr;
    op.elementary = nullptr;
  });
  EXPECT_THAT(FailuresOf(kNoGradient), HasSubstr("cube has neither gradient"));
  EXPECT_THAT(FailuresOf(kNoGradient), HasSubstr("cube has neither elementary spelling nor reference"));
}

TEST(OpCheckTest, ComparesErrorsAndTypes) {
  static constexpr OpExample kWrong[] = {{.in = "[3,5]", .out = "[5,3]"}, {.in = "[]", .error = "rank >= 2"}};
  static constexpr OpDef kOp = Changed([](OpDef& op) { op.examples = kWrong; });
  const std::string failures = FailuresOf(kOp);
  EXPECT_THAT(failures, HasSubstr("rank >= 2"));
  EXPECT_THAT(failures, HasSubstr("f32[5,3]"));
  static constexpr OpExample kNoError[] = {{.in = "[3]"}, {.in = "[3]", .error = "rank"}};
  static constexpr OpDef kRecorded = Changed([](OpDef& op) { op.examples = kNoError; });
  EXPECT_NE(FailuresOf(kRecorded), "");
}

TEST(OpCheckTest, ComparesValuesInBothDtypes) {
  static constexpr KernelFunction kOff = [](const KernelArgs& a, Rect tile) {
    Cube<double>(a, tile);
    if (tile.row_begin == 0) a.output<double>(0)[0] *= 1 + 1e-11;
  };
  static constexpr OpDef kOp = Changed([](OpDef& op) { op.kernels[1] = kOff; });
  const std::string failures = FailuresOf(kOp);
  EXPECT_THAT(failures, HasSubstr("f64"));
  EXPECT_THAT(failures, HasSubstr("against the elementary spelling"));

  static constexpr OpDef kReference =
      Changed([](OpDef& op) { op.reference = [](const ReferenceArgs& a) { a.outputs[0] = a.inputs[0]; }; });
  EXPECT_THAT(FailuresOf(kReference), HasSubstr("against the reference"));
}

TEST(OpCheckTest, ComparesGradients) {
  static constexpr OpDef kFirst = Changed([](OpDef& op) {
    op.gradient = [](const GradientArgs& a) { return VarList{3.001 * a.input(0) * a.input(0) * a.grad(0)}; };
  });
  EXPECT_THAT(FailuresOf(kFirst), HasSubstr("the gradient by input 0"));
  static constexpr OpDef kNone = Changed([](OpDef& op) {
    op.no_gradient = "of a reason";
    op.gradient = nullptr;
  });
  EXPECT_EQ(FailuresOf(kNone), "");
  EXPECT_EQ(CheckOp(kNone).gradients, 0);
}

TEST(OpCheckTest, ComparesSecondGradients) {
  // The first gradient is correct. The second is wrong, because the first reads a copy that hides its dependence on x.
  static constexpr OpDef kSquare = {.name = "square",
                                    .infer = Infer,
                                    .kernels = {[](const KernelArgs& a, Rect) {
                                                  for (float& y : a.outputs[0].span<float>()) y = 0;
                                                },
                                                [](const KernelArgs& a, Rect) {
                                                  const auto x = a.inputs[0].span<double>();
                                                  for (size_t i = 0; i < x.size(); ++i) {
                                                    a.output<double>(0)[i] = 3 * x[i] * x[i];
                                                  }
                                                }},
                                    .gradient = [](const GradientArgs& a) { return VarList{a.grad(0)}; }};
  static constexpr OpDef kOp = Changed([](OpDef& op) {
    op.gradient = [](const GradientArgs& a) { return VarList{Record(kSquare, {a.input(0)}) * a.grad(0)}; };
  });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("second gradient"));
}

TEST(OpCheckTest, FindsWritesOutsideTheRectangle) {
  static constexpr KernelFunction kNext = [](const KernelArgs& a, Rect tile) {
    const int64_t rows = a.output_shape(0).rows();
    Cube<float>(a, {tile.row_begin, std::min(tile.row_end + 1, rows), 0, tile.col_end});
  };
  static constexpr OpDef kOp = Changed([](OpDef& op) { op.kernels[0] = kNext; });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("outside its rectangle"));
}

TEST(OpCheckTest, FindsElementsThatNoTileWrites) {
  static constexpr OpDef kOp = Changed([](OpDef& op) {
    op.kernels[0] = [](const KernelArgs& a, Rect tile) {
      if (tile.row_begin != 1) Cube<float>(a, tile);
    };
  });
  const std::string failures = FailuresOf(kOp);
  EXPECT_THAT(failures, HasSubstr("is written by 0 tiles"));
}

TEST(OpCheckTest, FindsReadsThatAreNotDeclared) {
  static constexpr OpDef kOp = Changed([](OpDef& op) {
    op.kernels[0] = [](const KernelArgs& a, Rect tile) {
      Cube<float>(a, tile);
      const float last = a.inputs[0].span<float>().back();
      if (tile.row_begin == 0) a.output<float>(0)[0] += last - last;  // 0, unless it is NaN
    };
  });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("on what it says it reads"));
}

TEST(OpCheckTest, FindsOpsThatDontWorkInPlace) {
  static constexpr OpDef kOp = Changed([](OpDef& op) {
    op.kernels[0] = [](const KernelArgs& a, Rect tile) {
      const int64_t cols = a.output_shape(0).cols();
      for (int64_t i = tile.row_begin * cols; i < tile.row_end * cols; ++i) a.output<float>(0)[i] = 0;
      for (int64_t i = tile.row_begin * cols; i < tile.row_end * cols; ++i) {
        a.output<float>(0)[i] += a.input<float>(0)[i] * a.input<float>(0)[i] * a.input<float>(0)[i];
      }
    };
  });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("in place, it gets other bits"));
}

TEST(OpCheckTest, FindsWhatTilesShare) {
  // Each tile writes its first row to one shared variable and reads it after a while. Tiles are correct only if they
  // run one after the other.
  static constexpr KernelFunction kShared = [](const KernelArgs& a, Rect tile) {
    static std::atomic<int64_t> row;
    row = tile.row_begin;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Cube<float>(a, tile);
    if (row != tile.row_begin) a.output<float>(0)[tile.row_begin * a.output_shape(0).cols() + tile.col_begin] += 1;
  };
  static constexpr OpDef kOp = Changed([](OpDef& op) { op.kernels[0] = kShared; });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("small tiles on four threads at once give other bits"));
}

TEST(OpCheckTest, FindsBitsThatDependOnTheTiles) {
  static constexpr OpDef kOp = Changed([](OpDef& op) {
    op.kernels[0] = [](const KernelArgs& a, Rect tile) {
      Cube<float>(a, tile);
      const int64_t i = tile.row_begin * a.output_shape(0).cols();
      a.output<float>(0)[i] *= 1 + 1e-7f * static_cast<float>(tile.rows());
    };
  });
  EXPECT_THAT(FailuresOf(kOp), HasSubstr("small tiles, last first, give other bits"));
}

}  // namespace
}  // namespace weft
