// The expected numbers are sacreBLEU 2.6.0's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/text/measures/translation_measures.h"

namespace weft {
namespace {

using Lines = std::vector<std::string>;

TEST(BleuTest, CutsLinesIntoWords) {
  const struct {
    std::string line, words;
  } rows[] = {
      {"", ""},
      {" \t ", ""},
      {"a.b", "a . b"},
      {"a...b", "a . . . b"},
      {"3.14", "3.14"},
      {"1,000.5,x", "1,000.5 , x"},
      {"x,5", "x , 5"},
      {",.,.", ", . , ."},
      {"5-6 a-b 7-x", "5 - 6 a-b 7 - x"},
      {"--5--", "--5 - -"},
      {"(a)[b]{c}", "( a ) [ b ] { c }"},
      {"a/b@c#d$e%f^g", "a / b @ c # d $ e % f ^ g"},
      {"'a' \"b\"", "'a' \" b \""},
      {"&amp;lt;", "<"},
      {"&amp;quot;", "& quot ;"},
      {"U.S.A.", "U . S . A ."},
      {"9. 9.", "9 . 9 ."},
      {".5", ". 5"},
      {"é.é,é", "é . é , é"},
      {"foo-\nbar\nbaz", "foobar baz"},
      {"foo-\n", "foo-"},
      {"a\x1F"
       "b\u00A0c\u0085"
       "d",
       "a b c d"},
      {"x<skipped>y", "xy"},
      {"caf\xE9.", "caf\xE9 ."},
  };
  for (const auto& row : rows) EXPECT_EQ(TokenizeForBleu(row.line), row.words) << row.line;
}

TEST(BleuTest, SmallCorpora) {
  const struct {
    Lines translations, references;
    double score;
    std::string summary;
  } rows[] = {
      {{}, {}, 0, "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)"},
      {{"the cat sat on the mat"},
       {"the cat sat on the mat"},
       100,
       "BLEU = 100.00 100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)"},
      {{"the cat sat on a mat"},
       {"the cat sat on the mat"},
       53.7284965911771,
       "BLEU = 53.73 83.3/60.0/50.0/33.3 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)"},
      {{""},
       {"the cat sat on the mat"},
       0,
       "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 0.000 ratio = 0.000 hyp_len = 0 ref_len = 6)"},
      {{"", "the cat sat on the mat today"},
       {"a dog barks", "the cat sat on the mat"},
       60.80253214198355,
       "BLEU = 60.80 85.7/83.3/80.0/75.0 (BP = 0.751 ratio = 0.778 hyp_len = 7 ref_len = 9)"},
      {{"the the the the the the the"},  // a match for each occurrence in the reference, and smoothing
       {"the cat is on the mat"},
       7.809849842300637,
       "BLEU = 7.81 28.6/8.3/5.0/3.1 (BP = 1.000 ratio = 1.167 hyp_len = 7 ref_len = 6)"},
      {{"cat"}, {"cat"}, 0, "BLEU = 0.00 100.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 1 ref_len = 1)"},
      {{"nothing in common"},
       {"some other words here"},
       0,
       "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 0.717 ratio = 0.750 hyp_len = 3 ref_len = 4)"},
      {{"It costs 3.50 dollars, or 1,000 yen - 20-30% off."},
       {"It costs 3.50 dollars, or 1,000 yen - 20-25% off!"},
       74.87402156832427,
       "BLEU = 74.87 86.7/78.6/69.2/66.7 (BP = 1.000 ratio = 1.000 hyp_len = 15 ref_len = 15)"},
      {{"Ein Mann läuft über die Straße… „schnell“."},
       {"Ein Mann rennt über die Straße… „schnell“."},
       59.4603557501361,
       "BLEU = 59.46 87.5/71.4/50.0/40.0 (BP = 1.000 ratio = 1.000 hyp_len = 8 ref_len = 8)"},
      {{"&quot;Hello&quot; &amp; &lt;good&gt; bye <skipped>now"},
       {"\"Hello\" & <good> bye now"},
       100,
       "BLEU = 100.00 100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 9 ref_len = 9)"},
      {{"he said: 'it's (really) done...', didn't he?", "U.S. and U.K. e.g. 5.,6"},
       {"he said: 'it is (really) done...', did he?", "U.S. and the U.K. e.g. 5.,6"},
       72.86527156707353,
       "BLEU = 72.87 93.9/83.9/72.4/63.0 (BP = 0.941 ratio = 0.943 hyp_len = 33 ref_len = 35)"},
      {{"日本語 の テスト です 。", "今日 は 良い 天気 です ね"},
       {"日本語 の 試験 です 。", "今日 は 良い 天気 です"},
       55.29812970278249,
       "BLEU = 55.30 81.8/66.7/42.9/40.0 (BP = 1.000 ratio = 1.100 hyp_len = 11 ref_len = 10)"},
      {{"short one", "and the brevity penalty"},
       {"a much longer short one than that", "and the brevity penalty works here too"},
       26.359713811572682,
       "BLEU = 26.36 100.0/100.0/100.0/100.0 (BP = 0.264 ratio = 0.429 hyp_len = 6 ref_len = 14)"},
  };
  for (const auto& row : rows) {
    const auto bleu = CorpusBleu(row.translations, row.references);
    ASSERT_TRUE(bleu.ok()) << bleu.status();
    EXPECT_NEAR(bleu->score, row.score, 1e-9);
    EXPECT_EQ(bleu->ToString(), row.summary);
  }
  EXPECT_EQ(CorpusBleu(Lines{"a"}, Lines{}).status().message(), "there are 1 translations, but 0 references");
}

TEST(BleuTest, NamesItsSettings) {
  EXPECT_EQ(BleuSignature(), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  EXPECT_EQ(BleuSignature(/*lowercase=*/true), "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0");
}

Lines ReadGzip(const std::string& path) {
  std::FILE* pipe = popen(absl::StrCat("gzip -dc '", path, "'").c_str(), "r");
  std::string text;
  char buffer[1 << 16];
  for (size_t size; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, size);
  EXPECT_EQ(pclose(pipe), 0) << path;
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

// "Translations" made from the references by rules; i is a line's number, j a word's.
TEST(BleuTest, AThousandLinesChangedInFiveWays) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const Lines references = ReadGzip(absl::StrCat(data, "/multi30k/test_2016_flickr.en.gz"));
  ASSERT_EQ(references.size(), 1000);
  const auto drop = [](size_t i, Lines words) {
    Lines kept;
    for (size_t j = 0; j < words.size(); ++j) {
      if ((i + j) % 5 != 0) kept.push_back(words[j]);
    }
    return absl::StrJoin(kept, " ");
  };
  const auto swap = [](size_t i, Lines words) {
    for (size_t j = 0; j + 1 < words.size(); ++j) {
      if ((i + j) % 4 == 0) std::swap(words[j], words[j + 1]);
    }
    return absl::StrJoin(words, " ");
  };
  const auto next = [&](size_t i, Lines) { return references[(i + 1) % references.size()]; };
  const auto capitals_or_no_stop = [](size_t i, Lines words) {
    std::string line = absl::StrJoin(words, " ");
    if (i % 3 != 0) {
      line.pop_back();
    } else {
      absl::AsciiStrToUpper(&line);
    }
    return line;
  };
  const auto longer = [](size_t i, Lines words) {
    Lines more;
    for (size_t j = 0; j < words.size(); ++j) {
      more.push_back(words[j].size() % 3 == 0 ? words[j] + "s" : words[j]);
      if ((i + j) % 10 == 0) more.push_back(words[j]);
    }
    return absl::StrJoin(more, " ");
  };
  const struct {
    std::function<std::string(size_t, Lines)> change;
    bool lowercase;
    double score;
    std::string summary;
  } rows[] = {
      {drop, false, 46.56186938948151,
       "BLEU = 46.56 100.0/78.7/54.8/30.2 (BP = 0.775 ratio = 0.797 hyp_len = 10324 ref_len = 12955)"},
      {swap, false, 17.589612844989393,
       "BLEU = 17.59 100.0/36.3/9.8/2.7 (BP = 1.000 ratio = 1.000 hyp_len = 12955 ref_len = 12955)"},
      {next, false, 0.4350141060223876,
       "BLEU = 0.44 20.6/1.5/0.1/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 12955 ref_len = 12955)"},
      {capitals_or_no_stop, false, 62.426989486858545,
       "BLEU = 62.43 69.3/64.8/64.5/64.3 (BP = 0.950 ratio = 0.951 hyp_len = 12326 ref_len = 12955)"},
      {capitals_or_no_stop, true, 94.69668532190026,
       "BLEU = 94.70 99.7/99.7/99.6/99.6 (BP = 0.950 ratio = 0.951 hyp_len = 12326 ref_len = 12955)"},
      {longer, false, 42.31039690076267,
       "BLEU = 42.31 70.6/53.0/35.7/24.0 (BP = 1.000 ratio = 1.131 hyp_len = 14650 ref_len = 12955)"},
  };
  for (const auto& row : rows) {
    Lines translations;
    for (size_t i = 0; i < references.size(); ++i) {
      translations.push_back(row.change(i, absl::StrSplit(references[i], ' ', absl::SkipEmpty())));
    }
    const auto bleu = CorpusBleu(translations, references, row.lowercase);
    ASSERT_TRUE(bleu.ok()) << bleu.status();
    EXPECT_NEAR(bleu->score, row.score, 1e-9);
    EXPECT_EQ(bleu->ToString(), row.summary);
  }
}

}  // namespace
}  // namespace weft
