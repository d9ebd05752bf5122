// `weft translate` as a user calls it.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "weft/core/safetensors.h"
#include "weft/formats/weights.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TranslateTest : public WeftProgramTest {
 protected:
  void SetUp() override { WriteTransformer("model"); }
  CommandResult Translate(const Arguments& more) const { return Weft(Arguments{"translate", "--model=model"} + more); }
  std::string Translated(const Arguments& more) const {
    const CommandResult result = Translate(more);
    EXPECT_TRUE(Works(result));
    return result.out;
  }
};

TEST_F(TranslateTest, EachLineIsTranslatedAsIfItWereAlone) {
  const std::vector<std::string> lines = {"abc", "", "e", "dddddddddddd", "  ", "a b c", "xyz", "bad", "cab"};
  std::string all, wanted;
  for (const std::string& line : lines) {
    Write("line.txt", line + "\n");
    absl::StrAppend(&all, line, "\n");
    wanted += Translated({"--max-length=9", "line.txt"});
  }
  Write("lines.txt", all);
  for (const char* batch : {"--batch=1", "--batch=3", "--batch=32"}) {
    EXPECT_EQ(Translated({"--max-length=9", batch, "lines.txt"}), wanted) << batch;
  }
  const std::vector<std::string> translations = absl::StrSplit(wanted, '\n');
  ASSERT_EQ(translations.size(), lines.size() + 1);
  EXPECT_EQ(translations[1], "") << "an empty line gives one";
  EXPECT_EQ(translations[4], "");
  EXPECT_NE(translations[0], "");
  EXPECT_EQ(translations[5], translations[0]) << "spaces are no tokens of a list of characters";
  const std::string weft = fs::absolute("apps/weft").string() + " translate --max-length=9 --model=" + Path("model");
  EXPECT_EQ(RunCommand({"sh", "-c", weft + " <" + Path("lines.txt")}).out, wanted);
}

// A caller that waits for each answer before it sends the next line gets the answer.
TEST_F(TranslateTest, AnswersALineAtOnce) {
  const std::string weft = fs::absolute("apps/weft").string() + " translate --max-length=5 --model=" + Path("model");
  const std::string script = "mkfifo to from; " + weft +
                             " <to >from & exec 3>to 4<from; echo abc >&3; read one <&4; "
                             "echo cab >&3; read two <&4; exec 3>&-; wait; echo $one; echo $two";
  const CommandResult result = RunCommand({"sh", "-c", script}, {.folder = folder_});
  Write("lines.txt", "abc\ncab\n");
  EXPECT_EQ(result.out, Translated({"--max-length=5", "lines.txt"}));
}

// The same if the beginning of the next line has arrived: 65,536 empty lines fill the pipe, and "a" follows them.
TEST_F(TranslateTest, HalfALineHoldsUpNoAnswer) {
  const std::string script =
      "{ head -c 65536 /dev/zero | tr '\\0' '\\n'; printf a; for i in $(seq 1200); do "
      "[ $(wc -c <out) = 65536 ] && touch answered && break; sleep 0.1; done; echo; } | " +
      fs::absolute("apps/weft").string() + " translate --max-length=5 --batch=3000 --model=model >out; wc -l <out";
  Write("out", "");
  EXPECT_EQ(RunCommand({"sh", "-c", script}, {.folder = folder_}).out, "65537\n");
  EXPECT_TRUE(Exists("answered"));
}

TEST_F(TranslateTest, PrintsAsManyAsWereAskedFor) {
  Write("lines.txt", "abc\n\nde\n");
  EXPECT_TRUE(Fails(Translate({"--beam=2", "--n-best=3"}), 2, "--n-best: 3 is more than the 2 of --beam"));
  const std::vector<std::string> lines =
      absl::StrSplit(Translated({"--n-best=3", "--beam=4", "--scores", "--max-length=6", "lines.txt"}), '\n');
  ASSERT_EQ(lines.size(), 3 * 3 + 1);
  double last = 0;
  for (size_t i = 0; i < 9; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(lines[i], '\t');
    ASSERT_EQ(parts.size(), 2) << lines[i];
    double log_probability = 1;
    ASSERT_TRUE(absl::SimpleAtod(parts[1], &log_probability)) << lines[i];
    EXPECT_LE(log_probability, 0);
    EXPECT_TRUE(i / 3 != 1 || parts[0].empty()) << "of the empty line";
    last = log_probability;
  }
  EXPECT_LT(last, 0);
  EXPECT_EQ(lines[3], "\t0.000000");
  const std::string one = Translated({"--beam=1", "lines.txt"});
  for (const char* threads : {"--threads=1", "--threads=2", "--threads=4"}) {
    EXPECT_EQ(Translated({"--beam=1", threads, "lines.txt"}), one);
  }
}

