// Commands follow the settings of generation in a model's files. The model is a random Llama that transformers made,
// with the end tokens 7 and 210 in its generation_config.json. The tokens are those of transformers 5.24, greedily.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int>;

const Arguments kGreedy = {"--prompt=Hello", "--temperature=0", "--length=10"};
const Tokens kEndless = {96, 203, 258, 210, 188, 148, 18, 202, 306, 358};

class GenerationSettingsTest : public WeftProgramTest {
 protected:
  // Copies the model, and replaces the contents of its files. Sets keys of config.json; null removes a key.
  void Prepare(const std::string& generation, const std::string& config, const std::string& tokenizer) const {
    fs::remove_all(Path("llama"));
    fs::create_directory(Path("llama"));
    for (const char* const name : {"model.safetensors", "tokenizer.json"}) {
      fs::copy(std::string("tests/faults/end_tokens_in_generation_config/") + name, Path("llama"));
    }
    std::ifstream file("tests/faults/end_tokens_in_generation_config/config.json");
    nlohmann::json keys = nlohmann::json::parse(file);
    keys.merge_patch(nlohmann::json::parse(config));
    Write("llama/config.json", keys.dump());
    if (!generation.empty()) Write("llama/generation_config.json", generation);
    if (!tokenizer.empty()) Write("llama/tokenizer_config.json", tokenizer);
  }
  CommandResult Generate(const Arguments& more) const {
    return Weft(Arguments{"generate", "--model=llama", "--json", "--logprobs=0"} + more);
  }
  // Returns the generated tokens. Expects `note` on stderr, and nothing if it is empty.
  static Tokens TokensOf(const CommandResult& result, const std::string& note = "") {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(note.empty() ? result.err.empty() : absl::StrContains(result.err, note)) << result.err;
    Tokens tokens;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& token : json["tokens"]) tokens.push_back(token["id"]);
    return tokens;
  }
};

TEST_F(GenerationSettingsTest, EndTokens) {
  const Tokens before_0 = {96, 203, 258, 210, 188, 148}, before_210 = {96, 203, 258}, before_258 = {96, 203},
               before_203 = {96};
  const struct {
    const char *generation, *config, *tokenizer;  // contents of the files; "": none
    Arguments flags;
    Tokens wanted;
    const char* note = "";
  } rows[] = {
      {R"({"eos_token_id": [7, 210]})", R"({"eos_token_id": 258})", "", {}, before_210},
      {R"({"eos_token_id": 203})", R"({"eos_token_id": 258})", "", {}, before_203},
      {"", R"({"eos_token_id": 258})", R"({"eos_token": "<x>"})", {}, before_258},
      {"", R"({"eos_token_id": [203, 258]})", "", {}, before_203},
      // If generation_config.json exists, it alone names end tokens.
      {"{}", R"({"eos_token_id": 258})", R"({"eos_token": "0"})", {}, kEndless},
      // config.json names none, so the tokenizer's files do.
      {"", R"({"eos_token_id": null})", R"({"eos_token": "0"})", {}, before_0},
      {"", R"({"eos_token_id": null})", R"({"eos_token": {"content": "0"}})", {}, before_0},
      {"", R"({"eos_token_id": null})", "", {}, kEndless},
      // A model never writes a token outside its vocabulary.
      {R"({"eos_token_id": 5000})", "{}", "", {}, kEndless, "eos_token_id is 5000, which is not used"},
      {R"({"eos_token_id": -1})", "{}", "", {}, kEndless, "eos_token_id is -1, which is not used"},
      {R"({"eos_token_id": 7})", "{}", "", {"--end-token=258"}, before_258},
      {R"({"eos_token_id": 203})", "{}", "", {"--end-token=</s>,258"}, before_258},
      {R"({"eos_token_id": 203})", "{}", "", {"--end-token="}, kEndless},
      {R"({"eos_token_id": 258})", "{}", "", {"--draft=3"}, before_258},
  };
  for (const auto& [generation, config, tokenizer, flags, wanted, note] : rows) {
    SCOPED_TRACE(std::string(generation) + config + tokenizer);
    Prepare(generation, config, tokenizer);
    EXPECT_EQ(TokensOf(Generate(kGreedy + flags), note), wanted);
  }
}

