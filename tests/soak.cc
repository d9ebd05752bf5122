// Runs, cancels and repeats training steps from four threads for the given number of seconds. Fails if memory leaks, a
// thread hangs, or steps are miscounted.
//
//   bazel run -c opt //tests:soak -- 3600    (seconds)
//
// Two threads have their own parameters. The other two share one set, so that each is refused while the other runs.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "weft/base/arena.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

constexpr int kThreads = 4, kAlone = 2;
constexpr double kRoundSeconds = 60, kHangSeconds = 30;
constexpr int64_t kBatch = 4, kLength = 32, kVocabulary = 65;

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double ResidentMegabytes() { return static_cast<double>(ResidentBytes()) / 1e6; }

double HeapMegabytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / 1e6;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Program {
  Program()
      : tokens(tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary})),
        targets(tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary})),
        rate(tape.Input("learning_rate", {kF32, {}})),
        loss(CrossEntropy(
            Gpt({.vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 4, .width = 64}).Logits(tokens),
            targets)),
        step(AdamW({}).Minimize(loss, rate)),
        graph(Compile(tape, {.fetch = {loss}, .update = {step}, .tile_seconds = 10e-6})) {}

  Tape tape;
  Var tokens, targets, rate, loss, step;
  absl::StatusOr<Graph> graph;
};

struct Counts {
  std::atomic<int64_t> finished{0}, cancelled{0}, late{0}, refused{0}, runners{0};
};

// Runs steps until `stop`; a random half of them with a cancellation, and a random half with a deadline. Makes a new
// runner after every 200 calls of Run.
void Use(int thread, const Program& program, Parameters* parameters, const std::atomic<bool>* stop, Cancellation* token,
         Counts* counts, std::atomic<int64_t>* beats) {
  const uint32_t first_step = parameters->step();
  int64_t finished = 0;
  std::mt19937 random(static_cast<uint32_t>(thread));
  const std::vector<int32_t> tokens(kBatch * kLength, thread);
  while (!stop->load()) {
    Runner runner(*program.graph, parameters, {.threads = 1 + static_cast<int>(random() % 4)});
    ++counts->runners;
    for (int i = 0; i < 200 && !stop->load(); ++i, ++*beats) {
      RunOptions options;
      if (random() % 2 == 0) options.cancellation = token;
      if (random() % 2 == 0) options.deadline = absl::Now() + absl::Microseconds(random() % 4000);
      const absl::Status status =
          runner.Run({{program.tokens, tokens}, {program.targets, tokens}, {program.rate, 1e-3f}}, options).status();
      if (status.ok()) {
        ++counts->finished;
        ++finished;
      } else if (absl::IsCancelled(status)) {
        ++counts->cancelled;
      } else if (absl::IsDeadlineExceeded(status)) {
        ++counts->late;
      } else if (absl::IsFailedPrecondition(status)) {
        ++counts->refused;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      } else {
        std::fprintf(stderr, "soak: %s\n", std::string(status.message()).c_str());
        std::abort();
      }
    }
  }
  if (thread < kAlone && parameters->step() - first_step != finished) {
    std::fprintf(stderr, "soak: %u steps are counted, %ld were finished\n", parameters->step() - first_step, finished);
    std::abort();
  }
}

// Lets four threads work for `seconds` seconds.
void WorkFor(double seconds, const Program& program, absl::Span<Parameters* const> parameters, Counts* counts) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> beats[kThreads] = {};
  Cancellation tokens[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back(Use, t, std::cref(program), parameters[t], &stop, &tokens[t], counts, &beats[t]);
  }
  int64_t last_beats[kThreads] = {};
  double last_change[kThreads] = {};
  std::mt19937 random(9);
  const auto begin = Clock::now();
  for (double now = 0; now < seconds; now = Since(begin)) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    Cancellation& token = tokens[random() % kThreads];
    token.cancelled() ? token.Reset() : token.Cancel();
    for (int t = 0; t < kThreads; ++t) {
      const int64_t beat = beats[t];
      if (beat != last_beats[t]) last_change[t] = now;
      last_beats[t] = beat;
      if (now - last_change[t] < kHangSeconds) continue;
      std::fprintf(stderr, "soak: thread %d hangs\n", t);
      std::abort();
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// Lets the threads work in rounds for `seconds`. Measures memory between rounds, when the threads and their runners
// have ended and malloc has returned its free pages. Returns 1 if the memory grew by more than 1%: something leaks.
int Soak(double seconds) {
  const Program program;
  if (!program.graph.ok()) return std::fprintf(stderr, "soak: %s\n", program.graph.status().ToString().c_str()), 1;
  Parameters own[kAlone], shared;
  Parameters* const parameters[kThreads] = {&own[0], &own[1], &shared, &shared};
  Counts counts;
  std::vector<double> resident;  // resident megabytes after each round
  const auto begin = Clock::now();
  for (double now = 0; now < seconds; now = Since(begin)) {
    WorkFor(std::min(kRoundSeconds, seconds / 2), program, parameters, &counts);
    const double untrimmed = ResidentMegabytes();
    malloc_trim(0);
    resident.push_back(ResidentMegabytes());
    std::printf("%6.0f s: %ld finished, %ld cancelled, %ld late, %ld refused, %ld runners; ", Since(begin),
                counts.finished.load(), counts.cancelled.load(), counts.late.load(), counts.refused.load(),
                counts.runners.load());
    std::printf("%.2f MB resident, %.2f MB before trimming, %.3f MB on the heap\n", resident.back(), untrimmed,
                HeapMegabytes());
    std::fflush(stdout);
  }
  // Medians, because single pages come and go by chance.
  const size_t quarter = (resident.size() + 3) / 4;
  const double first = Median({resident.begin(), resident.begin() + quarter}),
               last = Median({resident.end() - quarter, resident.end()});
  std::printf("resident: %.2f MB in the first quarter of the rounds, %.2f MB in the last (%+.2f%%)\n", first, last,
              100 * (last / first - 1));
  return last <= 1.01 * first ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  double seconds = 0;
  if (argc == 2 && absl::SimpleAtod(argv[1], &seconds) && seconds >= 1 && seconds < 1e7) {
    const int result = weft::Soak(seconds);
    return std::fflush(stdout) == 0 ? result : 1;
  }
  std::fprintf(stderr, "usage: soak SECONDS, of 1 or more\n");
  return 2;
}
