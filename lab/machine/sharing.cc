// Rates are the best of several tries, and times are medians, because other programs only make a try slower.
#include "weft/lab/machine/sharing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/graph/run/stealing_executor.h"
#include "weft/graph/schedule.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/machine/peak.h"

namespace weft {
namespace {

constexpr int kTries = 101;
constexpr double kSeconds = 0.2;  // of each rate

// Each execution has a task for each worker. A task lasts until the other workers should have begun theirs.
double WakeSeconds(int threads) {
  constexpr double kTaskSeconds = 300e-6;
  ScheduleBuilder builder;
  for (int i = 0; i < threads; ++i) builder.AddTask(kTaskSeconds);
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, threads);
  std::vector<double> last;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> begun(static_cast<size_t>(threads));
    const Clock::time_point start = Clock::now();
    executor.Run([&](const TaskPart& part, int) {
      begun[part.task] = SecondsSince(start);
      while (SecondsSince(start) < begun[part.task] + kTaskSeconds) {
      }
    });
    last.push_back(*std::max_element(begun.begin(), begun.end()));
  }
  return Median(std::move(last));
}

// The first thread writes an array, and the last one reads it twice: from the writer's cache, then from its own.
double MovedByteSeconds(Team* team) {
  constexpr size_t kBytes = size_t{256} << 10, kLine = 64;  // 256 KiB: the cache of a core holds them
  std::vector<uint64_t> words(kBytes / sizeof(uint64_t));
  constexpr size_t kStride = kLine / sizeof(uint64_t);  // one word of each cache line
  uint64_t sum = 0;
  const auto read = [&] {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < words.size(); i += kStride) sum += words[i];
    return SecondsSince(start);
  };
  std::vector<double> moved;
  for (int i = 0; i < kTries; ++i) {
    team->Run([&](int thread) {
      for (size_t w = 0; thread == 0 && w < words.size(); w += kStride) words[w] += w;
    });
    team->Run([&](int thread) {
      if (thread + 1 != team->threads()) return;
      const double first = read(), again = read();
      moved.push_back((first - again) / kBytes);
    });
  }
  [[maybe_unused]] volatile uint64_t kept = sum;
  return std::max(0.0, Median(std::move(moved)));
}

}  // namespace

std::vector<SharingRow> MeasureMemory(absl::Span<const int> threads) {
  constexpr size_t kArrayBytes = size_t{256} << 20;  // 256 MiB: more than all caches hold
  std::vector<SharingRow> rows;
  for (const int count : threads) {
    Team team(count);
    rows.push_back({.threads = count, .bytes = PeakBandwidth(&team, kArrayBytes, kSeconds).copy});
  }
  return rows;
}

std::vector<SharingRow> MeasureSharing(absl::Span<const int> threads) {
  std::vector<SharingRow> rows = MeasureMemory(threads);
  for (SharingRow& row : rows) {
    Team team(row.threads);
    row.flops = PeakF32(&team, kSeconds);
    if (row.threads == 1) continue;
    row.wake_seconds = WakeSeconds(row.threads);
    row.moved_byte_seconds = MovedByteSeconds(&team);
  }
  return rows;
}

SharingRow SharingOf(absl::Span<const SharingRow> rows, int threads) {
  const auto above = absl::c_find_if(rows, [&](const SharingRow& row) { return row.threads >= threads; });
  const bool outside = above == rows.begin() || above == rows.end();
  const SharingRow& high = above == rows.end() ? rows.back() : *above;
  const SharingRow& low = outside ? high : *(above - 1);
  const double share = outside ? 0 : static_cast<double>(threads - low.threads) / (high.threads - low.threads);
  SharingRow result = {.threads = threads};
  for (const auto& [name, figure, is_rate] : kSharingFigures) {
    const double scale = outside && is_rate ? static_cast<double>(threads) / high.threads : 1;
    result.*figure = scale * std::lerp(low.*figure, high.*figure, share);
  }
  return result;
}

}  // namespace weft
