// An IndexRange stands for the indices begin .. end - 1 of elements, rows or micro-batches.
#ifndef WEFT_DISTRIBUTED_INDEX_RANGE_H_
#define WEFT_DISTRIBUTED_INDEX_RANGE_H_

#include <cstdint>

namespace weft {

struct IndexRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_INDEX_RANGE_H_
