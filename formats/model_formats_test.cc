#include "weft/formats/model_formats.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/token_texts.h"

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

TEST(ModelFormatsTest, AnAdaptersConfigurationHasANameOfItsOwn) {
  const std::string folder = testing::TempDir() + "/adapter";
  std::filesystem::create_directory(folder);
  for (const char* const more : {"", R"(, "base_model_name_or_path": ".")"}) {
    ASSERT_TRUE(WriteFile(folder + "/config.json", {R"({"peft_type": "LORA")", more, "}"}).ok());
    EXPECT_EQ(FindFamily(folder).status().message(),
              folder + "/config.json: it describes an adapter; rename it to adapter_config.json");
  }
}

TEST(ModelFormatsTest, TextsOfEveryKindOfTokenizerJson) {
  const std::string folder = testing::TempDir() + "/texts";
  std::filesystem::create_directory(folder);
  const char* const models[] = {R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []})",
                                R"({"type": "Unigram", "vocab": [["a", -1.5], ["b", -2]]})"};
  for (const char* const model : models) {
    ASSERT_TRUE(WriteFile(folder + "/tokenizer.json",
                          {R"({"added_tokens": [{"id": 2, "content": "<s>"}], "model": )", model, "}"})
                    .ok());
    const absl::StatusOr<std::vector<std::string>> texts = TokenTexts(folder);
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_EQ(*texts, (std::vector<std::string>{"a", "b", "<s>"}));
  }
}

TEST(ModelFormatsTest, NothingAndVocabulariesThatDoNotFitAreErrors) {
  EXPECT_TRUE(absl::IsNotFound(FindFamily(testing::TempDir() + "/nothing").status()));
  EXPECT_TRUE(absl::IsNotFound(ReadModel(testing::TempDir() + "/nothing").status()));
  EXPECT_TRUE(CheckVocabulary("m", 7, 7).ok());
  EXPECT_TRUE(CheckVocabulary("m", 4, 7).ok());
  EXPECT_THAT(std::string(CheckVocabulary("m", 9, 7).message()), HasSubstr("has 9 tokens, but the model's table 7"));
  EXPECT_FALSE(CheckVocabulary("m", 3, 7).ok());
}

}  // namespace
}  // namespace weft
