// Compares the tour with its translations: docs/tour/LANGUAGE/NAME.md translates docs/tour/NAME.md. A translation links
// to the other translations, and to the English page where there is none yet.
#include <algorithm>
#include <filesystem>
#include <regex>
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
  EXPECT_EQ(translated.count("README.md"), 1) << folder << " has no list of its pages";
  static const std::regex link("\\]\\((\\.\\./)?([^/)#]*\\.md)");
  for (const std::string& page : translated) {
    const std::string path = absl::StrCat(folder, "/", page);
    ASSERT_EQ(english.count(page), 1) << path << " translates no page of " << kTour;
    const std::string text = Text(path);
    for (const std::string& difference : CompareTranslation(Text(absl::StrCat(kTour, "/", page)), text)) {
      ADD_FAILURE() << path << ", " << difference;
    }
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const bool to_english = it->length(1) > 0, exists = translated.count(it->str(2)) > 0;
      EXPECT_NE(to_english, exists) << path << " links to " << it->str(1) << it->str(2);
    }
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
