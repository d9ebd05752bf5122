// `weft evaluate` of translations, as a user calls it: of a model's, and of finished ones.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "weft/tests/subprocess.h"
#include "weft/tests/weft_program.h"
#include "weft/text/measures/translation_measures.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class EvaluateTranslationsTest : public WeftProgramTest {
 protected:
  Json Evaluate(const Arguments& more) const {
    const CommandResult result = Weft(Arguments{"evaluate", "--json"} + more);
    EXPECT_TRUE(Works(result));
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }
};

TEST_F(EvaluateTranslationsTest, TranslationsGetTheirBleu) {
  WriteTransformer("model");
  Write("source.txt", "abc\nde\ncabbage\nbade\n");
  const CommandResult translated = Weft({"translate", "--model=model", "--beam=2", "source.txt"});
  ASSERT_TRUE(Works(translated));
  const std::vector<std::string> translations =
      absl::StrSplit(translated.out.substr(0, translated.out.size() - 1), '\n');
  std::vector<std::string> references = {"a b c d e f", "The Cat sat on the mat.", "d e", "one two three four five"};
  references[3] = translations[3] + " A b c d e";
  std::string lines;
  for (const std::string& line : references) absl::StrAppend(&lines, line, "\n");
  Write("references.txt", lines);
  Write("translations.txt", translated.out);
  for (const bool lowercase : {false, true}) {
    const absl::StatusOr<BleuScore> wanted = CorpusBleu(translations, references, lowercase);
    ASSERT_TRUE(wanted.ok());
    const Arguments more = {"--references=references.txt", absl::StrCat("--lowercase=", lowercase ? "true" : "false")};
    const Json figures = Evaluate(Arguments{"--model=model", "--beam=2", "--source=source.txt"} + more);
    EXPECT_EQ(figures["bleu"].get<double>(), wanted->score);
    EXPECT_EQ(figures["lines"], 4);
    EXPECT_EQ(figures["precisions"][0].get<double>(), wanted->precisions[0]);
    EXPECT_EQ(figures["signature"], BleuSignature(lowercase));
    EXPECT_EQ(Evaluate(Arguments{"--translations=translations.txt"} + more), figures);
    // A model as the baseline, and the same translations from a file.
    const Arguments model = Arguments{"--model=model", "--beam=2", "--source=source.txt"} + more;
    const Json compared = Evaluate(model + Arguments{"--baseline=model"});
    EXPECT_EQ(compared["comparison"]["chrf"]["p_value"], 1);
    EXPECT_EQ(Evaluate(model + Arguments{"--baseline=translations.txt"}), compared);
    EXPECT_EQ(compared["chrf"], figures["chrf"]);
    const CommandResult text = Weft(Arguments{"evaluate", "--translations=translations.txt"} + more);
    EXPECT_NE(("BLEU = " + text.out.substr(text.out.find("bleu ") + 15)).find(wanted->ToString() + "\n"),
              std::string::npos)
        << text.out;
  }
  Write("finished.txt", "the cat sat on the mat today\n");
  Write("wanted.txt", "the cat sat on the mat today\n");
  EXPECT_NEAR(Evaluate({"--translations=finished.txt", "--references=wanted.txt"})["bleu"].get<double>(), 100, 1e-9);
  EXPECT_TRUE(Fails(Weft({"evaluate", "--translations=finished.txt", "--references=references.txt"}), 2,
                    "finished.txt has 1 lines, but references.txt has 4"));
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=model", "--source=finished.txt", "--references=references.txt"}), 2,
                    "finished.txt has 1 lines, but references.txt has 4"));
}

TEST_F(EvaluateTranslationsTest, SearchIsThatOfTranslate) {
  WriteTransformer("model");
  Write("source.txt", "abc\nde</s>d\ncabbage\nbade\n");
  Write("references.txt", "a b c\nd e\nc a b b a g e\nb a d e\n");
  const Arguments model = {"--model=model", "--beam=3"};
  const Json without = Evaluate(model + Arguments{"--source=source.txt", "--references=references.txt"});
  for (const std::string flag : {"--max-length=2", "--end-token=4", "--special-tokens=false"}) {
    const CommandResult translated = Weft(Arguments{"translate"} + model + Arguments{flag, "source.txt"});
    ASSERT_TRUE(Works(translated)) << flag;
    Write("translations.txt", translated.out);
    const Json figures = Evaluate(model + Arguments{flag, "--source=source.txt", "--references=references.txt"});
    EXPECT_NE(figures, without) << flag;
    EXPECT_EQ(figures, Evaluate({"--translations=translations.txt", "--references=references.txt"})) << flag;
  }
  EXPECT_TRUE(
      Fails(Weft({"evaluate", "--translations=references.txt", "--references=references.txt", "--max-length=2"}), 2,
            "--max-length has no use in evaluating translations"));
}

