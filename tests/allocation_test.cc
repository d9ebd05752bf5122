// Checks that a training step allocates nothing after its first execution.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/cores.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> in_tbb{0}, in_weft{0};

// Counts an allocation for the library that contains the code at `caller`; for Weft if that is not TBB.
void Count(void* caller) {
  Dl_info info;
  const char* const library = dladdr(caller, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  ++(std::strstr(library, "libtbb") != nullptr ? in_tbb : in_weft);
}

void* Allocate(size_t size, size_t alignment, void* caller) {
  if (counting.load(std::memory_order_relaxed)) Count(caller);
  void* p = alignment > 16 ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                           : std::malloc(size > 0 ? size : 1);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, 0, __builtin_return_address(0)); }
void* operator new[](size_t size) { return Allocate(size, 0, __builtin_return_address(0)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace weft {
namespace {

TEST(AllocationTest, ATrainingStepAllocatesNothingAfterTheFirst) {
#ifndef NDEBUG
  GTEST_SKIP() << "debug builds work out what each tile writes, to fill it with NaN, and allocate for that";
#endif
  constexpr int64_t kBatch = 12, kLength = 64, kVocabulary = 73;
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var targets = tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var rate = tape.Input("learning_rate", {kF32, {}});
  const Gpt gpt({.vocabulary = kVocabulary, .context = kLength, .layers = 4, .heads = 4, .width = 128, .dropout = 0.1});
  const Var loss = CrossEntropy(gpt.Logits(tokens), targets);
  const Minimized step = AdamW({.clip = 1}).Minimize(loss, rate);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, step.gradient_norm}, .update = {step}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<int32_t> ids(kBatch * kLength, 5);
  constexpr int kSteps = 40;
  for (int threads : {1, Cores()}) {
    Parameters parameters;
    Runner runner(*graph, &parameters, {.threads = threads});
    const auto run = [&] { return runner.Run({{tokens, ids}, {targets, ids}, {rate, 1e-3f}}).ok(); };
    ASSERT_TRUE(run());
    in_tbb = in_weft = 0;
    counting = true;
    for (int i = 0; i < kSteps; ++i) ASSERT_TRUE(run());
    counting = false;
    EXPECT_EQ(in_weft.load(), 0) << threads << " threads";
    std::printf("%d threads: Weft %d, TBB %d allocations in %d steps\n", threads, in_weft.load(), in_tbb.load(),
                kSteps);
  }
}

TEST(AllocationTest, TheCountSeesWhatIsAllocated) {
  in_weft = 0;
  counting = true;
  delete new std::vector<int>(100);
  counting = false;
  EXPECT_GE(in_weft.load(), 1);
}

}  // namespace
}  // namespace weft
