// Tests `weft attention` on texts with brackets and with unknown words.
#include <nlohmann/json.hpp>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class AttentionTest : public WeftProgramTest {
 protected:
  AttentionTest() {
    WriteBert("bert", 16);
    Write("bert/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n,\n");
  }
  nlohmann::json Weights(const Arguments& more) const {
    const CommandResult result = Weft(Arguments{"attention", "--model=bert", "--json"} + more);
    EXPECT_TRUE(Works(result));
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(AttentionTest, BracketsArePartsOfTheText) {
  EXPECT_EQ(Weights({"[MASK]"})["tokens"], nlohmann::json({"[CLS]", "[MASK]", "[SEP]"}));
  EXPECT_EQ(Weights({"a", "[MASK]", "a"})["tokens"], nlohmann::json({"[CLS]", "a", "[MASK]", "a", "[SEP]"}));
  EXPECT_EQ(Weights({"[a,a]"})["tokens"],
            nlohmann::json({"[CLS]", "[UNK]", "a", ",", "a", "[UNK]", "[SEP]"}));  // the brackets are unknown
  EXPECT_EQ(Weights({"--pair", "[MASK]", "a"})["tokens"], nlohmann::json({"[CLS]", "a", "[SEP]", "[MASK]", "[SEP]"}));
}

TEST_F(AttentionTest, UnknownWordsAndMasksStayWithoutSpecialTokens) {
  const nlohmann::json weights = Weights({"--without-special-tokens", "a", "b", "[MASK]"});
  EXPECT_EQ(weights["tokens"], nlohmann::json({"[CLS]", "a", "[UNK]", "[MASK]", "[SEP]"}));
  EXPECT_EQ(weights["without_special_tokens"], true);
  for (const nlohmann::json& row : weights["attention"][0][0]) {
    EXPECT_EQ(row[0], 0);
    for (const size_t word : {1, 2, 3}) EXPECT_GT(row[word], 0) << word;
    EXPECT_EQ(row[4], 0);
  }
  EXPECT_EQ(Weights({"a"}).count("without_special_tokens"), 0);
}

TEST_F(AttentionTest, APairThatIsCutKeepsItsSpecialTokens) {
  const nlohmann::json tokens = Weights(Arguments{"--truncate", "--pair", ", , ,"} + Arguments(20, "a"))["tokens"];
  ASSERT_EQ(tokens.size(), 16);  // the context
  EXPECT_EQ(tokens[0], "[CLS]");
  for (const size_t end : {11, 15}) EXPECT_EQ(tokens[end], "[SEP]") << end;
  EXPECT_EQ(Weights(Arguments{"--ids", "--truncate", "--pair=4 4"} + Arguments(20, "4"))["tokens"].size(), 16);
}

}  // namespace
}  // namespace weft
