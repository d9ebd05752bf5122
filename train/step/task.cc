#include "weft/train/step/task.h"

#include <algorithm>

#include "weft/base/status.h"

namespace weft {

IndexRange RowsOf(MicroBatch micro_batch, int64_t rows) {
  const auto [index, count] = micro_batch;
  const auto begin = [&, count = count](int64_t i) { return i * (rows / count) + std::min(i, rows % count); };
  return {begin(index), begin(index + 1)};
}

std::vector<int64_t> MicroBatchSizes(int64_t rows, int64_t count) {
  if (rows % count == 0) return {rows / count};
  return {rows / count + 1, rows / count};
}

size_t SizeIndex(MicroBatch micro_batch, int64_t rows) {
  const int64_t larger = rows % micro_batch.count;  // number of parts that have one row more
  return larger > 0 && micro_batch.index >= larger ? 1 : 0;
}

absl::Status CheckMicroBatches(int64_t rows, int64_t count) {
  if (count >= 1 && count <= rows) return absl::OkStatus();
  return InvalidArgument("micro-batches: ", count, " can't share a batch of ", rows, "; wanted 1 to ", rows);
}

}  // namespace weft