TEST_F(GenerationSettingsTest, DefaultsOfTheFilesAndOfFlags) {
  const Tokens two = {96, 203}, three = {96, 203, 258}, four = {96, 203, 258, 210},
               without_203 = {96, 11, 134, 401, 387, 206, 69, 401, 1, 292},
               without_258 = {96, 203, 218, 206, 335, 335, 24, 360, 291, 206};
  const Arguments hello = {"--prompt=Hello"}, ten = {"--prompt=Hello", "--length=10"};
  const struct {
    const char* generation;
    Arguments flags;
    Tokens wanted;
    const char* note;  // "": none
  } rows[] = {
      {R"({"do_sample": false})", ten, kEndless, ""},
      {R"({"do_sample": false, "repetition_penalty": 1.5})", ten, kEndless, ""},
      {R"({"do_sample": true, "temperature": 5, "top_k": 1})", ten, kEndless, ""},
      {R"({"top_p": 0.0001})", ten, kEndless, ""},
      {R"({"do_sample": false, "max_new_tokens": 3})", hello, three, ""},
      {R"({"do_sample": false, "max_length": 5})", hello, four, ""},
      {R"({"do_sample": false, "max_new_tokens": 3})", {"--prompt=Hello", "--length=2"}, two, ""},
      {R"({"do_sample": false, "suppress_tokens": [258]})", ten, without_258, ""},
      {R"({"do_sample": false, "bad_words_ids": [[203], [7]]})", ten, without_203, ""},
      {R"({"do_sample": false, "bad_words_ids": [[203, 258]]})", ten, kEndless,
       "generation_config.json: bad_words_ids is [[203,258]], which is not used\n"},
      {R"({"num_beams": 4})", kGreedy, kEndless, "generation_config.json: num_beams is 4, which is not used\n"},
      {R"({"do_sample": false, "num_beam_groups": 4, "of_the_future": "x"})", ten, kEndless,
       "num_beam_groups is 4, which is not used\nnote: generation_config.json: of_the_future is "},
      {R"({"do_sample": false, "num_beam_groups": 1, "min_length": 0, "use_cache": false, "guidance_scale": null})",
       ten, kEndless, ""},
  };
  for (const auto& [generation, flags, wanted, note] : rows) {
    SCOPED_TRACE(generation);
    Prepare(generation, R"({"eos_token_id": null})", "");
    const CommandResult result = Generate(flags + Arguments{"--end-token="});
    EXPECT_EQ(TokensOf(result, note), wanted);
  }
}

// transformers refuses such a prompt, too.
TEST_F(GenerationSettingsTest, APromptOfTheWholeLengthHasNoContinuation) {
  Prepare(R"({"max_length": 1})", R"({"eos_token_id": null})", "");
  EXPECT_TRUE(Fails(Generate({"--prompt=Hello"}), 2, "it has 1 tokens, but max_length is 1, prompt included"));
  EXPECT_TRUE(Works(Generate({"--prompt=Hello", "--length=2"})));
  Prepare(R"({"max_length": 3})", R"({"eos_token_id": null})", "");
  Write("lines.txt", "Hello\nHello Hello Hello\nHello\n");
  const CommandResult lines = Generate({"lines.txt"});
  EXPECT_TRUE(Fails(lines, 2, "lines.txt, line 2: it has "));
  EXPECT_TRUE(absl::StartsWith(lines.out, "{\"text\"")) << lines.out;  // the first line is answered
}

TEST_F(GenerationSettingsTest, SamplingHasTheDefaultsOfTransformers) {
  Prepare(R"({"do_sample": true})", R"({"eos_token_id": null})", "");
  const Arguments how = {"--prompt=Hello", "--length=10", "--seed=3"};
  const Tokens got = TokensOf(Generate(how));
  EXPECT_EQ(got, TokensOf(Generate(how + Arguments{"--temperature=1", "--top-k=50"})));
  EXPECT_NE(got, TokensOf(Generate(how + Arguments{"--temperature=0.8", "--top-k=0"})));
  fs::rename(Path("llama"), Path("llama.gguf"));  // a folder is no file of GGUF
  EXPECT_EQ(got, TokensOf(Weft(Arguments{"generate", "--model=llama.gguf", "--json", "--logprobs=0"} + how)));
}

TEST_F(GenerationSettingsTest, TheFilesMayAskForABeamSearch) {
  Prepare(R"({"num_beams": 4, "length_penalty": 2, "early_stopping": true})", R"({"eos_token_id": null})", "");
  const Arguments how = {"generate", "--model=llama", "--prompt=Hello", "--length=6"};
  const CommandResult result = Weft(how);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, Weft(how + Arguments{"--beam=4", "--length-penalty=2"}).out);
  EXPECT_NE(result.out, Weft(how + Arguments{"--beam=0", "--temperature=0"}).out);
  const Arguments samples = {"--presence-penalty=0", "--temperature=0"};
  EXPECT_EQ(Weft(how + samples).out, Weft(how + Arguments{"--beam=0", "--temperature=0"}).out);
}

