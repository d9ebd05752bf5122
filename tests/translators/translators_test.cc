// Translates with tiny models of transformers and CTranslate2, and compares with what these libraries translate.
// translators/draw.py wrote the models and the right values with transformers 5.24 and CTranslate2 4.8.5.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "tests/translators/";
constexpr double kTolerance = 2e-3;  // sums of up to 15 log-probabilities of two libraries in f32

const Json& Data() {
  static const auto* const data = new Json(Json::parse(std::ifstream(absl::StrCat(kFolder, "translations.json"))));
  return *data;
}

class TranslatorsTest : public WeftProgramTest {
 protected:
  // Copies a model of translators/ into the test's folder, and changes keys of one of its files.
  void Copy(const std::string& name, const std::string& file, const Json& changes) {
    fs::remove_all(Path(name));
    fs::create_directories(Path(name));
    for (const auto& entry : fs::directory_iterator(kFolder + name)) {
      std::ifstream from(entry.path(), std::ios::binary);
      Write(absl::StrCat(name, "/", entry.path().filename().string()), {std::istreambuf_iterator<char>(from), {}});
    }
    if (changes.empty()) return;
    Json json = Json::parse(Read(absl::StrCat(name, "/", file)));
    for (const auto& [key, value] : changes.items()) {
      if (value.is_null()) json.erase(key);
      if (!value.is_null()) json[key] = value;
    }
    Write(absl::StrCat(name, "/", file), json.dump());
  }

  // Translates the lines of `test` with `model`, and compares texts and log-probabilities.
  void ExpectTranslations(const std::string& model, const Json& test) {
    Write("lines.txt",
          absl::StrJoin(test.value("lines", Data()["lines"]).get<std::vector<std::string>>(), "\n") + "\n");
    const auto flags = test["flags"].get<std::vector<std::string>>();
    const CommandResult result = Weft(Arguments{"translate", "--model=" + model, "--scores", "lines.txt"} + flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), test["texts"].size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::vector<std::string> parts = absl::StrSplit(lines[i], '\t');
      double log_probability = 1;
      ASSERT_TRUE(parts.size() == 2 && absl::SimpleAtod(parts[1], &log_probability)) << lines[i];
      EXPECT_EQ(parts[0], test["texts"][i].get<std::string>());
      EXPECT_NEAR(log_probability, test["log_probabilities"][i].get<double>(), kTolerance);
    }
  }
};

TEST_F(TranslatorsTest, TranslationsAreThoseOfTheLibrary) {
  for (const Json& test : Data()["cases"]) {
    SCOPED_TRACE(absl::StrCat(test["model"].dump(), " ", test["changes"].dump(), " ", test["flags"].dump()));
    const std::string model = test["model"];
    Copy(model, "generation_config.json", test["changes"]);
    ExpectTranslations(model, test);
  }
}

// The first case of each model holds after a conversion, too.
TEST_F(TranslatorsTest, ConversionsKeepSpecialTokensAndSettings) {
  std::vector<std::string> done;
  for (const Json& test : Data()["cases"]) {
    const std::string model = test["model"];
    if (std::find(done.begin(), done.end(), model) != done.end()) continue;
    done.push_back(model);
    Copy(model, "", {});
    for (const Arguments& conversion :
         {Arguments{"import", "--model=" + model, "--out=imported"},
          Arguments{"quantize", "--model=" + model, "--out=quantized", "--weights=f32"},
          Arguments{"export", "--model=" + model, "--out=exported", "--layout=ctranslate2"}}) {
      SCOPED_TRACE(absl::StrJoin(conversion, " "));
      const CommandResult result = Weft(conversion + Arguments{"--overwrite"});
      if (conversion[0] == "export" && (model == "bart" || model == "m2m_100" || model == "t5")) {
        EXPECT_TRUE(Fails(result, 2, "a configuration of CTranslate2's Transformer cannot say that"));
        continue;
      }
      EXPECT_TRUE(Works(result));
      // CTranslate2's files have no settings of the search.
      if (conversion[0] != "export") ExpectTranslations(conversion[2].substr(6), test);
    }
  }
}

