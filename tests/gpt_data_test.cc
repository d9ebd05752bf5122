// Tests the data of `weft train gpt`: tokenizers, several texts, validation files and epochs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class GptDataTest : public WeftProgramTest {
 protected:
  // 400 lines with 16 different characters.
  GptDataTest() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "abc abd " + std::to_string(i) + "\n";
    Write("numbers.txt", text);
  }
  CommandResult TrainOn(const std::string& data, const Arguments& more) const {
    return Weft(Arguments{"train", "gpt", "--data=" + data, "--eval-batches=2", "--sample-length=3"} + kTinyModel +
                more);
  }
};

TEST_F(GptDataTest, EachTokenizerResumesToTheSameBytes) {
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=1", "--tokenizer=bpe", "--vocabulary=300", "--out=other"})));
  const Arguments flags = {"--schedule=constant", "--eval-every=0", "--checkpoint-every=1"};
  const std::pair<std::string, std::string> cases[] = {{"characters", "characters (16 different)"},
                                                       {"bytes", "bytes (256 different)"},
                                                       {"bpe", " tokens ("},
                                                       {"other", " tokens ("},
                                                       {"other/tokenizer.json", " tokens ("}};
  for (const auto& [tokenizer, counts] : cases) {
    SCOPED_TRACE(tokenizer);
    const Arguments size = tokenizer == "bpe" ? Arguments{"--vocabulary=310"} : Arguments{};
    const Arguments with = flags + size + Arguments{"--tokenizer=" + tokenizer, "--overwrite"};
    const CommandResult whole = TrainOn("numbers.txt", with + Arguments{"--steps=5", "--out=whole"});
    EXPECT_TRUE(Works(whole));
    EXPECT_TRUE(Contains(whole.err, counts)) << whole.err;
    EXPECT_TRUE(Works(TrainOn("numbers.txt", with + Arguments{"--steps=2", "--out=stopped"})));
    EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=stopped", "--steps=5"})));
    EXPECT_EQ(Differences(Results("stopped"), Results("whole")), "");
    EXPECT_TRUE(Works(Weft({"generate", "--model=whole", "--prompt=abc", "--length=4"})));
    EXPECT_TRUE(Works(Weft({"evaluate", "--model=whole", "numbers.txt"})));
    EXPECT_TRUE(Works(Weft({"export", "--model=whole", "--out=exported", "--overwrite"})));
  }
}

// Without a tokenizer of its own, a fine-tuning takes the one of the model with which it begins.
TEST_F(GptDataTest, TheTokenizerIsThatOfInit) {
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=1", "--tokenizer=bpe", "--vocabulary=300", "--out=base"})));
  EXPECT_TRUE(Works(TrainOn("text.txt", {"--steps=1", "--init=base", "--out=tuned"})));
  EXPECT_EQ(Read("tuned/tokenizer.json"), Read("base/tokenizer.json"));
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=tuned", "--steps=3"})));
  EXPECT_EQ(Read("tuned/tokenizer.json"), Read("base/tokenizer.json"));
  EXPECT_TRUE(Fails(TrainOn("text.txt", {"--init=base", "--tokenizer=characters"}), 2,
                    "/base has ids of its own; leave --tokenizer out"));
}

// Ids of another text's characters would stand for other characters of the model.
TEST_F(GptDataTest, CharactersAreLearntForAModelOfTheSameCharactersOnly) {
  std::string text = Read("numbers.txt");
  std::replace(text.begin(), text.end(), 'd', 'x');  // as many characters
  Write("other.txt", text);
  const Arguments characters = {"--steps=1", "--tokenizer=characters", "--overwrite"};
  EXPECT_TRUE(Works(TrainOn("numbers.txt", characters + Arguments{"--out=base"})));
  EXPECT_TRUE(Fails(TrainOn("other.txt", characters + Arguments{"--init=base", "--out=tuned"}), 2,
                    "--tokenizer: characters learns new ids, but "));
  EXPECT_FALSE(Exists("tuned"));
  EXPECT_TRUE(Works(TrainOn("numbers.txt", characters + Arguments{"--init=base", "--out=tuned"})));
}

TEST_F(GptDataTest, ATokenizerThatIsMissingOrDoesNotFitIsAnError) {
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=1", "--out=base"})));
  EXPECT_TRUE(Works(Weft({"export", "--model=base", "--out=bare"})));
  ASSERT_EQ(std::remove(Path("bare/tokenizer.json").c_str()), 0);
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--init=bare"}), 2, "the folder has none of tokenizer.json, "));
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--init=bare"}), 2, "; give characters, bytes, bpe or the file of a"));
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--init=bare", "--tokenizer=characters", "--steps=1", "--out=again"})));
  EXPECT_TRUE(Fails(TrainOn("text.txt", {"--init=base"}), 2, "text.txt: "));  // characters that the tokenizer lacks
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--tokenizer=nowhere"}), 2,
                    "--tokenizer: 'nowhere' is neither characters nor bytes nor bpe nor a tokenizer: cannot find /"));
  for (const char* word : {"character", "Characters"}) {
    EXPECT_TRUE(Fails(TrainOn("numbers.txt", {std::string("--tokenizer=") + word}), 2, ", did you mean 'characters'?"));
  }
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--tokenizer=bpe", "--vocabulary=200"}), 2, "--vocabulary"));
  Write("empty.txt", "");
  EXPECT_TRUE(Fails(TrainOn("empty.txt", {"--tokenizer=bpe"}), 2, "empty.txt: the file is empty"));
}

