// The expected numbers are sacreBLEU 2.6.0's: CHRF().corpus_score(translations, references).score, with word_order=2
// for chrF++ and lowercase=True, and BLEU() for several references.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/text/measures/translation_measures.h"

namespace weft {
namespace {

using Lines = std::vector<std::string>;

struct Scores {
  double chrf, chrf_plus_plus, bleu;
};

void ExpectScores(const Lines& translations, const std::vector<Lines>& references, bool lowercase,
                  const Scores& wanted) {
  SCOPED_TRACE(translations[0]);
  const auto chrf = ChrfCounts(translations, references, lowercase);
  const auto chrf_plus_plus = ChrfCounts<2>(translations, references, lowercase);
  const auto bleu = BleuCounts(translations, references, lowercase);
  ASSERT_TRUE(chrf.ok() && chrf_plus_plus.ok() && bleu.ok());
  EXPECT_NEAR(ChrfOf(Sum(*chrf)), wanted.chrf, 1e-9);
  EXPECT_NEAR(ChrfOf(Sum(*chrf_plus_plus)), wanted.chrf_plus_plus, 1e-9);
  EXPECT_NEAR(BleuOf(Sum(*bleu)).score, wanted.bleu, 1e-9);
}

TEST(ChrfTest, SmallCorpora) {
  const struct {
    Lines translations;
    std::vector<Lines> references;
    Scores mixed_case, lowercase;
  } rows[] = {
      {{"the cat sat on the mat"},
       {{"the cat sat on the mat"}},
       {100.0, 100.0, 100.00000000000004},
       {100.0, 100.0, 100.00000000000004}},
      {{"the cat sat on a mat"},
       {{"the cat sat on the mat"}},
       {65.97965990995549, 67.4443505016402, 53.7284965911771},
       {65.97965990995549, 67.4443505016402, 53.7284965911771}},
      {{""}, {{"the cat sat on the mat"}}, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}},
      {{"the cat"}, {{""}}, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}},
      {{"", "the cat sat on the mat today"},
       {{"a dog barks", "the cat sat on the mat"}},
       {70.44674027523065, 70.79173170321492, 60.80253214198355},
       {70.44674027523065, 70.79173170321492, 60.80253214198355}},
      {{"ab"}, {{"ab"}}, {100.0, 100.0, 0.0}, {100.0, 100.0, 0.0}},
      {{"nothing"}, {{"xyz"}}, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}},
      {{"(hi) \"there\", e.g. it's 5.0!"},
       {{"(hi) there, e.g. it is 5.0 !"}},
       {53.66283931397179, 54.93080213006729, 40.01601601922502},
       {53.66283931397179, 54.93080213006729, 40.01601601922502}},
      {{"Ein Mann läuft über die Straße… „schnell“."},
       {{"Ein Mann rennt über die Straße… „schnell“."}},
       {80.28528941716799, 80.08003849144741, 59.4603557501361},
       {80.28528941716799, 80.08003849144741, 59.4603557501361}},
      {{"日本語 の テスト です 。", "今日は良い天気ですね"},
       {{"日本語 の 試験 です 。", "今日は 良い天気 です"}},
       {64.6525614399446, 59.88236710409935, 20.684477252128623},
       {64.6525614399446, 59.88236710409935, 20.684477252128623}},
      {{"a\u00a0b\u3000c\x1F"
        "d\te",
        "\U0001F600 x\u0301y"},
       {{"a b c d e", "\U0001F600 xy"}},
       {90.03795887582379, 88.00784625730287, 90.99882808096075},
       {90.03795887582379, 88.00784625730287, 90.99882808096075}},
      {{"THE Cat Ünder ÉTÉ"},
       {{"the cat ünder été"}},
       {16.563991563991564, 12.422993672993673, 0.0},
       {100.0, 100.0, 100.00000000000004}},
      {{"the cat is on the mat", "there is a cat"},
       {{"the cat sat on the mat", "a cat is there"}, {"a cat is on a mat", "there is one cat on the mat"}},
       {57.05931922313584, 60.29802528486232, 43.696756625234045},
       {57.05931922313584, 60.29802528486232, 43.696756625234045}},
      {{"short", "a much longer one here", ""},
       {{"short one", "a long one here", "x"},
        {"", "much longer it is", "yy zz"},
        {"shorts", "a much longer one there", ""}},
       {77.46137073351153, 74.84283189314863, 75.98356856515926},
       {77.46137073351153, 74.84283189314863, 75.98356856515926}},
      {{"a b c d e"},
       {{"a b c d"}, {"a b c d e f"}},
       {91.3677130044843, 92.48554913294798, 100.00000000000004},
       {91.3677130044843, 92.48554913294798, 100.00000000000004}},
      {{"the the the the"},
       {{"the cat the"}, {"the the dog"}},
       {46.087935022848384, 48.071189581248525, 31.947155212313625},
       {46.087935022848384, 48.071189581248525, 31.947155212313625}},
  };
  for (const auto& row : rows) {
    ExpectScores(row.translations, row.references, /*lowercase=*/false, row.mixed_case);
    ExpectScores(row.translations, row.references, /*lowercase=*/true, row.lowercase);
  }
}

