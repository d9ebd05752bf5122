// `weft tokenizer train` as a user calls it.
#include <filesystem>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class TokenizerTrainTest : public WeftProgramTest {
 protected:
  CommandResult Learn(const Arguments& more) const { return Weft(Arguments{"tokenizer", "train"} + more); }
};

// What each kind of tokenizer learns is used by `weft tokenize`, and by `weft train gpt` from its token files.
TEST_F(TokenizerTrainTest, EveryKindTokenizes) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "The naïve cat " + std::to_string(i) + " sat on the other mats; it's flat.\n";
  Write("cats.txt", text);
  for (const std::string kind : {"byte-level-bpe", "wordpiece", "unigram", "sentencepiece-bpe"}) {
    const std::string size = kind == "byte-level-bpe" ? "300" : "60";
    const CommandResult learnt = Learn({"--kind=" + kind, "--vocabulary=" + size, "--out=" + kind, "cats.txt"});
    ASSERT_TRUE(Works(learnt)) << kind;
    const std::string file = kind + (Exists(kind + "/tokenizer.json") ? "/tokenizer.json" : "/tokenizer.model");
    EXPECT_EQ(learnt.out, "{\"file\":\"" + file + "\",\"vocabulary\":" + size +
                              ",\"bytes\":" + std::to_string(text.size()) + "}\n");
    const CommandResult ids = Weft({"tokenize", "--tokenizer=" + kind, "cats.txt"});
    ASSERT_TRUE(Works(ids));
    Write("ids.txt", ids.out);
    const CommandResult decoded = Weft({"tokenize", "--decode", "--tokenizer=" + kind, "ids.txt"});
    const bool bert = kind == "wordpiece";
    EXPECT_EQ(decoded.out.substr(0, 40), bert ? "the naive cat 0 sat on the other mats ; " : text.substr(0, 40));
    ASSERT_TRUE(Works(Weft({"tokenize", "--tokenizer=" + kind, "--out=" + kind + "-tokens", "cats.txt"})));
    EXPECT_TRUE(Works(Train({"--data=" + kind + "-tokens", "--steps=4", "--out=" + kind + "-run"})));
  }
  ASSERT_TRUE(Works(Weft({"tokenize", "--vocabulary=300", "--out=learnt", "cats.txt"})));
  EXPECT_EQ(Read("learnt/tokenizer.json"), Read("byte-level-bpe/tokenizer.json"));
}

TEST_F(TokenizerTrainTest, ReadsStandardInput) {
  const std::string weft = std::filesystem::absolute("apps/weft").string() + " tokenizer train ";
  const auto pipe = [&](const std::string& text, const std::string& flags) {
    return RunCommand({"sh", "-c", "printf '" + text + "' | " + weft + flags}, {.folder = folder_});
  };
  Write("b.txt", "bb bb\n");
  EXPECT_TRUE(Works(pipe("aa aa\\n", "--kind=wordpiece --out=one")));
  EXPECT_TRUE(Works(pipe("aa aa\\n", "--kind=wordpiece --out=two -")));
  EXPECT_EQ(Read("one/tokenizer.json"), Read("two/tokenizer.json"));
  EXPECT_EQ(Weft({"tokenize", "--tokenizer=one", "b.txt"}).out, "[1,1]\n");
  EXPECT_TRUE(Works(pipe("aa aa\\n", "--kind=wordpiece --out=three --threads=3 b.txt -")));
  EXPECT_EQ(Weft({"tokenize", "--tokenizer=three", "b.txt"}).out, "[10,10]\n");  // after 5, a, b, ##a, ##b, aa
  EXPECT_TRUE(Fails(pipe("", "--out=four"), 2, "the texts are empty"));
}

TEST_F(TokenizerTrainTest, NamesWrongUses) {
  Write("latin1.txt", "caf\u00E9\ncaf\xE9\n");
  const struct {
    Arguments flags;
    const char* message;
  } rows[] = {
      {{"text.txt"}, "weft tokenizer train: --out=FOLDER is missing"},
      {{"--out=new", "missing.txt"}, "missing.txt: No such file"},
      {{"--out=new", "."}, "it is a folder"},
      {{"--out=new", "latin1.txt"}, "latin1.txt, line 2: not UTF-8 at byte 3 (0xE9)"},
      {{"--out=new", "--kind=bpe", "text.txt"}, "--kind: 'bpe' is not one of byte-level-bpe, wordpiece"},
      {{"--out=new", "--vocabulary=0", "text.txt"}, "--vocabulary: 0 is not in 1"},
      {{"--out=new", "--vocabulary=100", "text.txt"}, "--vocabulary: 100 has no room for 1 special tokens and 256"},
      {{"--out=new", "--byte-fallback", "text.txt"}, "--byte-fallback: the kind byte-level-bpe has no such setting"},
      {{"--out=new", "--kind=unigram", "text.txt"}, "--vocabulary: SentencePiece's trainer says: Vocabulary size too"},
      {{"--out=old", "text.txt"}, "--out: old has files already, such as notes.txt; overwrite replaces a tokenizer"},
      {{"--out=old", "--overwrite", "text.txt"}, "--out: old has notes.txt, which is not a file of a tokenizer"},
  };
  std::filesystem::create_directory(Path("old"));
  Write("old/notes.txt", "");
  for (const auto& row : rows) {
    EXPECT_TRUE(Fails(Learn(row.flags), 2, row.message));
    EXPECT_FALSE(Exists("new"));
  }
}

TEST_F(TokenizerTrainTest, OverwritesATokenizer) {
  EXPECT_TRUE(Works(Learn({"--out=new", "text.txt"})));
  EXPECT_TRUE(Fails(Learn({"--out=new", "text.txt"}), 2, "--out: new has files already, such as tokenizer.json"));
  EXPECT_TRUE(Works(Learn({"--out=new", "--overwrite", "--kind=sentencepiece-bpe", "--vocabulary=40", "text.txt"})));
  EXPECT_FALSE(Exists("new/tokenizer.json"));
  EXPECT_TRUE(Works(Weft({"tokenize", "--tokenizer=new", "text.txt"})));
}

}  // namespace
}  // namespace weft
