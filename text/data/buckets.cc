// Epochs are shuffled by Fisher-Yates with counter-based random numbers, so each epoch can be computed on its own.
#include "weft/text/data/buckets.h"

#include <algorithm>
#include <map>

namespace weft {
namespace {

// Shuffles `items` (Fisher-Yates) with the numbers of `random` from index `*next` on, and advances `*next`.
template <class T>
void ShuffleWith(const RandomStream& random, uint64_t* next, std::vector<T>* items) {
  for (size_t left = items->size(); left > 1; --left)
    std::swap((*items)[left - 1], (*items)[random.Below(left, (*next)++)]);
}

}  // namespace

std::vector<int64_t> BucketLengths(absl::Span<const int64_t> lengths, absl::Span<const int64_t> held_out, int64_t rows,
                                   int64_t longest) {
  constexpr int64_t kMultiple = 8;
  const auto bucket_of = [&](int64_t length) {
    const int64_t rounded = std::max<int64_t>((length + kMultiple - 1) / kMultiple, 1) * kMultiple;
    return longest > 0 ? std::min(rounded, longest) : rounded;
  };
  std::map<int64_t, int64_t> counts;  // by bucket length
  for (const int64_t length : lengths) ++counts[bucket_of(length)];
  std::vector<int64_t> buckets;
  int64_t waiting = 0;
  for (const auto& [length, count] : counts) {
    waiting += count;
    if (2 * waiting < rows && length != counts.rbegin()->first) continue;
    buckets.push_back(length);
    waiting = 0;
  }
  const int64_t last = held_out.empty() ? 0 : bucket_of(*std::max_element(held_out.begin(), held_out.end()));
  if (buckets.empty() ? last > 0 : last > buckets.back()) buckets.push_back(last);
  return buckets;
}

BucketBatches::BucketBatches(absl::Span<const int64_t> buckets, absl::Span<const int64_t> lengths, int64_t rows)
    : buckets_(buckets.size()) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto bucket = std::lower_bound(buckets.begin(), buckets.end(), lengths[i]) - buckets.begin();
    buckets_[static_cast<size_t>(bucket)].push_back(static_cast<int32_t>(i));
  }
  const auto batch_size = static_cast<size_t>(rows);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (size_t begin = 0; begin < buckets_[b].size(); begin += batch_size) {
      in_order_.push_back({b, begin, std::min(begin + batch_size, buckets_[b].size())});
    }
  }
  shuffled_ = buckets_;
  batches_ = in_order_;
}

BucketBatch BucketBatches::operator[](int64_t index) const {
  const Batch& batch = batches_[static_cast<size_t>(index)];
  return {batch.bucket, absl::MakeConstSpan(shuffled_[batch.bucket]).subspan(batch.begin, batch.end - batch.begin)};
}

BucketBatch BucketBatches::AtStep(uint64_t seed, int64_t step) {
  const std::pair<uint64_t, int64_t> wanted = {seed, step / size()};
  if (shuffled_for_ != wanted) Shuffle({.seed = seed, .step = static_cast<uint32_t>(wanted.second)});
  shuffled_for_ = wanted;
  return (*this)[step % size()];
}

void BucketBatches::Shuffle(RandomStream random) {
  random.stream = kShuffleStream;
  uint64_t next = 0;
  shuffled_ = buckets_;
  batches_ = in_order_;
  for (std::vector<int32_t>& examples : shuffled_) ShuffleWith(random, &next, &examples);
  ShuffleWith(random, &next, &batches_);
}

std::vector<int64_t> LengthsOf(absl::Span<const std::vector<int32_t>> texts) {
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& text : texts) lengths.push_back(static_cast<int64_t>(text.size()));
  return lengths;
}

void PaddedRows::Fill(absl::Span<const std::vector<int32_t>> texts, absl::Span<const int32_t> examples,
                      const Shape& shape) {
  const auto rows = static_cast<size_t>(shape.rows), length = static_cast<size_t>(shape.length);
  tokens.assign(rows * length, shape.padding);
  lengths.assign(rows, 0);
  count = 0;
  for (size_t row = 0; row < examples.size(); ++row) {
    const std::vector<int32_t>& text = texts[static_cast<size_t>(examples[row])];
    std::copy(text.begin(), text.end(), &tokens[row * length]);
    lengths[row] = static_cast<int32_t>(text.size());
    count += lengths[row];
  }
}

}  // namespace weft
