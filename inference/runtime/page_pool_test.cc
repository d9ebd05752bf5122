#include "weft/inference/runtime/page_pool.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<int32_t>;

void AddAll(PagePool* pool, PageTable* table) {
  while (table->promised > 0) pool->Add(table);
}

TEST(PagePoolTest, PromisesOnlyWhatItHas) {
  PagePool pool(5, 2);
  EXPECT_EQ(pool.PagesOf(0), 0);
  EXPECT_EQ(pool.PagesOf(3), 2);
  PageTable a, b;
  ASSERT_TRUE(pool.Admit(Tokens{1, 2}, 1, 3, &a));
  EXPECT_FALSE(pool.Admit(Tokens{1, 2}, 1, 3, &b));
  EXPECT_TRUE(b.pages.empty());
  ASSERT_TRUE(pool.Admit(Tokens{1, 2}, 1, 2, &b));
  AddAll(&pool, &a);
  AddAll(&pool, &b);
  EXPECT_EQ(pool.used(), 5);
  pool.Release(&a);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_FALSE(pool.Admit(Tokens{1}, 0, 4, &a));
  EXPECT_TRUE(pool.Admit(Tokens{1}, 0, 3, &a));
}

TEST(PagePoolTest, GivesAllPagesAtOnceOrNone) {
  PagePool pool(5, 1);
  PageTable a, b;
  ASSERT_TRUE(pool.Take(3, &a));
  EXPECT_EQ(a.pages.size(), 3);
  EXPECT_EQ(a.promised, 0);
  EXPECT_FALSE(pool.Take(3, &b));
  EXPECT_TRUE(b.pages.empty());
  EXPECT_TRUE(pool.Take(2, &b));
  EXPECT_EQ(pool.used(), 5);
}

TEST(PagePoolTest, TextsThatBeginWithTheSameTokensSharePages) {
  PagePool pool(6, 2);
  const Tokens text = {1, 2, 3, 4, 5};
  PageTable a, b, c;
  ASSERT_TRUE(pool.Admit(text, 2, 3, &a));
  AddAll(&pool, &a);
  pool.Name(text, 0, a);
  pool.Name(text, 1, a);
  ASSERT_TRUE(pool.Admit(Tokens{1, 2, 3, 9, 5}, 2, 3, &b)) << "one page is shared";
  EXPECT_THAT(b.pages, ElementsAre(a.pages[0]));
  EXPECT_EQ(b.promised, 2);
  EXPECT_FALSE(pool.Admit(text, 0, 2, &c)) << "one page is left";
  ASSERT_TRUE(pool.Admit(text, 2, 3, &c)) << "two pages are shared";
  EXPECT_THAT(c.pages, ElementsAre(a.pages[0], a.pages[1]));
  AddAll(&pool, &b);
  AddAll(&pool, &c);
  EXPECT_EQ(pool.used(), 6);
  const Tokens pages = a.pages;
  pool.Release(&a);
  EXPECT_EQ(pool.used(), 5) << "others still hold the shared pages";
  pool.Release(&b);
  pool.Release(&c);
  EXPECT_EQ(pool.used(), 0);
  ASSERT_TRUE(pool.Admit(text, 2, 3, &a)) << "released pages are still found";
  EXPECT_THAT(a.pages, ElementsAre(pages[0], pages[1]));
}

TEST(PagePoolTest, HandsOutUnnamedPagesFirstAndThenTheOneReleasedFirst) {
  PagePool pool(3, 1);
  PageTable a, b, all;
  ASSERT_TRUE(pool.Admit(Tokens{7}, 1, 1, &a));
  ASSERT_TRUE(pool.Admit(Tokens{8}, 1, 1, &b));
  AddAll(&pool, &a);
  AddAll(&pool, &b);
  pool.Name(Tokens{7}, 0, a);
  pool.Name(Tokens{8}, 0, b);
  const int32_t first = b.pages[0], second = a.pages[0], unnamed = 3 - first - second;
  pool.Release(&b);
  pool.Release(&a);
  ASSERT_TRUE(pool.Admit(Tokens{}, 0, 3, &all));
  pool.Add(&all);
  pool.Add(&all);
  EXPECT_THAT(all.pages, ElementsAre(unnamed, first));
  EXPECT_FALSE(pool.Admit(Tokens{7}, 1, 1, &a)) << "the page that holds it is promised to another text";
  pool.Release(&all);
  ASSERT_TRUE(pool.Admit(Tokens{8}, 1, 1, &b));
  EXPECT_TRUE(b.pages.empty()) << "its page was handed out again";
  pool.Forget();
  ASSERT_TRUE(pool.Admit(Tokens{7}, 1, 1, &a));
  EXPECT_TRUE(a.pages.empty());
}

// Texts come and go in a random order. No page may be in two tables, unless they share its tokens.
TEST(PagePoolTest, NoPageIsHandedOutTwice) {
  constexpr size_t kPages = 20, kTexts = 12;
  const RandomStream random = {.seed = 5};
  PagePool pool(kPages, 2);
  std::vector<PageTable> tables(kTexts);
  std::vector<Tokens> texts(kTexts), held(kPages);  // held: the tokens in each page, with all tokens before them
  size_t admitted = 0, shared = 0;
  for (uint64_t step = 0; step < 4000; ++step) {
    const size_t t = static_cast<size_t>(random.Uniform(4 * step) * kTexts);
    if (!tables[t].pages.empty()) {
      for (size_t i = 0; i < tables[t].pages.size(); ++i) {
        const Tokens wanted(texts[t].begin(), texts[t].begin() + 2 * (static_cast<std::ptrdiff_t>(i) + 1));
        ASSERT_EQ(held[static_cast<size_t>(tables[t].pages[i])], wanted) << "step " << step;
      }
      pool.Release(&tables[t]);
      continue;
    }
    const size_t pages = 1 + static_cast<size_t>(random.Uniform(4 * step + 1) * 5);
    Tokens text(2 * pages);
    for (size_t i = 0; i < text.size(); ++i) text[i] = random.Uniform(4 * step + 2) < 0.5 ? 1 : static_cast<int32_t>(i);
    if (step % 3 == 0) text.back() = static_cast<int32_t>(step);
    if (!pool.Admit(text, pages - 1, pages, &tables[t])) continue;
    ++admitted;
    shared += tables[t].pages.size();
    const size_t found = tables[t].pages.size();
    AddAll(&pool, &tables[t]);
    for (size_t i = found; i < pages; ++i) {
      held[static_cast<size_t>(tables[t].pages[i])] =
          Tokens(text.begin(), text.begin() + 2 * (static_cast<std::ptrdiff_t>(i) + 1));
      pool.Name(text, i, tables[t]);
    }
    texts[t] = text;
  }
  EXPECT_GT(admitted, 1000);
  EXPECT_GT(shared, 1000);
  for (PageTable& table : tables) pool.Release(&table);
  EXPECT_EQ(pool.used(), 0);
}

}  // namespace
}  // namespace weft