// A training has the model's own begin tokens, input format and tokenizer of targets, and its run keeps them.
TEST_F(TranslatorsTest, TrainingBeginsWithTheLossOfTheLibrary) {
  for (const Json& test : Data()["trainings"]) {
    const std::string model = test["model"];
    SCOPED_TRACE(model);
    Copy(model, "", {});
    Write("source.txt", test["source"].get<std::string>() + "\n");
    Write("target.txt", test["target"].get<std::string>() + "\n");
    const Arguments train = {"train", "translate", "--out=run-" + model, "--threads=1"};
    ASSERT_TRUE(
        Works(Weft(train + Arguments{"--init=" + model, "--source=source.txt", "--target=target.txt", "--steps=1",
                                     "--learning-rate=0.01", "--warmup-steps=0", "--label-smoothing=0", "--dropout=0",
                                     "--attention-dropout=0", "--activation-dropout=0"})));
    const std::string metrics = Read("run-" + model + "/metrics.jsonl");
    EXPECT_NEAR(Json::parse(metrics.substr(0, metrics.find('\n')))["train_loss"].get<double>(),
                test["loss"].get<double>(), 1e-3);
    fs::remove_all(Path(model));
    ASSERT_TRUE(Works(Weft(train + Arguments{"--resume", "--steps=300"})));
    const CommandResult translated = Weft({"translate", "--model=run-" + model, "--max-length=40", "source.txt"});
    EXPECT_EQ(absl::StripAsciiWhitespace(translated.out), test["target"].get<std::string>()) << translated.err;
    EXPECT_TRUE(Works(Weft({"export", "--model=run-" + model, "--out=exported-" + model, "--layout=huggingface"})));
    EXPECT_EQ(Weft({"translate", "--model=exported-" + model, "--max-length=40", "source.txt"}).out, translated.out);
  }
}

TEST_F(TranslatorsTest, ATokenizerThatIsNotReadIsImported) {
  Copy("pegasus", "tokenizer.json", {{"model", {{"type", "Syllables"}, {"vocab", {{"a", 0}}}}}});
  EXPECT_TRUE(Works(Weft({"import", "--model=pegasus", "--out=imported"})));
  EXPECT_EQ(Json::parse(Read("imported/config.json"))["model_type"], "pegasus");
  Write("lines.txt", "runs\n");
  EXPECT_TRUE(Fails(Weft({"translate", "--model=imported", "lines.txt"}), 2, "its type is 'Syllables'"));
}

TEST_F(TranslatorsTest, KeysThatChangeTheModelAreRefused) {
  const auto refused = [&](const std::string& model, const Json& changes, const std::string& message) {
    Copy(model, "config.json", changes);
    EXPECT_TRUE(Fails(Weft({"translate", "--model=" + model, "lines.txt"}), 2, message)) << changes.dump();
  };
  Write("lines.txt", "runs\n");
  for (const std::string model : {"marian", "pegasus", "blenderbot"}) {
    const std::string usual = model == "blenderbot" ? "32" : "16", hidden = model == "blenderbot" ? "10240" : "4096";
    refused(model, {{"decoder_attention_heads", nullptr}},
            "decoder_attention_heads is null, which is not supported; wanted 2, as encoder_attention_heads; a missing "
            "key means " +
                usual);
    refused(model, {{"decoder_attention_heads", 4}}, "decoder_attention_heads is 4, which is not supported; wanted 2");
    refused(model, {{"decoder_ffn_dim", nullptr}}, "wanted 24, as encoder_ffn_dim; a missing key means " + hidden);
  }
  const std::string ctranslate2 = "ctranslate2_plain";
  refused(ctranslate2, {{"multi_query_attention", true}}, "multi_query_attention is true");
  refused(ctranslate2, {{"quantization_type", 1}}, "'quantization_type' is 1, but no key that is known here");
  refused(ctranslate2, {{"decoder_start_token", "<start>"}}, "decoder_start_token is '<start>', but the vocabulary");
  Copy("marian", "tokenizer_config.json", {{"separate_vocabs", true}});
  EXPECT_TRUE(Fails(Weft({"translate", "--model=marian", "lines.txt"}), 2, "separate_vocabs is true"));
  Write("marian/tokenizer_config.json", R"({"unk_token": null})");
  EXPECT_TRUE(Fails(Weft({"translate", "--model=marian", "lines.txt"}), 2, "unk_token is null, wanted <unk>"));
  Copy("marian", "generation_config.json", {{"no_repeat_ngram_size", 2}});
  const CommandResult result = Weft({"translate", "--model=marian", "lines.txt"});
  EXPECT_EQ(result.err, "note: generation_config.json: no_repeat_ngram_size is 2, which is not used\n");
}

