#include "weft/train/micro_batch_results.h"

#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

std::vector<MicroBatchResult> GatherResults(const Ranks& ranks, absl::Span<const MicroBatchResult> mine) {
  const absl::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(MicroBatchResult));
  std::vector<MicroBatchResult> all;
  for (const std::string& theirs : ranks.AllGather(bytes)) {
    const size_t count = theirs.size() / sizeof(MicroBatchResult);
    all.resize(all.size() + count);
    std::memcpy(&all[all.size() - count], theirs.data(), theirs.size());
  }
  return all;
}

double TreeSum(absl::Span<const MicroBatchResult> results, double MicroBatchResult::*figure) {
  std::vector<double> values;
  for (const MicroBatchResult& result : results) values.push_back(result.*figure);
  while (values.size() > 1) {
    const size_t count = values.size();
    for (size_t i = 0; i < count; i += 2) values[i / 2] = i + 1 < count ? values[i] + values[i + 1] : values[i];
    values.resize((count + 1) / 2);
  }
  return values.empty() ? 0 : values[0];
}

}  // namespace weft