TEST_F(TranslateTest, LinesThatCannotBeTranslatedAreNamed) {
  Write("lines.txt", "abc\na\xFF\nabc\n");
  const CommandResult result = Translate({"--max-length=4", "lines.txt"});
  EXPECT_TRUE(Fails(result, 2, "lines.txt, line 2: not UTF-8 at byte 1 (0xFF)"));
  Write("first.txt", "abc\n");
  EXPECT_EQ(result.out, Translated({"--max-length=4", "first.txt"})) << "what comes before it is translated";
  Write("lines.txt", "a\n" + std::string(1025, 'a') + "\n");
  EXPECT_TRUE(Fails(Translate({"--max-length=4", "lines.txt"}), 2,
                    "lines.txt, line 2: it has 1025 tokens, but the model's context is 1024; truncate would"));
  EXPECT_TRUE(Works(Translate({"--max-length=4", "--beam=1", "--truncate", "lines.txt"})));
  EXPECT_TRUE(Fails(Translate({"--max-length=1025"}), 2, "max_length is 1025, but the model's context is 1024"));
}

TEST_F(TranslateTest, RefusesVocabulariesThatDoNotFit) {
  Write("model/target_vocabulary.txt", "<blank>\n<s>\n</s>\na\nb\nc\nd\ne\nf\n");
  EXPECT_TRUE(Fails(Translate({}), 2, "model, targets: the tokenizer has 10 tokens, but the model's table 9"));
  Write("model/target_vocabulary.txt", "<blank>\na\n");
  EXPECT_TRUE(Fails(Translate({}), 2, "model, targets: the tokenizer has 3 tokens, but the model's table 9"));
  Write("model/target_vocabulary.txt", "<blank>\na\nb\nc\nd\ne\n");
  EXPECT_TRUE(Fails(Translate({}), 2, "model: the target tokenizer has no begin or no end token"));
  fs::remove(Path("model/target_vocabulary.txt"));
  EXPECT_TRUE(Fails(Translate({}), 2, "model/target_vocabulary.txt: No such file"));
  fs::remove(Path("model/source_vocabulary.txt"));
  EXPECT_TRUE(Fails(Translate({}), 2, "model: the folder has none of tokenizer.json"));
}

TEST_F(TranslateTest, ItsConfigurationAndItsVocabularyAgree) {
  Write("lines.txt", "abc\n");
  const std::string wanted = Translated({"--beam=1", "lines.txt"});
  std::string config = Read("model/config.json");
  config.pop_back();
  Write("model/config.json", config + ",\"bos_id\":1,\"eos_id\":2}");
  EXPECT_EQ(Translated({"--beam=1", "lines.txt"}), wanted);
  Write("model/target_vocabulary.txt", "<blank>\n</s>\n<s>\na\nb\nc\nd\ne\n");
  EXPECT_TRUE(Fails(Translate({}), 2, "model/config.json: bos_id is 1, but target_vocabulary.txt has that token at 2"));
  Write("model/config.json", config + ",\"bos_id\":0,\"eos_id\":\"2\"}");
  Write("model/target_vocabulary.txt", "<s>\n<blank>\n</s>\na\nb\nc\nd\ne\n");
  EXPECT_TRUE(Fails(Translate({}), 2, "model/config.json: eos_id is \"2\", but target_vocabulary.txt has that token"));
  Write("model/config.json", config + ",\"bos_id\":0,\"eos_id\":2}");
  EXPECT_TRUE(Works(Translate({"lines.txt"})));
}