TEST_F(GptDataTest, TextsAreReadInTheOrderOfTheListAndOfTheirNames) {
  const std::string text = Read("numbers.txt");
  const size_t cut = text.size() / 3;
  std::filesystem::create_directory(Path("texts"));
  Write("texts/b.txt", text.substr(cut, cut));
  Write("texts/c.txt", text.substr(2 * cut));
  Write("a.txt", text.substr(0, cut));
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=3", "--out=one"})));
  EXPECT_TRUE(Works(TrainOn("a.txt,texts", {"--steps=3", "--out=several"})));
  EXPECT_EQ(Differences(Results("one"), Results("several")), "");
  EXPECT_TRUE(Fails(TrainOn("a.txt,nowhere", {}), 2, "nowhere"));
}

TEST_F(GptDataTest, AValidationFileLeavesAllDataForTraining) {
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=1", "--out=run"})));
  EXPECT_EQ(Weft({"tokenize", "--tokenizer=run", "--out=tokens", "numbers.txt"}).exit_code, 0);
  const size_t size = Read("numbers.txt").size();
  Write("other.txt", "aaaabbbbccccddddaaaabbbb");
  for (const std::string data : {"numbers.txt", "tokens"}) {
    SCOPED_TRACE(data);
    const Arguments flags = {"--steps=2", "--eval-every=1", "--overwrite"};
    const CommandResult tenth = TrainOn(data, flags + Arguments{"--out=tenth"});
    const CommandResult other = TrainOn(data, flags + Arguments{"--out=other", "--validation=other.txt"});
    EXPECT_TRUE(Works(other));
    EXPECT_TRUE(Contains(tenth.err, " on " + std::to_string(size - (size + 9) / 10) + " ")) << tenth.err;
    EXPECT_TRUE(Contains(other.err, " on " + std::to_string(size) + " ")) << other.err;
    // The same tokens give the same loss, from a text and from token files.
    if (data == "tokens") {
      const CommandResult files = TrainOn(data, flags + Arguments{"--out=files", "--validation=tokens"});
      const CommandResult text = TrainOn(data, flags + Arguments{"--out=text", "--validation=numbers.txt"});
      EXPECT_EQ(Differences(Results("files"), Results("text")), "");
    } else {
      EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=other", "--steps=3"})));
      EXPECT_TRUE(Fails(Weft({"train", "gpt", "--resume", "--out=tenth", "--steps=3", "--validation=other.txt"}), 2,
                        "data: this run began with other data"));
    }
  }
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--validation=nowhere"}), 2, "validation: "));
  EXPECT_TRUE(Fails(TrainOn("numbers.txt", {"--tokenizer=bytes", "--validation=tokens"}), 2, "another tokenizer"));
  EXPECT_TRUE(Fails(TrainOn("tokens", {"--tokenizer=bytes"}), 2, "--tokenizer: the data is token files"));
  EXPECT_TRUE(Fails(TrainOn("tokens,numbers.txt", {}), 2, "one is a folder of token files and one is a text"));
}

// Every character of the text is a byte, so the loss of its characters in bits is that of its bytes.
TEST_F(GptDataTest, TheLossIsAlsoForAByteOfText) {
  EXPECT_TRUE(Works(TrainOn("numbers.txt", {"--steps=1", "--out=characters", "--ema=0.5"})));
  const std::string metrics = Read("characters/metrics.jsonl");
  for (const std::string prefix : {"", "ema_"}) {
    const std::regex pattern("\"" + prefix + "val_loss\":([0-9.]+).*\"" + prefix + "val_bits_per_byte\":([0-9.]+)");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(metrics, found, pattern)) << metrics;
    EXPECT_NEAR(std::stod(found[2]), std::stod(found[1]) / std::log(2.0), 1e-9);
  }
  // Of tokens of several bytes, the loss for a byte is lower than that for a token.
  const CommandResult bpe = TrainOn("numbers.txt", {"--steps=1", "--out=bpe", "--tokenizer=bpe"});
  std::smatch found;
  const std::regex pattern("validation loss ([0-9.]+) nats a token, ([0-9.]+) bits a byte");
  ASSERT_TRUE(std::regex_search(bpe.err, found, pattern)) << bpe.err;
  EXPECT_LT(std::stod(found[2]), std::stod(found[1]));
}

// A window has 8 tokens and a batch 2 windows, so an epoch of 360 tokens has 22 steps.
TEST_F(GptDataTest, EpochsAreNumbersOfRandomWindows) {
  Write("small.txt", Read("numbers.txt").substr(0, 400));
  const CommandResult result = TrainOn("small.txt", {"--epochs=3", "--out=run"});
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(Contains(result.err, "step 66/66  ")) << result.err;
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=run", "--epochs=4"})));
  EXPECT_TRUE(Contains(Read("run/metrics.jsonl"), "{\"step\":88,"));
  EXPECT_FALSE(Contains(Read("run/metrics.jsonl"), "{\"step\":89,"));
}

}  // namespace
}  // namespace weft
