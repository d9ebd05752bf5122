// Tests that each training of docs/results.md gives the same bits on 1, 2 and 4 threads. The data is in the folders
// that WEFT_DATA and WEFT_MINILM name; without it a test skips. A training has 2 steps, or WEFT_STEPS, and its schedule
// shrinks to them.
#include <cstdlib>
#include <string>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

struct DataCase {
  std::string name;
  Arguments flags;  // "DATA/" and "MINILM" stand for the folders
};

const DataCase kCases[] = {
    {"Multi30k",
     {"train", "translate", "--source=DATA/multi30k/train.de.gz", "--target=DATA/multi30k/train.en.gz",
      "--validation-source=DATA/multi30k/val.de.gz", "--validation-target=DATA/multi30k/val.en.gz"}},
    {"WikiText2", {"train", "bert", "--data=DATA/wikitext-2/train.txt.gz", "--validation=DATA/wikitext-2/valid.txt"}},
    {"Sst2", {"train", "classify", "--data=DATA/sst2/train.tsv", "--validation=DATA/sst2/dev.tsv"}},
    {"Digits", {"train", "vit", "--data=DATA/digits/digits.csv.gz"}},
    {"MiniLmOnSst2",
     {"train", "classify", "--data=DATA/sst2/train.tsv", "--validation=DATA/sst2/dev.tsv", "--init=MINILM",
      "--epochs=2", "--learning-rate=5e-5", "--warmup-steps=40"}},
};

class DataTrainingTest : public WeftProgramTest, public testing::WithParamInterface<DataCase> {
 protected:
  // Returns the flags with the folders' names in them; empty if a folder is not known.
  static Arguments Flags() {
    Arguments flags = GetParam().flags;
    for (std::string& flag : flags) {
      for (const auto& [word, variable] : {std::pair{"DATA", "WEFT_DATA"}, std::pair{"MINILM", "WEFT_MINILM"}}) {
        const size_t at = flag.find(std::string("=") + word);
        if (at == std::string::npos) continue;
        const char* const folder = std::getenv(variable);
        if (folder == nullptr || *folder == '\0') return {};
        flag.replace(at + 1, std::string(word).size(), folder);
      }
    }
    return flags;
  }
};

INSTANTIATE_TEST_SUITE_P(Data, DataTrainingTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(DataTrainingTest, TheNumberOfThreadsDoesNotChangeABit) {
  const Arguments flags = Flags();
  if (flags.empty()) GTEST_SKIP() << "WEFT_DATA, or WEFT_MINILM, names no folder";
  const char* const given = std::getenv("WEFT_STEPS");
  const std::string steps = given == nullptr ? "2" : given;
  for (const char* threads : {"1", "2", "4"}) {
    ASSERT_TRUE(Works(Weft(flags + Arguments{"--steps=" + steps, "--warmup-steps=" + steps, "--eval-every=0",
                                             std::string("--threads=") + threads, std::string("--out=") + threads})));
  }
  const Files results = Results("1");
  EXPECT_EQ(Differences(results, Results("2")), "");
  EXPECT_EQ(Differences(results, Results("4")), "");
}

}  // namespace
}  // namespace weft
