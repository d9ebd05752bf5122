#include "weft/inference/runtime/page_pool.h"

#include <utility>

#include "weft/base/status.h"

namespace weft {

PagePool::PagePool(size_t pages, size_t page_size) : page_size_(page_size), pages_(pages) {
  for (size_t i = pages; i-- > 0;) unnamed_.push_back(static_cast<int32_t>(i));
}

bool PagePool::Admit(absl::Span<const int32_t> tokens, size_t shared, size_t limit, PageTable* table) {
  std::vector<int32_t> found;
  size_t unused = 0;  // number of found pages that no text holds
  while (found.size() < shared) {
    const size_t end = (found.size() + 1) * page_size_;
    if (end > tokens.size()) break;
    const auto named = by_name_.find(std::vector<int32_t>(tokens.begin(), tokens.begin() + end));
    if (named == by_name_.end()) break;
    found.push_back(named->second);
    unused += page(named->second).holders == 0 ? 1 : 0;
  }
  const size_t promised = limit - std::min(limit, found.size());
  if (promised_ + promised + unused > unnamed_.size() + released_.size()) return false;
  for (int32_t i : found) {
    if (page(i).holders++ == 0) released_.erase(page(i).released);
  }
  promised_ += promised;
  *table = {.pages = std::move(found), .promised = promised};
  return true;
}

bool PagePool::Take(size_t count, PageTable* table) {
  if (!Admit({}, /*shared=*/0, count, table)) return false;
  while (table->promised > 0) Add(table);
  return true;
}

void PagePool::Add(PageTable* table) {
  WEFT_CHECK(table->promised > 0);
  --table->promised;
  --promised_;
  int32_t taken;
  if (!unnamed_.empty()) {
    taken = unnamed_.back();
    unnamed_.pop_back();
  } else {
    taken = released_.begin()->second;
    released_.erase(released_.begin());
    by_name_.erase(page(taken).name);
  }
  page(taken) = {.holders = 1};
  table->pages.push_back(taken);
}

void PagePool::Name(absl::Span<const int32_t> tokens, size_t index, const PageTable& table) {
  Page& named = page(table.pages[index]);
  std::vector<int32_t> name(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((index + 1) * page_size_));
  if (named.name.empty() && by_name_.emplace(name, table.pages[index]).second) named.name = std::move(name);
}

void PagePool::Release(PageTable* table) {
  for (int32_t i : table->pages) {
    if (--page(i).holders > 0) continue;
    if (page(i).name.empty()) {
      unnamed_.push_back(i);
    } else {
      page(i).released = time_++;
      released_.emplace(page(i).released, i);
    }
  }
  promised_ -= table->promised;
  *table = {};
}

void PagePool::Forget() {
  by_name_.clear();
  for (Page& each : pages_) each.name.clear();
  for (const auto& [time, i] : released_) unnamed_.push_back(i);
  released_.clear();
}

}  // namespace weft
