// Trains models with --norm=batch-norm. Their running statistics are saved with the weights, so that every command that
// uses a run computes what its evaluations computed.
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weft/core/safetensors.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;

const Arguments kBatchNorm = {"--norm=batch-norm"};

class BatchNormTrainingTest : public WeftProgramTest {
 protected:
  BatchNormTrainingTest() { WriteTrainingData(); }

  double Evaluated(const Arguments& more) const {
    const CommandResult result = Weft(Arguments{"evaluate", "--json"} + more);
    EXPECT_TRUE(Works(result));
    return result.exit_code == 0 ? Json::parse(result.out)["loss"].get<double>() : 0;
  }
  double LastMetric(const std::string& run, const char* name) const {
    const std::vector<std::string> lines = absl::StrSplit(Read(run + "/metrics.jsonl"), '\n', absl::SkipEmpty());
    return Json::parse(lines.back())[name].get<double>();
  }
};

TEST_F(BatchNormTrainingTest, ARunIsEvaluatedAsInTraining) {
  const Arguments more = {"--validation=labelled.tsv", "--steps=20", "--eval-every=20", "--ema=0.9", "--out=run"};
  ASSERT_TRUE(Works(Weft(SmallTraining("classify") + kBatchNorm + more)));
  EXPECT_NEAR(Evaluated({"--model=run", "labelled.tsv"}), LastMetric("run", "val_loss"), 2e-5);
  EXPECT_NEAR(Evaluated({"--model=run@ema", "labelled.tsv"}), LastMetric("run", "ema_val_loss"), 2e-5);
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Path("run/model.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  int statistics = 0;
  for (const NamedTensor& tensor : file->tensors()) statistics += absl::StrContains(tensor.name, ".running_");
  EXPECT_EQ(statistics, 2 * 3);
}

TEST_F(BatchNormTrainingTest, GeneratesAndTranslates) {
  MakeRun("g", kBatchNorm);
  EXPECT_TRUE(Works(Weft({"generate", "--model=g", "--length=5", "--prompt=a"})));
  ASSERT_TRUE(Works(Weft(SmallTraining("translate") + kBatchNorm + Arguments{"--steps=10", "--out=t"})));
  EXPECT_TRUE(Works(Weft({"translate", "--model=t", "--beam=2", "a.txt"})));
}

TEST_F(BatchNormTrainingTest, SaysWhatItExcludes) {
  EXPECT_TRUE(Fails(Train(kBatchNorm + Arguments{"--out=m", "--micro-batches=2"}), 2, "--micro-batches is 2, but"));
  EXPECT_TRUE(
      Fails(Train(kBatchNorm + Arguments{"--out=l", "--lora-rank=2"}), 2, "adapters are saved without statistics"));
  MakeRun("run", kBatchNorm);
  EXPECT_TRUE(Fails(Weft({"export", "--model=run", "--out=out", "--layout=huggingface"}), 2,
                    "gpt2 cannot say that norms are BatchNorm"));
}

}  // namespace
}  // namespace weft
