#include "weft/formats/model_formats.h"

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(ModelFormatsTest, RowsAreCompleteAndTheirNamesUnique) {
  std::set<absl::string_view> names;
  for (const Format* const format : Formats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_EQ(format->recognizes != nullptr, format->read != nullptr) << format->name;
    EXPECT_TRUE(format->read != nullptr || format->write != nullptr) << format->name;
    EXPECT_EQ(format->family != nullptr, format->read != nullptr && format->families.size() != 1) << format->name;
    EXPECT_EQ(format->write != nullptr, !format->files.empty()) << format->name;
  }
  std::set<absl::string_view> types;
  for (const ModelFamily* const family : ModelFamilies()) {
    EXPECT_FALSE(family->model_types.empty()) << family->name;
    for (const absl::string_view type : family->model_types) EXPECT_TRUE(types.insert(type).second) << type;
    EXPECT_TRUE(family->read != nullptr && family->write != nullptr) << family->name;
    EXPECT_TRUE(family->record != nullptr && family->sizes != nullptr) << family->name;
    EXPECT_EQ(family->from_run != nullptr, family->to_run != nullptr) << family->name;
    EXPECT_TRUE(family->untie == nullptr || family->tied != nullptr) << family->name;
  }
}

// The rows have the order of PublishedModel's alternatives.
template <size_t index>
void CheckFamily() {
  EXPECT_EQ(&FamilyOf(PublishedModel(std::in_place_index<index>)),
            (&std::variant_alternative_t<index, PublishedModel>::kFamily));
  if constexpr (index > 0) CheckFamily<index - 1>();
}

TEST(ModelFormatsTest, FamilyOfAModel) { CheckFamily<std::variant_size_v<PublishedModel> - 1>(); }

TEST(ModelFormatsTest, NothingAndVocabulariesThatDoNotFitAreErrors) {
  EXPECT_TRUE(absl::IsNotFound(FindFormat(testing::TempDir() + "/nothing").status()));
  EXPECT_TRUE(absl::IsNotFound(ReadModel(testing::TempDir() + "/nothing").status()));
  EXPECT_TRUE(CheckVocabulary("m", 7, 7).ok());
  EXPECT_TRUE(CheckVocabulary("m", 4, 7).ok());
  EXPECT_THAT(std::string(CheckVocabulary("m", 9, 7).message()), HasSubstr("has 9 tokens, but the model's table 7"));
  EXPECT_FALSE(CheckVocabulary("m", 3, 7).ok());
}

}  // namespace
}  // namespace weft
