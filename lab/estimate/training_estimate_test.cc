// Plans random trainings of all kinds, and compares the plans with what the trainings then allocate.
#include "weft/lab/estimate/training_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/loop/options.h"
#include "weft/train/loop/trainer.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::string Path(const std::string& name) { return absl::StrCat(testing::TempDir(), "/training_plan_", name); }

// Writes small data for all kinds of training: 40 sentences of 1 to 9 words, their labels, and pictures.
void WriteData() {
  std::string text, labelled, pictures;
  for (int i = 0; i < 40; ++i) {
    std::string words(1, static_cast<char>('a' + i % 7));
    for (int j = 0; j < i % 9; ++j) absl::StrAppend(&words, " ", std::string(1, static_cast<char>('k' + i % 5)));
    absl::StrAppend(&text, words, "\n");
    absl::StrAppend(&labelled, words, "\t", i % 2, "\n");
    for (int pixel = 0; pixel < 16; ++pixel) absl::StrAppend(&pictures, 1 + i * pixel % 9, ",");
    absl::StrAppend(&pictures, i % 2, "\n");
  }
  for (const auto& [name, contents] : {std::pair{"text", text}, {"labelled", labelled}, {"pictures", pictures}}) {
    ASSERT_TRUE(WriteFile(Path(name), {contents}).ok());
  }
}

OptionTexts DataOf(const std::string& kind) {
  if (kind == "translate") return {{"source", Path("text")}, {"target", Path("text")}, {"vocabulary", "300"}};
  if (kind == "classify") return {{"data", Path("labelled")}, {"vocabulary", "300"}};
  if (kind == "vit") return {{"data", Path("pictures")}, {"patch-size", "2"}};
  if (kind == "bert") return {{"data", Path("text")}, {"vocabulary", "300"}, {"context", "16"}, {"eval-batches", "3"}};
  return {{"data", Path("text")}, {"context", "16"}, {"eval-batches", "3"}};
}

absl::StatusOr<std::unique_ptr<TrainingJob>> MakeWith(const std::string& kind, const OptionTexts& options) {
  std::unique_ptr<TrainingJob> job = MakeJob(kind);
  for (const Hyperparameter& row : job->Table()) {
    const auto found = options.find(row.flag);
    if (found == options.end()) continue;
    if (const absl::Status status = SetFromText(found->second, row); !status.ok()) return status;
  }
  if (const absl::Status status = job->Check(nullptr); !status.ok()) return status;
  return job;
}

// Returns the bytes that an arena allocates for the selected parameters.
uint64_t BytesOf(const Parameters& parameters, Parameters::Selection selection) {
  uint64_t bytes = 0;
  for (const std::string& name : parameters.Names(selection)) bytes += AlignUp(parameters.Find(name)->type.bytes());
  return bytes;
}

TEST(TrainingPlanTest, TwentyRandomTrainingsAllocateWhatIsPlanned) {
  WriteData();
  std::mt19937 random(22);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  for (int i = 0; i < 20; ++i) {
    const std::string kind = JobNames()[static_cast<size_t>(i) % JobNames().size()];
    OptionTexts options = DataOf(kind);
    options.insert({{"width", pick({"16", "32", "48"})},
                    {"heads", "2"},
                    {"layers", pick({"1", "2"})},
                    {"encoder-layers", "1"},
                    {"decoder-layers", pick({"1", "2"})},
                    {"batch", pick({"4", "6", "9"})},
                    {"micro-batches", pick({"1", "1", "2", "4"})},
                    {"optimizer", pick({"adamw", "sgd", "lion", "adafactor"})},
                    {"precision", pick({"f32", "bf16"})},
                    {"ema", pick({"0", "0.9"})},
                    {"lora-rank", pick({"0", "0", "2"})},
                    {"skip-deviations", pick({"0", "3"})},
                    {"steps", "7"}});
    std::string name = kind;
    for (const auto& [flag, text] : options) absl::StrAppend(&name, " --", flag, "=", text);
    SCOPED_TRACE(name);

    absl::StatusOr<std::unique_ptr<TrainingJob>> planned = MakeWith(kind, options);
    ASSERT_TRUE(planned.ok()) << planned.status();
    Parameters none({.seed = 1});
    ASSERT_TRUE((*planned)->Prepare(&none).ok());
    const absl::StatusOr<TrainingPlan> plan = PlanTraining(planned->get());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(none.Names().empty()) << "a plan allocates no parameters";

    absl::StatusOr<std::unique_ptr<TrainingJob>> job = MakeWith(kind, options);
    ASSERT_TRUE(job.ok()) << job.status();
    Parameters parameters({.seed = 1});
    ASSERT_TRUE((*job)->Prepare(&parameters).ok());
    const TrainerOptions trainer = ToTrainerOptions((*job)->training(), (*job)->batches_per_epoch());
    const auto allocated = TrainingStep::Plan((*job)->programs(), trainer.optimizer, trainer);
    ASSERT_TRUE(allocated.ok()) << allocated.status();
    ASSERT_TRUE((*allocated)->Allocate(&parameters).ok());
    EXPECT_EQ(plan->memory.planned, (*allocated)->planned_bytes());
    EXPECT_EQ(plan->memory.weights, BytesOf(parameters, Parameters::kWeights));
    EXPECT_EQ(plan->memory.weights + plan->memory.state, BytesOf(parameters, Parameters::kAll));
    EXPECT_GE(plan->memory.resident(), plan->memory.allocated());

    // The programs are counted as the training then uses them.
    ProgramCounts counts = {.training = std::vector<int64_t>((*job)->programs().size()),
                            .evaluation = std::vector<int64_t>((*job)->programs().size())};
    const int64_t count = trainer.micro_batches;
    for (int64_t index = 0; index < trainer.steps * count; ++index) {
      const absl::StatusOr<TrainingBatch> batch = (*job)->Train(index / count, {index % count, count});
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (batch->targets > 0) ++counts.training[batch->program];
    }
    EXPECT_EQ(plan->counts.training, counts.training);
    for (int64_t index = 0; index < (*job)->validation_batches(); ++index) {
      const absl::StatusOr<TrainingBatch> batch = (*job)->Validate(0, index);
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (batch->targets > 0) ++counts.evaluation[batch->program];
    }
    EXPECT_EQ(plan->counts.evaluation, counts.evaluation);
  }
}

