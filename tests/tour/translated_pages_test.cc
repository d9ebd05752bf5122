// Compares the tour with its translations: docs/tour/LANGUAGE/NAME.md translates docs/tour/NAME.md. If a language has
// one page, it must have them all.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/tests/tour/translation.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kTour[] = "docs/tour";
constexpr const char* kLanguages[] = {"zh-Hans", "zh-Hant", "vi"};  // folders in kTour, named as in BCP 47

// Returns the names of the pages in a folder; none if the folder does not exist.
std::set<std::string> PagesIn(const std::string& folder) {
  std::set<std::string> pages;
  if (!fs::exists(folder)) return pages;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".md") pages.insert(file.path().filename().string());
  }
  return pages;
}

std::string Text(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

class TranslatedPagesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TranslatedPagesTest, SayWhatTheEnglishPagesSay) {
  const std::string folder = absl::StrCat(kTour, "/", GetParam());
  const std::set<std::string> english = PagesIn(kTour), translated = PagesIn(folder);
  ASSERT_FALSE(english.empty());
  if (translated.empty()) GTEST_SKIP() << folder << " has no page yet";
  for (const std::string& page : english) {
    const std::string path = absl::StrCat(folder, "/", page);
    if (translated.count(page) == 0) {
      ADD_FAILURE() << path << " is missing";
      continue;
    }
    for (const std::string& difference : CompareTranslation(Text(absl::StrCat(kTour, "/", page)), Text(path))) {
      ADD_FAILURE() << path << ", " << difference;
    }
  }
  for (const std::string& page : translated) {
    EXPECT_EQ(english.count(page), 1) << folder << "/" << page << " translates no page of " << kTour;
  }
}

// Each folder of the tour is a language of this test, and README names it.
TEST(LanguagesTest, AreKnown) {
  for (const fs::directory_entry& file : fs::directory_iterator(kTour)) {
    if (!file.is_directory()) continue;
    EXPECT_NE(std::find(std::begin(kLanguages), std::end(kLanguages), file.path().filename()), std::end(kLanguages))
        << file.path() << " is no language of kLanguages";
  }
  const std::string readme = Text("README.md");
  for (const char* language : kLanguages) {
    const std::string link = absl::StrCat("](", kTour, "/", language, "/README.md)");
    EXPECT_NE(readme.find(link), std::string::npos) << "README.md has no link [LANGUAGE" << link;
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, TranslatedPagesTest, ::testing::ValuesIn(kLanguages), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace weft