TEST(ChrfTest, ChecksTheNumbersOfLines) {
  const Lines one = {"a"}, none;
  EXPECT_EQ(ChrfCounts(one, {{none}}).status().message(), "there are 1 translations, but 0 references");
  EXPECT_EQ(ChrfCounts(one, {{one, none}}).status().message(), "there are 1 translations, but 0 references");
  EXPECT_EQ(ChrfCounts(one, {}).status().message(), "there are no references");
  EXPECT_EQ(ChrfOf(Sum(*ChrfCounts(none, {{none}}))), 0);
}

TEST(ChrfTest, NamesItsSettings) {
  EXPECT_EQ(ChrfSignature<>(), "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0");
  EXPECT_EQ(ChrfSignature<2>(/*lowercase=*/true, 3), "nrefs:3|case:lc|eff:yes|nc:6|nw:2|space:no|version:2.6.0");
}

Lines ReadGzip(const std::string& path) {
  std::FILE* pipe = popen(absl::StrCat("gzip -dc '", path, "'").c_str(), "r");
  std::string text;
  char buffer[1 << 16];
  for (size_t size; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, size);
  EXPECT_EQ(pclose(pipe), 0) << path;
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

// The "translations" of each line are the German line, the next English line, and four fifths of the English words.
TEST(ChrfTest, AThousandLinesOfMulti30k) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const Lines english = ReadGzip(absl::StrCat(data, "/multi30k/test_2016_flickr.en.gz"));
  const Lines german = ReadGzip(absl::StrCat(data, "/multi30k/test_2016_flickr.de.gz"));
  ASSERT_EQ(english.size(), 1000);
  Lines next(english.begin() + 1, english.end()), shorter;
  next.push_back(english[0]);
  for (size_t i = 0; i < english.size(); ++i) {
    const Lines words = absl::StrSplit(english[i], ' ');
    Lines kept;
    for (size_t j = 0; j < words.size(); ++j) {
      if ((i + j) % 5 != 0) kept.push_back(words[j]);
    }
    shorter.push_back(absl::StrJoin(kept, " "));
  }
  ExpectScores(german, {english}, false, {17.955656286056445, 14.864145064554563, 0.48197658512702957});
  ExpectScores(next, {english}, false, {15.924447397938854, 14.705137824823336, 0.4350141060223876});
  ExpectScores(shorter, {english}, false, {71.82756752582918, 72.2826294630151, 46.56186938948151});
  ExpectScores(shorter, {next, english}, false, {71.82756752582918, 72.2826294630151, 52.35678037852466});
  ExpectScores(german, {english, next}, false, {18.150565845901642, 15.038006778636081, 0.5107866876088666});
}

}  // namespace
}  // namespace weft
