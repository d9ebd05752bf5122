// `weft tokenize` as a user calls it.
#include <filesystem>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class TokenizeTest : public WeftProgramTest {};

TEST_F(TokenizeTest, PrintsAnArrayALine) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
  Write("texts.txt", "A ab\n\n[MASK] \na");
  const auto tokenize = [&](const Arguments& flags) {
    const CommandResult result = Weft(Arguments{"tokenize", "--tokenizer=vocab.txt"} + flags);
    EXPECT_TRUE(Works(result));
    return result.out;
  };
  EXPECT_EQ(tokenize({"texts.txt"}), "[4,4,5]\n[]\n[3]\n[4]\n");
  EXPECT_EQ(tokenize({"--special-tokens=false", "texts.txt"}), "[4,4,5]\n[]\n[0,0,0]\n[4]\n");
  EXPECT_EQ(tokenize({"--special-tokens=false", "--special", "texts.txt"}),
            "[1,4,4,5,2]\n[1,2]\n[1,0,0,0,2]\n[1,4,2]\n");
  EXPECT_EQ(tokenize({"--special", "texts.txt"}), "[1,4,4,5,2]\n[1,2]\n[1,3,2]\n[1,4,2]\n");
  EXPECT_EQ(tokenize({"texts.txt", "texts.txt"}).size(), 2 * tokenize({"texts.txt"}).size());
  EXPECT_EQ(tokenize({}), "");  // standard input is empty
  Write("ids.txt", "[1,4,4,5,2]\n[]\n");
  EXPECT_EQ(tokenize({"--decode", "ids.txt"}), "a ab\n\n");
  EXPECT_EQ(tokenize({"--decode", "--special", "ids.txt"}), "[CLS] a ab [SEP]\n\n");
}

TEST_F(TokenizeTest, ReadsStandardInput) {
  Write("tokenizer.json", "{\"type\": \"byte\"}");
  const auto pipe = [&](const std::string& text, const std::string& flags) {
    const std::string weft = std::filesystem::absolute("apps/weft").string() + " tokenize --tokenizer=" + folder_;
    return RunCommand({"sh", "-c", "printf '" + text + "' | " + weft + " " + flags});
  };
  EXPECT_EQ(pipe("a\\nbc", "").out, "[97]\n[98,99]\n");
  EXPECT_EQ(pipe("[97]\\n[98,99]\\n", "--decode").out, "a\nbc\n");
  EXPECT_TRUE(
      Fails(pipe("[97]\\n[256]", "--decode"), 1, "standard input, line 2: id 256, at position 0, is not in 0 .. 255"));
  EXPECT_TRUE(Fails(pipe("97", "--decode"), 1, "standard input, line 1: it is not a JSON array of ids"));
  EXPECT_TRUE(Fails(pipe("[1,0.5]", "--decode"), 1, "standard input, line 1: entry 1 is not an id"));
}

TEST_F(TokenizeTest, NamesFileAndLine) {
  Write("vocab.txt", "[UNK]\na\n");
  Write("latin1.txt", "caf\u00E9\ncaf\xE9\n");
  CommandResult result = Weft({"tokenize", "--tokenizer=vocab.txt", "latin1.txt"});
  EXPECT_TRUE(Fails(result, 2, "latin1.txt, line 2: not UTF-8 at byte 3 (0xE9)"));
  EXPECT_EQ(result.out, "[0]\n");
  EXPECT_TRUE(Fails(Weft({"tokenize", "--tokenizer=vocab.txt", "missing.txt"}), 2, "missing.txt: No such file"));
  EXPECT_TRUE(Fails(Weft({"tokenize", "--tokenizer=vocab.txt", "."}), 2, "it is a folder"));
  Write("vocab.txt", "[UNK]\na\na\n");
  result = Weft({"tokenize", "--tokenizer=vocab.txt"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "note: vocab.txt: line 3 repeats the token 'a', whose id is now 2 and not 1\n");
}

}  // namespace
}  // namespace weft
