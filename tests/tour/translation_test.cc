#include "weft/tests/tour/translation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kEnglish[] = R"(# 3. Heads

A model has 512 features, `d`, and 62,832 positions ([chapter 2](02_scale.md#by-hand), [options](../options.md)).

```sh
weft demo heads --width=512  # d
```

```
y = x over 8 heads
```

## By hand

GPT-2 has -3.5 and 1e-3. See [the paper](https://example.com/1706).

![A curve of
12 points](../pictures/tour/heads.svg)

| rows | of |
| --- | --- |
| `a` | 2 |
)";
constexpr char kVietnamese[] = R"(# 3. Các đầu

62832 vị trí, `d`, và 512 đặc trưng ([tùy chọn](../../options.md), [chương 2](02_scale.md#tinh-bang-tay)).

```sh
weft demo heads --width=512  # d
```

```
y = x trên 8 đầu
```

## Tính bằng tay

GPT-2 có -3.5 và 1e-3. Xem [bài báo](https://example.com/1706).

![Đường cong 12 điểm](../../pictures/tour/heads.svg)

| hàng | của |
| --- | --- |
| `a` | 2 |
)";

// Returns the differences if the translation has `other` in place of its first `text`.
std::vector<std::string> Changed(const std::string& text, const std::string& other) {
  std::string changed = kVietnamese;
  const size_t at = changed.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  if (at != std::string::npos) changed.replace(at, text.size(), other);
  return CompareTranslation(kEnglish, changed);
}

TEST(TranslationTest, OtherWordsAndOrder) {
  EXPECT_THAT(CompareTranslation(kEnglish, kVietnamese), IsEmpty());
  EXPECT_THAT(Changed("Xem", "Hãy xem"), IsEmpty());
  EXPECT_THAT(Changed("y = x trên 8 đầu", "8 đầu: y = x"), IsEmpty());
  EXPECT_THAT(Changed("62832", "62,832"), IsEmpty());
  EXPECT_THAT(Changed("](02_scale.md", "](../02_scale.md"), IsEmpty());
}

TEST(TranslationTest, Numbers) {
  EXPECT_THAT(Changed("62832", "62833"),
              ElementsAre("section '3. Heads': numbers: the translation lacks 62832 and has besides 62833"));
  EXPECT_THAT(Changed("-3.5", "3.5"),
              ElementsAre("section 'By hand': numbers: the translation lacks -3.5 and has besides 3.5"));
  EXPECT_THAT(Changed("và 1e-3", "và"), ElementsAre("section 'By hand': numbers: the translation lacks 1e-3"));
  EXPECT_THAT(Changed("12 điểm", "12 điểm, 12 màu"),
              ElementsAre("section 'By hand': numbers: the translation has besides 12"));
  EXPECT_THAT(Changed("| 2 |", "| 3 |"),
              ElementsAre("section 'By hand': numbers: the translation lacks 2 and has besides 3"));
  EXPECT_THAT(Changed("# 3.", "# 4."),
              ElementsAre("section '3. Heads': numbers: the translation lacks 3 and has besides 4"));
}

TEST(TranslationTest, LargeNumbersInTheUnitsOfALanguage) {
  EXPECT_THAT(CompareTranslation("4.5 million, 213 million, 175\nbillion", "450 万、2.13 亿、1750 亿"), IsEmpty());
  EXPECT_THAT(CompareTranslation("4.5 million, 213 million, 175 billion", "4.5 triệu, 213 triệu, 175 tỉ"), IsEmpty());
  EXPECT_THAT(CompareTranslation("26", "26 tỉ lệ"), IsEmpty());
  EXPECT_THAT(
      CompareTranslation("175 billion", "175 亿"),
      ElementsAre("section 'above the first heading': numbers: the translation lacks 175000 and has besides 17500"));
}

TEST(TranslationTest, Blocks) {
  EXPECT_THAT(Changed("--width=512  # d", "--width=512  # rộng"),
              ElementsAre("section '3. Heads': block 1: the line 'weft demo heads --width=512  # d' is "
                          "'weft demo heads --width=512  # rộng'"));
  EXPECT_THAT(Changed("```sh", "```text"), ElementsAre("section '3. Heads': block 1: the kind is 'text', not 'sh'"));
  EXPECT_THAT(Changed("weft demo heads --width=512  # d\n", ""),
              ElementsAre("section '3. Heads': block 1: the translation lacks the line "
                          "'weft demo heads --width=512  # d'"));
  EXPECT_THAT(Changed("# d\n```", "# d\n\n```"),
              ElementsAre("section '3. Heads': block 1: the translation has besides the line ''"));
  EXPECT_THAT(Changed("8 đầu", "9 đầu"),
              ElementsAre("section '3. Heads': block 2: numbers: the translation lacks 8 and has besides 9"));
  EXPECT_THAT(Changed("\n```\ny = x trên 8 đầu\n```\n", ""),
              ElementsAre("section '3. Heads': blocks: 1 in the translation, 2 in the page"));
}

TEST(TranslationTest, CodeLinksAndPictures) {
  EXPECT_THAT(Changed("`d`", "`D`"),
              ElementsAre("section '3. Heads': code: the translation lacks d and has besides D"));
  EXPECT_THAT(Changed("](../../options.md)", "](../options.md)"),
              ElementsAre("section '3. Heads': links: the translation lacks ../../options.md and has besides "
                          "../options.md"));
  EXPECT_THAT(Changed("02_scale.md", "03_heads.md"),
              ElementsAre("section '3. Heads': links: the translation lacks 02_scale.md# and has besides "
                          "03_heads.md#tinh-bang-tay"));
  EXPECT_THAT(Changed("](02_scale.md", "](../03_heads.md"),
              ElementsAre("section '3. Heads': links: the translation lacks 02_scale.md# and has besides "
                          "../03_heads.md#tinh-bang-tay"));
  EXPECT_THAT(Changed("/1706", "/1707"),
              ElementsAre("section 'By hand': links: the translation lacks https://example.com/1706 and has besides "
                          "https://example.com/1707"));
  EXPECT_THAT(Changed("../../pictures", "../pictures"),
              ElementsAre("section 'By hand': pictures: the translation lacks ../../pictures/tour/heads.svg and has "
                          "besides ../pictures/tour/heads.svg"));
}

TEST(TranslationTest, HeadingsAndTables) {
  EXPECT_THAT(Changed("## Tính bằng tay", "### Tính bằng tay"),
              ElementsAre("heading 2: the translation's 'Tính bằng tay' has 3 #, where the page has 2"));
  EXPECT_THAT(Changed("| --- | --- |", "## Thêm\n| --- | --- |"),
              ElementsAre("section 'By hand': numbers: the translation lacks 2",
                          "section 'By hand': code: the translation lacks a",
                          "section 'By hand': rows of tables: 1 in the translation, 3 in the page",
                          "heading 3: the translation's 'Thêm' has 2 #, where the page has no heading"));
  EXPECT_THAT(Changed("| hàng | của |\n", ""),
              ElementsAre("section 'By hand': rows of tables: 2 in the translation, 3 in the page"));
  EXPECT_THAT(CompareTranslation("# A\n\n## B\n", "# A\n"),
              ElementsAre("section 'B': the translation lacks its heading"));
}

}  // namespace
}  // namespace weft
