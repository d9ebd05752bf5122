// Compares variations of tokenizer.json with Hugging Face's tokenizers. draw.py writes the cases.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/text_stream.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const Json& bases, const Json& one_case) {
  Json file = bases[one_case["base"]];
  for (const auto& [key, value] : one_case["patch"].items()) {
    if (key == "model") {
      file["model"].update(value);
    } else {
      file[key] = value;
    }
  }
  const std::filesystem::path folder = testing::TempDir() + "tokenizer_case";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << file;
  if (one_case.contains("config") && !one_case["config"].is_null()) {
    std::ofstream(folder / "tokenizer_config.json") << one_case["config"];
  }
  return LoadTokenizer(folder.string());
}

// Returns `text` as JSON, with U+FFFD for bytes that are not UTF-8, as the library decodes them.
std::string Replaced(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void CheckRow(const Tokenizer& tokenizer, const Json& row) {
  const std::string text = row[0];
  const Ids ids = row[1];
  SCOPED_TRACE(text);
  EXPECT_EQ(*tokenizer.Encode(text), ids);
  EXPECT_EQ(*tokenizer.Encode(text, /*special=*/false), row[2].get<Ids>());
  EXPECT_EQ(tokenizer.Wrap(ids).ids, row[3].get<Ids>());
  if (row.size() == 4) return;
  EXPECT_EQ(Replaced(*tokenizer.Decode(ids)), row[4].dump());
  EXPECT_EQ(Replaced(*tokenizer.DecodeWithSpecial(ids)), row[5].dump());
  TextStream stream(tokenizer, {});
  std::string streamed;
  for (const int32_t id : ids) streamed += *stream.Add(id);
  EXPECT_EQ(streamed + stream.Finish(), row[4].get<std::string>());
}

TEST(TokenizerCasesTest, AreAsInTheTokenizersLibrary) {
  std::ifstream file("tests/tokenizers/cases.json");
  const Json all = Json::parse(file);
  ASSERT_GE(all["cases"].size(), 95);
  for (const Json& one_case : all["cases"]) {
    SCOPED_TRACE(one_case["changes"].dump());
    const auto tokenizer = Load(all["bases"], one_case);
    if (one_case.contains("refused")) {
      EXPECT_TRUE(
          absl::StrContains(tokenizer.status().message(), "tokenizer.json: " + one_case["refused"].get<std::string>()))
          << tokenizer.status();
      continue;
    }
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const SpecialTokens& special = (*tokenizer)->special_tokens();
    const Json roles = one_case["roles"];
    for (const auto& [name, id] : {std::pair("bos", special.begin), std::pair("eos", special.end),
                                   std::pair("pad", special.padding), std::pair("unk", special.unknown),
                                   std::pair("mask", special.mask), std::pair("cls", special.classification)}) {
      if (roles.is_object() && roles.contains(name)) {
        EXPECT_EQ(id.has_value() ? Json(*id) : Json(), roles[name]) << name;
      }
    }
    for (const Json& row : one_case["rows"]) CheckRow(**tokenizer, row);
  }
}

}  // namespace
}  // namespace weft
