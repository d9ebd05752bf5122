// Compares chat templates with transformers. draw.py writes the cases. The environment variable WEFT_TEMPLATES names
// another file of draw.py, such as one of published templates.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/text/data/gzip.h"
#include "weft/text/templates/jinja_template.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Compares the text of `source`, or that it fails if `expected` is null. Returns whether both are equal.
bool Check(const std::string& source, Json variables, const Json& messages, const Json& expected) {
  variables.update({{"messages", messages}, {"documents", nullptr}});
  const absl::StatusOr<JinjaTemplate> parsed = JinjaTemplate::Parse(source);
  const absl::StatusOr<std::string> text = parsed.ok() ? parsed->Render(variables) : parsed.status();
  if (expected.is_null()) {
    EXPECT_TRUE(absl::StartsWith(text.status().message(), "line ")) << text.status();
    return !text.ok();
  }
  EXPECT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text.value_or(""), expected.get<std::string>());
  return text.ok() && *text == expected;
}

TEST(ChatTemplates, RenderAsInTransformers) {
  const char* const other = std::getenv("WEFT_TEMPLATES");
  const auto read = ReadMaybeGzip(other != nullptr && *other != '\0' ? other : "tests/templates/cases.json.gz");
  ASSERT_TRUE(read.ok()) << read.status();
  const Json drawn = Json::parse(*read);
  const Json &conversations = drawn["conversations"], &settings = drawn["settings"];
  int equal = 0, texts = 0;
  for (const Json& one : drawn["cases"]) {
    bool all = true;
    for (size_t i = 0; i < settings.size(); ++i) {
      for (size_t j = 0; j < conversations.size(); ++j) {
        SCOPED_TRACE(absl::StrCat(one["name"].get<std::string>(), ", settings ", i, ", conversation ", j));
        all = Check(one["template"], settings[i], conversations[j], one["texts"][i][j]) && all;
        texts += one["texts"][i][j].is_string();
      }
    }
    equal += all;
  }
  std::cout << equal << " of " << drawn["cases"].size() << " templates are equal in " << texts << " texts\n";
  for (const Json& snippet : drawn["snippets"]) {
    SCOPED_TRACE(snippet[0]);
    Check(snippet[0], drawn["variables"], conversations[0], snippet[1]);
  }
}

TEST(ChatTemplates, WhatNoPublishedTemplateUsesIsRefusedByName) {
  const Json drawn = Json::parse(*ReadMaybeGzip("tests/templates/cases.json.gz"));
  for (const Json& refused : drawn["refused"]) {
    const absl::StatusOr<JinjaTemplate> parsed = JinjaTemplate::Parse(refused[0].get<std::string>());
    const absl::StatusOr<std::string> text = parsed.ok() ? parsed->Render(drawn["variables"]) : parsed.status();
    EXPECT_EQ(text.status().message(), absl::StrCat("line 1: ", refused[1].get<std::string>())) << refused[0];
  }
}

}  // namespace
}  // namespace weft