// The expected numbers are sacreBLEU 2.6.0's, and the comparison's those of
// text/measures/paired_bootstrap_test.cc.
TEST_F(EvaluateTranslationsTest, FinishedTranslationsNeedNoModel) {
  const std::string reference =
      "the cat sat on the mat\na dog barks at the tall man\ntwo men are playing chess in a park\n"
      "a girl in a red coat runs\npeople walk down the street\nthe old house is on a hill\n"
      "a boy eats an apple under a tree\nthree birds fly over the lake\n";
  const std::string system =
      "the cat sat on a mat\na dog barks at a tall man\ntwo men play chess in the park\na girl in a red coat runs\n"
      "people walk on the street\nthe house is on the hill\na boy eats an apple under the tree\n"
      "three birds fly over a lake\n";
  Write("reference.txt", reference);
  Write("system.txt", system);
  Write("second.txt",
        "there is a cat on the mat\nthe dog barks at a man\ntwo men play chess\na girl in a coat\n"
        "people walk on the road\nan old house on a hill\n\nbirds fly over a lake\n");
  Write("baseline.txt",
        "a cat is on the mat\nthe dog barks at the man\ntwo men are playing chess\na girl with a coat runs\n"
        "people are walking down the street\nthe old house is on a hill\nthe boy eats apples by a tree\n"
        "three birds over the lake fly\n");
  const Json two = Evaluate({"--hypotheses=system.txt", "--references=reference.txt,second.txt"});
  EXPECT_NEAR(two["bleu"].get<double>(), 68.95310974091983, 1e-9);
  EXPECT_NEAR(two["chrf"].get<double>(), 78.17007685267163, 1e-9);
  EXPECT_NEAR(two["chrf_plus_plus"].get<double>(), 78.48084370181472, 1e-9);
  EXPECT_EQ(two["signature"], "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  EXPECT_EQ(two["chrf_plus_plus_signature"], "nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0");
  EXPECT_FALSE(two.contains("comparison"));

  const Arguments compare = {"--hypotheses=system.txt", "--references=reference.txt", "--baseline=baseline.txt"};
  const Json compared = Evaluate(compare), other = Evaluate(compare + Arguments{"--seed=2", "--resamples=200"});
  EXPECT_EQ(compared["comparison"]["resamples"], 1000);
  EXPECT_EQ(other["comparison"]["resamples"], 200);
  const Json& bleu = compared["comparison"]["bleu"];
  EXPECT_EQ(bleu["system"]["score"], compared["bleu"]);
  EXPECT_NEAR(bleu["system"]["score"].get<double>(), 51.558625839228775, 1e-9);
  EXPECT_NEAR(bleu["baseline"]["score"].get<double>(), 43.266714866494006, 1e-9);
  EXPECT_NEAR(bleu["difference"]["score"].get<double>(), 8.291910972734769, 1e-9);
  EXPECT_GT(bleu["p_value"].get<double>(), 0.1);
  EXPECT_NE(bleu["difference"]["mean"], other["comparison"]["bleu"]["difference"]["mean"]);
  EXPECT_EQ(compared, Evaluate(compare + Arguments{"--seed=1"}));
  const CommandResult text = Weft(Arguments{"evaluate"} + compare);
  ASSERT_TRUE(Works(text));
  EXPECT_NE(text.out.find("\nchrf++            70.30    66.85   +3.45 ["), std::string::npos) << text.out;

  const CommandResult piped = RunCommand({"sh", "-c",
                                          "\"$1\" evaluate --json --hypotheses=- --references=reference.txt,second.txt "
                                          "<system.txt",
                                          "sh", std::filesystem::absolute("apps/weft").string()},
                                         {.folder = folder_});
  ASSERT_TRUE(Works(piped));
  EXPECT_EQ(Json::parse(piped.out), two);
  const CommandResult listed =
      RunCommand({"sh", "-c", "\"$1\" evaluate --json --hypotheses=system.txt --references=-,second.txt <reference.txt",
                  "sh", std::filesystem::absolute("apps/weft").string()},
                 {.folder = folder_});
  ASSERT_TRUE(Works(listed));
  EXPECT_EQ(Json::parse(listed.out), two);
  EXPECT_TRUE(Fails(Weft({"evaluate", "--hypotheses=-", "--references=-"}), 2, "which can be read once only"));
  EXPECT_TRUE(
      Fails(Weft({"evaluate", "--hypotheses=system.txt", "--translations=other.txt", "--references=reference.txt"}), 2,
            "--hypotheses and --translations are the same flag with different values"));
  EXPECT_TRUE(Fails(Weft({"evaluate", "--hypotheses=system.txt", "--references=reference.txt", "--weights=q8_0"}), 2,
                    "--weights has no use"));
  EXPECT_TRUE(Fails(Weft({"evaluate", "--hypotheses=system.txt", "--references=reference.txt", "--seed=2"}), 2,
                    "--seed has no use without --baseline"));
  Write("short.txt", "one line\n");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--hypotheses=system.txt", "--references=reference.txt,short.txt"}), 2,
                    "system.txt has 8 lines, but short.txt has 1"));
  EXPECT_TRUE(Fails(Weft({"evaluate", "--hypotheses=system.txt", "--references=reference.txt", "--baseline=short.txt"}),
                    2, "system.txt has 8 lines, but short.txt has 1"));
}

}  // namespace
}  // namespace weft