TEST(TrainingPlanTest, EvaluationsAreCounted) {
  const auto count = [](int64_t steps, int64_t every, double ema) {
    TrainerOptions options = {.steps = steps, .eval_every = every};
    options.ema = ema;
    return CountEvaluations(options, 3);
  };
  EXPECT_EQ(count(100, 0, 0), 0);
  EXPECT_EQ(count(100, 50, 0), 3);  // after steps 0, 50, 100
  EXPECT_EQ(count(101, 50, 0), 4);
  EXPECT_EQ(count(100, 50, 0.9), 5);  // after step 0 there are no averages
  EXPECT_EQ(CountEvaluations({.steps = 100, .eval_every = 50}, 0), 0);
}

TEST(TrainingEstimateTest, ASmallerBatchIsMeasuredIfAStepTakesLongOrMuchMemory) {
  WriteData();
  OptionTexts options = DataOf("gpt");
  options.insert({{"width", "64"}, {"heads", "2"}, {"layers", "2"}, {"batch", "64"}, {"steps", "100"}});
  std::vector<std::string> batches;
  const auto make = [&](const OptionTexts& changes) {
    OptionTexts all = changes;
    all.insert(options.begin(), options.end());
    batches.push_back(all.at("batch"));
    return MakeWith("gpt", all);
  };
  const auto estimate = [&](const EstimateOptions& how) {
    batches.clear();
    return EstimateTraining(make, how);
  };
  const absl::StatusOr<TrainingEstimate> model = estimate({.seconds = 0});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->speed.steps, 0);
  EXPECT_GT(model->time.step_seconds, 0);
  EXPECT_EQ(model->time.evaluations, 2);
  EXPECT_DOUBLE_EQ(model->time.tokens_per_second * model->time.step_seconds, 64 * 16);
  const absl::StatusOr<TrainingEstimate> whole = estimate({.seconds = 0.2});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->measured_batch, 64);
  EXPECT_GE(whole->speed.steps, 1);
  EXPECT_EQ(whole->memory.planned, model->memory.planned);
  const absl::StatusOr<TrainingEstimate> brief = estimate({.seconds = 1e-4});
  ASSERT_TRUE(brief.ok()) << brief.status();
  EXPECT_LT(brief->measured_batch, 64);
  EXPECT_GE(brief->speed.steps, 1);
  EXPECT_EQ(brief->memory.planned, model->memory.planned);
  EXPECT_THAT(batches, ElementsAre("64", absl::StrCat(brief->measured_batch)));
  const absl::StatusOr<TrainingEstimate> small =
      estimate({.seconds = 0.2, .available = model->memory.allocated() * 3 / 4});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_LT(small->measured_batch, 64);
  const absl::StatusOr<TrainingEstimate> none = estimate({.seconds = 0.2, .available = 1});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->speed.steps, 0) << "nothing fits, so nothing is measured";
}

TEST(FindSmallerTrainingsTest, ChangesThatFit) {
  WriteData();
  OptionTexts options = DataOf("gpt");
  options.insert({{"width", "64"}, {"heads", "2"}, {"layers", "2"}, {"batch", "64"}});
  const auto make = [&](const OptionTexts& changes) {
    OptionTexts all = changes;
    all.insert(options.begin(), options.end());
    return MakeWith("gpt", all);
  };
  const auto bytes = [&](const OptionTexts& changes) {
    absl::StatusOr<std::unique_ptr<TrainingJob>> job = make(changes);
    Parameters none;
    EXPECT_TRUE((*job)->Prepare(&none).ok());
    return PlanTraining(job->get())->step->allocated_bytes();
  };
  const uint64_t whole = bytes({}), half = bytes({{"batch", "32"}}), quarter = bytes({{"batch", "16"}});
  ASSERT_LT(quarter, half);
  const std::vector<SmallerTraining> found = FindSmallerTrainings(make, half - 1);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].flag, "batch");
  EXPECT_EQ(found[0].text, "16") << "32 is too large";
  EXPECT_EQ(found[0].bytes, quarter);
  for (const SmallerTraining& each : found) {
    EXPECT_LT(each.bytes, half);
    EXPECT_EQ(each.bytes, bytes({{each.flag, each.text}}));
  }
  EXPECT_TRUE(FindSmallerTrainings(make, 1).empty());
  EXPECT_EQ(ListTrainings({}), "");
  EXPECT_EQ(ListTrainings({{"batch", "16", 1'500'000}, {"precision", "bf16", 2'000'000}}),
            "; these would fit: --batch=16 (1.5 MB), --precision=bf16 (2.0 MB)");

  // A trainer refuses what does not fit, and allocates nothing.
  absl::StatusOr<std::unique_ptr<TrainingJob>> job = make({});
  Parameters parameters;
  ASSERT_TRUE((*job)->Prepare(&parameters).ok());
  TrainerOptions trainer = ToTrainerOptions((*job)->training(), 0);
  trainer.memory_limit = whole - 1;
  const auto refused = Trainer::Create(trainer, job->get(), &parameters, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("MB are available"));
  EXPECT_TRUE(parameters.Names().empty());
}

}  // namespace
}  // namespace weft
