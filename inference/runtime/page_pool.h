// A PagePool hands out the pages of a cache of keys and values to texts. Texts that begin with the same tokens share
// pages.
//
//   PagePool pool(/*pages=*/64, /*page_size=*/64);
//   PageTable table;
//   if (pool.Admit(prompt, /*shared=*/2, /*limit=*/8, &table)) {
//     while (table.pages.size() < 8) pool.Add(&table);
//     pool.Name(prompt, 0, table);   // later texts that begin with the tokens of page 0 share it
//     pool.Release(&table);
//   }
//
// A page that was released keeps its name until it is handed out again, so a later text can still share it.
#ifndef WEFT_INFERENCE_RUNTIME_PAGE_POOL_H_
#define WEFT_INFERENCE_RUNTIME_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace weft {

struct PageTable {
  std::vector<int32_t> pages;  // in the order of the text's positions
  size_t promised = 0;         // number of pages that Add can still take
};

// Returns the number of pages that `tokens` tokens fill or begin.
constexpr int64_t PagesOf(int64_t tokens, int64_t page_size) { return (tokens + page_size - 1) / page_size; }

class PagePool {
 public:
  PagePool(size_t pages, size_t page_size);

  size_t page_size() const { return page_size_; }
  size_t PagesOf(size_t tokens) const {
    return static_cast<size_t>(weft::PagesOf(static_cast<int64_t>(tokens), static_cast<int64_t>(page_size_)));
  }
  // Returns the number of pages that a text holds.
  size_t used() const { return pages_.size() - unnamed_.size() - released_.size(); }

  // Admits a text that may need `limit` pages in all. Adds named pages that hold the beginning of `tokens` to `table`,
  // which is empty: at most `shared` of them. Promises the other pages. If the pool can't promise them, returns false
  // and changes nothing.
  bool Admit(absl::Span<const int32_t> tokens, size_t shared, size_t limit, PageTable* table);
  // Takes `count` pages without names. If the pool has fewer, returns false and changes nothing.
  bool Take(size_t count, PageTable* table);
  // Adds one of the promised pages to `table`. The page has no name. Its `filled` is 0.
  void Add(PageTable* table);
  // Names page `index` of `table` by `tokens` up to the end of the page. If another page has this name, does nothing.
  void Name(absl::Span<const int32_t> tokens, size_t index, const PageTable& table);
  // Gives the pages and promises of `table` back.
  void Release(PageTable* table);
  // Takes all names away, so no text finds a page.
  void Forget();

  // The number of positions of a page that have been computed. The caller counts them.
  size_t& filled(int32_t page) { return pages_[static_cast<size_t>(page)].filled; }

 private:
  struct Page {
    size_t holders = 0, filled = 0;
    uint64_t released = 0;      // time at which its last holder released it
    std::vector<int32_t> name;  // the tokens up to its end; empty: no name
  };

  Page& page(int32_t i) { return pages_[static_cast<size_t>(i)]; }

  const size_t page_size_;
  std::vector<Page> pages_;
  absl::flat_hash_map<std::vector<int32_t>, int32_t> by_name_;
  // Pages that no text holds. Those without a name are handed out first, the last of them before the others. Then
  // follow those with a name, by the time of their release.
  std::vector<int32_t> unnamed_;
  std::map<uint64_t, int32_t> released_;
  size_t promised_ = 0;  // pages that are promised, but not handed out
  uint64_t time_ = 0;    // number of releases so far
};

}  // namespace weft

#endif  // WEFT_INFERENCE_RUNTIME_PAGE_POOL_H_
