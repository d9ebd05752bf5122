// Runs commands with models whose end tokens, names and tokenizers are unusual. The results are those of transformers,
// which draw.py wrote to commands.json.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "weft/base/file.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class CommandsTest : public WeftProgramTest {
 protected:
  // Copies the case's model to the folder "model" and changes its files.
  void MakeModel(const Json& test) const {
    fs::remove_all(Path("model"));
    fs::copy(fs::path("tests/commands/models") / test["model"].get<std::string>(), Path("model"));
    for (const auto& [name, contents] : test["files"].items()) {
      fs::remove(Path("model/" + name));
      if (!contents.is_null()) Write("model/" + name, contents.dump());
    }
  }

  CommandResult Run(const Json& test) const {
    MakeModel(test);
    Arguments arguments = test["arguments"].get<Arguments>();
    for (std::string& argument : arguments) argument = absl::StrReplaceAll(argument, {{"MODEL", "model"}});
    if (const auto input = test["stdin"].get<std::string>(); !input.empty()) {
      Write("input.txt", input);
      arguments.push_back("input.txt");
    }
    return Weft(arguments);
  }
};

// Scores have six decimals. They may differ by two units of the last one, because CPUs differ in the order of sums.
constexpr double kScoreError = 2.5e-6;

// Compares the generated tokens and their log-probabilities.
void ExpectTokens(const Json& test, const Json& got) {
  std::vector<int32_t> ids;
  for (const Json& token : got["tokens"]) ids.push_back(token["id"].get<int32_t>());
  EXPECT_EQ(ids, test["tokens"].get<std::vector<int32_t>>()) << got.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (size_t i = 0; i < std::min(ids.size(), test["logprobs"].size()); ++i) {
    EXPECT_NEAR(got["tokens"][i]["logprob"].get<double>(), test["logprobs"][i].get<double>(), 2e-5) << "token " << i;
  }
}

void ExpectScores(const Json& wanted, const Json& got) {
  EXPECT_EQ(got.size(), wanted.size());
  for (const auto& [label, score] : wanted.items()) {
    ASSERT_TRUE(got.contains(label)) << got.dump();
    EXPECT_NEAR(got[label].get<double>(), score.get<double>(), kScoreError) << label;
  }
}

void ExpectMasks(const Json& wanted, const Json& got) {
  ASSERT_EQ(got.size(), wanted.size()) << got.dump();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got[i]["token"], wanted[i]["token"]);
    EXPECT_NEAR(got[i]["score"].get<double>(), wanted[i]["score"].get<double>(), kScoreError);
  }
}

TEST_F(CommandsTest, ComputeWhatTheLibraryComputes) {
  const absl::StatusOr<std::string> text = ReadFile("tests/commands/commands.json");
  ASSERT_TRUE(text.ok()) << text.status();
  for (const Json& test : Json::parse(*text)) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const CommandResult result = Run(test);
    if (test.contains("error")) {
      EXPECT_NE(result.exit_code, 0) << result.out;
      for (const Json& word : test["error"]) {
        EXPECT_NE(result.err.find(word.get<std::string>()), std::string::npos) << word << " in " << result.err;
      }
      continue;
    }
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find(test.value("note", "")), std::string::npos) << result.err;
    const Json got = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    if (test.contains("logprobs")) ExpectTokens(test, got);
    if (test.contains("text")) {
      EXPECT_EQ(got, test["text"]);
    }
    if (test.contains("scores")) ExpectScores(test["scores"], got);
    if (test.contains("masks")) ExpectMasks(test["masks"], got);
    if (test.contains("ids")) {
      EXPECT_EQ(got, test["ids"]);
    }
  }
}

}  // namespace
}  // namespace weft