TEST_F(TranslatorsTest, AServerNamesSettingsThatItDoesNotUse) {
  Copy("marian", "generation_config.json", {{"no_repeat_ngram_size", 2}});
  const CommandResult result =
      Weft({"serve", "--model=marian", "--port=0"}, {.signal_after = "(Ctrl-C ends it)", .signal = SIGTERM});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string note = "note: generation_config.json: no_repeat_ngram_size is 2, which is not used\n";
  EXPECT_EQ(result.err.substr(0, note.size()), note);
}

// `weft attention` reads a source and a translation with the tokens that `weft translate` has for them.
TEST_F(TranslatorsTest, AttentionReadsWhatATranslationReads) {
  using Texts = std::vector<std::string>;
  const auto tokens = [&](const Arguments& more) {
    const CommandResult result = Weft(Arguments{"attention", "--json"} + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    return std::pair(json["tokens"]["encoder"].get<Texts>(), json["tokens"]["decoder"].get<Texts>());
  };
  Copy("opus", "", {});
  Copy("m2m_100", "", {});
  // The pieces of German words are in target.spm. source.spm would cut these words into letters.
  const auto [source, target] = tokens({"--model=opus", "--translation=ein haus", "a dog"});
  EXPECT_EQ(source, (Texts{"a", "dog", "</s>"}));
  EXPECT_EQ(target, (Texts{"<pad>", "ein", "haus"}));
  // Each translation begins with its language: forced_bos_token_id.
  for (const Arguments& given : {Arguments{"--translation=the house"}, Arguments{}}) {
    const Texts read = tokens(Arguments{"--model=m2m_100"} + given + Arguments{"the house"}).second;
    ASSERT_GE(read.size(), 2);
    EXPECT_EQ(read[0], "</s>");
    EXPECT_EQ(read[1], "__de__");
  }
  // The language is not inserted before itself.
  const Texts written = tokens({"--model=m2m_100", "--translation=__de__ the house", "the house"}).second;
  EXPECT_EQ(written, tokens({"--model=m2m_100", "--translation=the house", "the house"}).second);
  // A source that is cut to the context of 40 tokens keeps the tokens around it.
  const std::string houses = absl::StrJoin(Texts(60, "house"), " ");
  for (const auto& [model, first] : {std::pair("opus", "house"), std::pair("m2m_100", "__en__")}) {
    const Texts cut = tokens({absl::StrCat("--model=", model), "--truncate", "--translation=a", houses}).first;
    ASSERT_EQ(cut.size(), 40) << model;
    EXPECT_EQ(cut.front(), first);
    EXPECT_EQ(cut.back(), "</s>");
  }
}

TEST_F(TranslatorsTest, TheEndTokenCanBeGiven) {
  Copy("ctranslate2_plain", "", {});
  Write("lines.txt", "s4 s5 s6\n");
  const Arguments translate = {"translate", "--model=ctranslate2_plain", "--beam=1", "--max-length=15", "lines.txt"};
  EXPECT_EQ(Weft(translate + Arguments{"--end-token=t18"}).out, "t15 t5\n");
  EXPECT_TRUE(Fails(Weft(translate + Arguments{"--end-token=x"}), 2,
                    "--end-token: 'x' is neither the text of a token nor a number"));
}

}  // namespace
}  // namespace weft