// In the training text, a becomes d and b becomes e, in any order.
TEST_F(TranslateTest, AShortlistComesFromALexicon) {
  Write("source.txt", "ab\nba\na\n\nb\n");
  Write("target.txt", "de\ned\nd\nc\ne\n");
  const Arguments learn = {"lexicon", "--model=model", "--source=source.txt", "--target=target.txt"};
  const CommandResult learnt = Weft(learn + Arguments{"--out=lexicon.txt"});
  ASSERT_TRUE(Works(learnt));
  EXPECT_EQ(learnt.out,
            "lexicon.txt: 6 translations, learnt from 4 pairs of sentences; "
            "1 pairs without tokens, or with more than 256, on a side were left out\n");
  EXPECT_EQ(Read("lexicon.txt").substr(0, 7), "d NULL ");
  EXPECT_TRUE(Fails(Weft(learn + Arguments{"--out=lexicon.txt"}), 2, "lexicon.txt exists, and is not replaced"));
  EXPECT_TRUE(Works(Weft(learn + Arguments{"--out=lexicon.txt", "--max-translations=1", "--overwrite"})));
  EXPECT_TRUE(Fails(Weft(learn), 2, "--out=FILE is missing"));
  EXPECT_TRUE(Fails(Weft(learn + Arguments{"--out=-"}), 2, "--out: '-' is standard output, wanted a file"));
  EXPECT_TRUE(Fails(Weft(learn + Arguments{"--out=x", "--target=model/source_vocabulary.txt"}), 2,
                    "source.txt has 5 lines, but model/source_vocabulary.txt has 8"));
  Write("empty.txt", "\n\n");
  EXPECT_TRUE(Fails(Weft({"lexicon", "--model=model", "--source=empty.txt", "--target=empty.txt", "--out=x"}), 2,
                    "none of the 2 pairs of lines has 1 .. 256 tokens on both sides"));
  EXPECT_FALSE(Exists("x"));

  Write("lines.txt", "abc\ncab\n");
  Write("of_c.txt", "c c 1\n");
  const std::string all = Translated({"--max-length=9", "lines.txt"});
  EXPECT_NE(all.find_first_not_of("c\n"), std::string::npos) << all;
  const std::string only = Translated({"--max-length=9", "--shortlist=of_c.txt", "lines.txt"});
  EXPECT_EQ(only.find_first_not_of("c\n"), std::string::npos) << only;
  EXPECT_EQ(Translated({"--shortlist=of_c.txt", "--scores", "--batch=1", "lines.txt"}),
            Translated({"--shortlist=of_c.txt", "--scores", "lines.txt"}));
  Write("lines.txt", "ab\nc\n");
  EXPECT_EQ(Translated({"--shortlist=of_c.txt", "lines.txt"})[0], '\n') << "no token of the first line is known";
  EXPECT_EQ(Translated({"--shortlist=lexicon.txt", "lines.txt"}).find_first_not_of("de\n"), std::string::npos);
  Write("of_f.txt", "f c 1\n");
  EXPECT_TRUE(Fails(Translate({"--shortlist=of_f.txt", "lines.txt"}), 2, "of_f.txt: none of its 1 lines has a token"));
  Write("half.txt", "c c 1\nc c\n");
  EXPECT_TRUE(Fails(Translate({"--shortlist=half.txt", "lines.txt"}), 2, "half.txt, line 2: wanted TARGET SOURCE"));
  EXPECT_TRUE(Fails(Translate({"--shortlist=missing.txt", "lines.txt"}), 2, "missing.txt"));
  EXPECT_TRUE(Fails(Translate({"--shortlist=-", "lines.txt"}), 2, "a lexicon cannot be read from standard input"));
  EXPECT_TRUE(Fails(Translate({"--shortlist-translations=3", "lines.txt"}), 2,
                    "--shortlist-translations: it needs --shortlist"));
  for (const char* out : {"source.txt", "target.txt", "model/config.json", "model"}) {
    const std::string error = std::string(out) + " is not replaced: it is one of the texts";
    EXPECT_TRUE(Fails(Weft(learn + Arguments{std::string("--out=") + out, "--overwrite"}), 2, error));
  }
}

TEST_F(TranslateTest, AModelWhoseProbabilitiesAreNotNumbersTranslatesNothing) {
  absl::StatusOr<Weights> weights = Weights::Read(Path("model/model.safetensors"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::vector<NamedTensor> tensors(weights->tensors().begin(), weights->tensors().end());
  std::vector<float> huge(8, 3e38f);  // finite, but multiplied by a normalised value it overflows
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with("layer_norm/gamma")) tensor.data = reinterpret_cast<std::byte*>(huge.data());
  }
  ASSERT_TRUE(WriteSafetensors(Path("model/model.safetensors"), tensors).ok());
  Write("lines.txt", "abc\n");
  const char* const wanted =
      "the model's results are not finite, because its weights are too large; the first NaN is from";
  for (const char* beam : {"--beam=1", "--beam=3"}) {
    const CommandResult result = Translate({beam, "lines.txt"});
    EXPECT_TRUE(Fails(result, 1, wanted));
    EXPECT_EQ(result.out, "");
    const Arguments evaluate = {"evaluate", "--model=model", "--source=lines.txt", "--references=lines.txt"};
    EXPECT_TRUE(Fails(Weft(evaluate + Arguments{beam}), 1, wanted));
  }
}

TEST_F(TranslateTest, WritesArabicNamesInLatinLetters) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string folder = absl::StrCat(data, "/aren-transliteration");
  const Json items = Json::parse(std::ifstream(folder + "/expected.json"))["items"];
  std::string names, greedy, best;
  for (const Json& item : items) {
    absl::StrAppend(&names, item["source"].get<std::string>(), "\n");
    absl::StrAppend(&greedy, item["greedy"].get<std::string>(), "\n");
    for (const Json& name : item["beam5"]) absl::StrAppend(&best, name.get<std::string>(), "\n");
  }
  Write("names.txt", names);
  const std::string model = absl::StrCat("--model=", folder);
  EXPECT_EQ(Weft({"translate", model, "--beam=1", "names.txt"}).out, greedy);
  EXPECT_EQ(Weft({"translate", model, "--beam=5", "--n-best=5", "names.txt"}).out, best);
  const CommandResult scored = Weft({"translate", model, "--beam=1", "--scores", "names.txt"});
  const std::vector<std::string> lines = absl::StrSplit(scored.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), items.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    double wanted = 0, got = 1;
    for (double log_probability : items[i]["greedy_logprobs_with_eos"]) wanted += log_probability;
    ASSERT_TRUE(absl::SimpleAtod(lines[i].substr(lines[i].find('\t') + 1), &got));
    EXPECT_NEAR(got, wanted, 1e-4);
  }
}

}  // namespace
}  // namespace weft