// A beam search has no penalty of repetitions, and follows early_stopping.
TEST_F(GenerationSettingsTest, ABeamSearchNamesSettingsThatItDoesNotUse) {
  Prepare(R"({"num_beams": 4, "early_stopping": "never", "repetition_penalty": 1.5})", R"({"eos_token_id": null})", "");
  const CommandResult result = Weft({"generate", "--model=llama", "--prompt=Hello", "--length=6"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "note: generation_config.json: repetition_penalty is 1.5, which is not used\n");
}

TEST_F(GenerationSettingsTest, WrongSettingsAreNamedWithTheirFile) {
  const struct {
    const char *generation, *config, *error;
  } rows[] = {
      {R"({"eos_token_id": "7"})", "{}", "generation_config.json: eos_token_id is \"7\""},
      {R"({"eos_token_id": [7, true]})", "{}", "generation_config.json: eos_token_id is [7,true]"},
      {"", R"({"eos_token_id": 1.5})", "config.json: eos_token_id is 1.5"},
      {R"({"temperature": "hot"})", "{}", "generation_config.json: temperature is \"hot\""},
      {R"({"top_p": 1.5})", "{}", "llama, settings of generation: top-p: 1.5 is not a number in [0, 1]"},
      {R"({"max_length": 2.5})", "{}", "generation_config.json: max_length is 2.5"},
      {R"([1])", "{}", "generation_config.json"},
  };
  for (const auto& [generation, config, error] : rows) {
    Prepare(generation, config, "");
    EXPECT_TRUE(Fails(Generate(kGreedy), 2, error));
  }
  Prepare("{}", "{}", "");
  EXPECT_TRUE(Fails(Generate({"--end-token=nosuch"}), 2, "--end-token: 'nosuch' is neither the text of a token nor"));
}

// The texts of special tokens in a prompt are these tokens, as in transformers, unless the user wants plain text.
TEST_F(GenerationSettingsTest, SpecialTokensInPromptsAndStops) {
  Prepare("{}", R"({"eos_token_id": null})", "");
  const Arguments how = {"--prompt=<s>Hello", "--temperature=0", "--length=10"};
  EXPECT_EQ(TokensOf(Generate(how)), (Tokens{74, 387, 206, 112, 216, 143, 292, 260, 320, 258}));
  EXPECT_EQ(TokensOf(Generate(how + Arguments{"--special-tokens=false"})),
            (Tokens{244, 119, 268, 166, 75, 9, 279, 210, 321, 285}));
}

// transformers would go on with positions that the model has not learned.
TEST_F(GenerationSettingsTest, ATextOfAPublishedModelEndsAtItsContext) {
  Prepare("{}", R"({"eos_token_id": null})", "");
  const Arguments how = {"--prompt=Hello", "--temperature=0", "--length=70", "--end-token="};
  const CommandResult result = Generate(how);
  EXPECT_EQ(TokensOf(result, "1 text ended, because it filled the model's context of 64 tokens").size(), 64);
  const CommandResult slides = Generate(how + Arguments{"--slide"});
  EXPECT_EQ(TokensOf(slides).size(), 70);
}

// A converted model keeps the settings, also those that config.json has.
TEST_F(GenerationSettingsTest, ConversionsKeepTheSettings) {
  Prepare("", R"({"eos_token_id": [203, 258]})", "");
  ASSERT_TRUE(Works(Weft({"quantize", "--model=llama", "--out=q", "--weights=f32"})));
  EXPECT_EQ(TokensOf(Weft(Arguments{"generate", "--model=q", "--json", "--logprobs=0"} + kGreedy)), Tokens{96});
  ASSERT_TRUE(Works(Weft({"export", "--model=llama", "--out=again"})));
  EXPECT_EQ(TokensOf(Weft(Arguments{"generate", "--model=again", "--json", "--logprobs=0"} + kGreedy)), Tokens{96});
  // llama2.c has one file, and the tokenizer is beside it in any kind of file.
  Prepare("", R"({"rms_norm_eps": 1e-5})", "");
  ASSERT_TRUE(Works(Weft({"export", "--model=llama", "--out=c", "--layout=llama2.c"})));
  EXPECT_TRUE(Works(Weft({"generate", "--model=c/model.bin", "--length=3"})));
}

TEST_F(GenerationSettingsTest, ARunAndItsExportKeepThem) {
  Prepare(R"({"eos_token_id": [7, 210]})", "{}", "");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "Hello world. ";
  Write("text.txt", text);
  ASSERT_TRUE(Works(Weft({"train", "gpt", "--init=llama", "--data=text.txt", "--out=run", "--steps=1",
                          "--learning-rate=1e-12", "--min-learning-rate=0", "--warmup-steps=0", "--batch=1",
                          "--context=32", "--sample-length=1", "--eval-batches=1"})));
  ASSERT_TRUE(Works(Weft({"export", "--model=run", "--out=export"})));
  for (const char* const model : {"run", "export"}) {
    const CommandResult result =
        Weft(Arguments{"generate", "--json", "--logprobs=0", std::string("--model=") + model} + kGreedy);
    EXPECT_EQ(TokensOf(result), (Tokens{96, 203, 258})) << model;
  }
}

}  // namespace
}  // namespace weft
