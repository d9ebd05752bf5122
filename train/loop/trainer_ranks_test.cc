// Tests Trainers on several ranks, which are threads here: the files of a run must not depend on the number of ranks.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/distributed/in_process.h"
#include "weft/ops/ops.h"
#include "weft/train/loop/trainer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A logistic regression on inputs that differ from one micro-batch to the next. The loss is the mean of two rows.
// `width`: if above 0, there are two hidden layers with matrices of this width.
class Learner final : public TrainingTask {
 public:
  explicit Learner(int64_t width) {
    x_ = tape_.Input("x", {kF32, {2, 3}});
    Var hidden = x_;
    for (int layer = 0; layer < 2 && width > 0; ++layer) {
      if (layer == 0) hidden = MatMul(hidden, tape_.Parameter("in", {kF32, {3, width}}, Gaussian(0.5)));
      const std::string name = absl::StrCat("hidden.", layer);
      hidden = Tanh(MatMul(hidden, tape_.Parameter(name, {kF32, {width, width}}, Gaussian(0.05))));
    }
    const Var w = tape_.Parameter("w", {kF32, {hidden.dim(1)}}, Constant(0.1));
    const Var margins = Sum(hidden * w, {-1});  // [2]
    program_ = {.tape = &tape_, .loss = Mean(Log(Exp(-margins) + 1.0f))};
    program_.correct = Sum(Cast(Greater(margins, margins * 0.5f), kF32));
  }
  absl::Span<const TrainingProgram> programs() const override { return {&program_, 1}; }
  std::string data() const override { return data_name; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override {
    if (training) WEFT_RETURN_IF_ERROR(training(step, micro_batch));
    return Batch(100 * step + micro_batch.index);
  }
  int64_t validation_batches() const override { return 7; }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override {
    measured.push_back(index);
    if (validating) WEFT_RETURN_IF_ERROR(validating(step, index));
    return Batch(-1 - index);
  }

  std::string data_name = "points";
  std::function<absl::Status(int64_t step, MicroBatch)> training;
  std::function<absl::Status(int64_t step, int64_t index)> validating;
  std::vector<int64_t> measured;  // validation batches, by the order of calls

 private:
  TrainingBatch Batch(int64_t number) {
    for (int i = 0; i < 6; ++i) values_[i] = static_cast<float>(std::sin(static_cast<double>(7 * number + i)) + 0.2);
    return {.feeds = {{x_, absl::MakeConstSpan(values_)}}, .tokens = 2, .targets = 2};
  }

  Tape tape_;
  Var x_;
  TrainingProgram program_;
  std::vector<float> values_ = std::vector<float>(6);
};

class TrainerRanksTest : public testing::Test {
 protected:
  TrainerRanksTest() {
    options_ = {.steps = 12, .optimizer = AdamW({}), .eval_every = 4, .checkpoint_every = 4, .save_best = true};
    options_.micro_batches = 5;
    options_.threads = 1;
    options_.ema = 0.5;
    options_.learning_rate = [](int64_t /*step*/) { return 0.1; };
  }

  static std::string Folder(const std::string& name) { return testing::TempDir() + "trainer_ranks_test_" + name; }

  // Trains the run `name` on `size` ranks, or resumes it. `change` may change the task and the weights of a rank.
  // Returns the status of each rank.
  std::vector<absl::Status> Train(const std::string& name, int size, bool resume = false,
                                  const std::function<void(int rank, Learner*, Parameters*)>& change = {}) {
    if (!resume) fs::remove_all(Folder(name));
    std::vector<absl::Status> statuses(size);
    RunRanks(size, [&](Transport* transport) {
      const Ranks ranks = size == 1 ? Ranks() : Ranks(transport);
      statuses[ranks.rank()] = TrainRank(ranks, name, resume, change);
    });
    return statuses;
  }

  absl::Status TrainRank(const Ranks& ranks, const std::string& name, bool resume,
                         const std::function<void(int rank, Learner*, Parameters*)>& change) {
    WEFT_ASSIGN_OR_RETURN(
        RunDirectory run,
        RunDirectory::Find(
            {.name = "test", .out = ranks.first() ? Folder(name) : "", .resume = resume, .ranks = ranks}));
    WEFT_RETURN_IF_ERROR(run.Begin({{"command", "train test"}}));
    EXPECT_EQ(run.path(), Folder(name));
    Learner learner(width_);
    Parameters parameters;
    TrainerOptions options = options_;
    options.ranks = ranks;
    WEFT_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(options, &learner, &parameters, &run));
    if (change) change(ranks.rank(), &learner, &parameters);
    if (resume) WEFT_RETURN_IF_ERROR(trainer->Resume().status());
    std::FILE* const out = std::tmpfile();
    absl::Status trained;
    {
      Progress progress({.out = out});
      trained = trainer->Train(&progress);
    }
    EXPECT_TRUE(ranks.first() || std::ftell(out) == 0);
    std::fclose(out);
    return trained;
  }

  // The files of a run, without times.
  static std::map<std::string, std::string> Files(const std::string& name) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(Folder(name))) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string().substr(Folder(name).size());
      files[path] = ReadFile(entry.path().string()).value_or("unreadable");
    }
    std::string lines;
    for (const std::string& line : Lines(files["/metrics.jsonl"])) {
      auto json = nlohmann::ordered_json::parse(line);
      json.erase("seconds");
      json.erase("tokens_per_second");
      json.erase("memory");
      absl::StrAppend(&lines, json.dump(), "\n");
    }
    files["/metrics.jsonl"] = lines;
    return files;
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
  }

  // Returns the files of a run that do not depend on --shard.
  static std::map<std::string, std::string> Results(const std::string& name) {
    std::map<std::string, std::string> files = Files(name), results;
    for (const char* file : {"/metrics.jsonl", "/model.safetensors", "/best.safetensors"}) results[file] = files[file];
    return results;
  }

  TrainerOptions options_;
  int64_t width_ = 0;  // of the hidden layers
};

void ExpectOk(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

void ExpectAll(const std::vector<absl::Status>& statuses, absl::StatusCode code, const std::string& message) {
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST_F(TrainerRanksTest, NoNumberOfRanksChangesAFile) {
  ExpectOk(Train("one", 1));
  const auto files = Files("one");
  EXPECT_THAT(files.at("/metrics.jsonl"), HasSubstr("\"ema_val_accuracy\""));
  for (const int size : {2, 3, 5}) {
    SCOPED_TRACE(size);
    ExpectOk(Train("several", size));
    EXPECT_EQ(Files("several"), files);
  }
}

TEST_F(TrainerRanksTest, NoShardingChangesAResult) {
  width_ = 300;
  options_.ema = 0;
  options_.learning_rate = [](int64_t /*step*/) { return 0.001; };
  ExpectOk(Train("unsharded", 1));
  const auto results = Results("unsharded");
  EXPECT_GT(results.at("/best.safetensors").size(), 2 * 300 * 300 * 4);
  for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kWeights}) {
    options_.sharding = sharding;
    for (const int size : {2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(Name(sharding), " on ", size));
      ExpectOk(Train("sharded", size));
      EXPECT_TRUE(Results("sharded") == results);
      EXPECT_TRUE(Exists(Folder("sharded") + "/checkpoints/12/state.1.safetensors"));
    }
  }
}

TEST_F(TrainerRanksTest, AnyShardingResumesAnother) {
  width_ = 300;
  options_.ema = 0;
  options_.steps = 16;
  ExpectOk(Train("unbroken", 1));
  const auto train = [&](int64_t steps, int size, Sharding sharding) {
    options_.steps = steps;
    options_.sharding = sharding;
    ExpectOk(Train("broken", size, /*resume=*/steps > 4));
  };
  train(4, 3, Sharding::kWeights);
  train(8, 2, Sharding::kNone);
  train(12, 5, Sharding::kWeights);
  train(16, 1, Sharding::kNone);
  EXPECT_TRUE(Results("broken") == Results("unbroken"));
}

TEST_F(TrainerRanksTest, AnErrorInAnEvaluationWithDividedWeightsEndsAll) {
  width_ = 300;
  options_.ema = 0;
  options_.sharding = Sharding::kWeights;
  const auto statuses = Train("divided", 3, false, [&](int rank, Learner* learner, Parameters*) {
    learner->validating = [rank](int64_t step, int64_t index) {
      return step == 4 && rank == 1 && index == 1 ? absl::DataLossError("a shard is damaged") : absl::OkStatus();
    };
  });
  ExpectAll(statuses, absl::StatusCode::kDataLoss, "rank 1: a shard is damaged");
}

TEST_F(TrainerRanksTest, RanksShareAnEvaluation) {
  std::vector<std::vector<int64_t>> measured(3);
  options_.steps = 1;
  options_.ema = 0;
  ExpectOk(Train("shared", 3, false, [&](int rank, Learner* learner, Parameters*) {
    learner->validating = [&, rank](int64_t step, int64_t index) {
      if (step == 1) measured[rank].push_back(index);
      return absl::OkStatus();
    };
  }));
  EXPECT_THAT(measured, ElementsAre(ElementsAre(0, 3, 6), ElementsAre(1, 4), ElementsAre(2, 5)));
}

TEST_F(TrainerRanksTest, ARunResumesOnAnotherNumberOfRanks) {
  ExpectOk(Train("whole", 1));
  const int64_t steps = options_.steps;
  for (const int size : {1, 2}) {
    options_.steps = 4;
    ExpectOk(Train("parts", 3));
    options_.steps = 8;
    ExpectOk(Train("parts", size, /*resume=*/true));
    options_.steps = steps;
    ExpectOk(Train("parts", 4, /*resume=*/true));
    EXPECT_EQ(Files("parts"), Files("whole"));
  }
}

TEST_F(TrainerRanksTest, ASignalStopsAllRanksAfterTheSameStep) {
  ExpectOk(Train("unstopped", 1));
  for (const int signalled : {0, 2}) {
    const auto statuses = Train("stopped", 3, false, [&](int rank, Learner* learner, Parameters*) {
      if (rank != signalled) return;
      learner->training = [raised = false](int64_t step, MicroBatch /*micro_batch*/) mutable {
        if (step == 6 && !std::exchange(raised, true)) std::raise(SIGTERM);
        return absl::OkStatus();
      };
    });
    for (const absl::Status& status : statuses) EXPECT_EQ(status, statuses[0]);
    ExpectAll(statuses, absl::StatusCode::kCancelled, " and saved");
    EXPECT_THAT(Files("stopped")["/metrics.jsonl"], Not(HasSubstr("\"step\":9")));
    ExpectOk(Train("stopped", 2, /*resume=*/true));
    EXPECT_EQ(Files("stopped"), Files("unstopped"));
  }
}

TEST_F(TrainerRanksTest, ASignalInAnEvaluationEndsTheTrainingOneStepLater) {
  const auto statuses = Train("evaluation", 2, false, [&](int rank, Learner* learner, Parameters*) {
    if (rank != 1) return;
    learner->validating = [raised = false](int64_t step, int64_t /*index*/) mutable {
      if (step == 4 && !std::exchange(raised, true)) std::raise(SIGINT);
      return absl::OkStatus();
    };
  });
  ExpectAll(statuses, absl::StatusCode::kCancelled, "interrupted after step 5 and saved");
}

TEST_F(TrainerRanksTest, AnErrorOfOneRankInAnEvaluationEndsAll) {
  const auto statuses = Train("unreadable", 3, false, [&](int rank, Learner* learner, Parameters*) {
    learner->validating = [rank](int64_t step, int64_t /*index*/) {
      return step == 4 && rank == 1 ? absl::DataLossError("a shard is damaged") : absl::OkStatus();
    };
  });
  ExpectAll(statuses, absl::StatusCode::kDataLoss, "rank 1: a shard is damaged");
}

TEST_F(TrainerRanksTest, AnErrorOfOneRankInAStepEndsAll) {
  for (const int64_t which : {0, 1}) {  // the first or the last micro-batch of the rank
    const auto statuses = Train("unread", 3, false, [&](int rank, Learner* learner, Parameters*) {
      if (rank != 1) return;
      learner->training = [which](int64_t step, MicroBatch micro_batch) {
        return step == 4 && micro_batch.index == 2 + which ? absl::DataLossError("a shard is damaged")
                                                           : absl::OkStatus();
      };
    });
    ExpectAll(statuses, absl::StatusCode::kDataLoss, "rank 1: a shard is damaged");
    EXPECT_FALSE(Exists(Folder("unread") + "/checkpoints/5"));
  }
}

TEST_F(TrainerRanksTest, AFailureToWriteEndsAllRanks) {
  const auto statuses = Train("removed", 2, false, [&](int rank, Learner* learner, Parameters*) {
    if (rank != 0) return;
    learner->training = [](int64_t step, MicroBatch /*micro_batch*/) {
      if (step == 2) fs::remove_all(Folder("removed"));
      return absl::OkStatus();
    };
  });
  ExpectAll(statuses, absl::StatusCode::kFailedPrecondition, "the run's folder was removed or renamed");
}

TEST_F(TrainerRanksTest, OtherWeightsAreFoundBeforeACheckpoint) {
  for (const int64_t every : {1, 3, 100}) {
    options_.check_weights_every = every;
    const auto statuses = Train("flipped", 3, false, [&](int rank, Learner* learner, Parameters* parameters) {
      if (rank != 1) return;
      learner->training = [parameters](int64_t step, MicroBatch /*micro_batch*/) {
        if (step == 5) parameters->Find("w")->as<float>()[2] += 0.01f;
        return absl::OkStatus();
      };
    });
    ExpectAll(statuses, absl::StatusCode::kDataLoss, "rank 1 differs from the other ranks in '");
    EXPECT_TRUE(Exists(Folder("flipped") + "/checkpoints/4"));
    EXPECT_FALSE(Exists(Folder("flipped") + "/checkpoints/8"));
  }
}

TEST_F(TrainerRanksTest, OtherInitialWeightsAreFoundBeforeTheFirstStep) {
  const auto statuses = Train("initial", 2, false, [&](int rank, Learner*, Parameters* parameters) {
    if (rank == 1) *parameters->Find("w")->as<float>() = 2;
  });
  ExpectAll(statuses, absl::StatusCode::kDataLoss, "after step 0 ranks 0 and 1 differ from each other in 'w'");
  EXPECT_EQ(Files("initial")["/metrics.jsonl"], "");
}

TEST_F(TrainerRanksTest, ARankThatCannotResumeEndsAllAndIsNamed) {
  ExpectOk(Train("resumed", 1));
  options_.steps = 20;
  const auto statuses = Train("resumed", 3, true, [&](int rank, Learner* learner, Parameters*) {
    if (rank == 2) learner->data_name = "other points";
  });
  ExpectAll(statuses, absl::StatusCode::kFailedPrecondition, "rank 2: data: this run began with other data");
}

TEST_F(TrainerRanksTest, AllRanksPassOverADamagedCheckpoint) {
  ExpectOk(Train("undamaged", 1));
  ExpectOk(Train("damaged", 2));
  std::FILE* const file = std::fopen((Folder("damaged") + "/checkpoints/12/state.safetensors").c_str(), "r+");
  std::fseek(file, -1, SEEK_END);
  std::fputc(77, file);
  std::fclose(file);
  ExpectOk(Train("damaged", 3, /*resume=*/true));
  EXPECT_EQ(Files("damaged"), Files("undamaged"));
}

TEST_F(TrainerRanksTest, EachRankNeedsAMicroBatch) {
  options_.micro_batches = 2;
  ExpectAll(Train("few", 3), absl::StatusCode::kInvalidArgument,
            "micro-batches: it is 2, but 3 ranks need at least one micro-batch each; set it to 3 or more");
}

TEST(IdleTime, IsThatOfRanksWithFewerMicroBatches) {
  EXPECT_EQ(IdleTime(8, 4), "");
  EXPECT_EQ(IdleTime(8, 3), "ranks 0 to 1 have 3 of 8 micro-batches, the others 2: 11% of the ranks' time is idle");
  EXPECT_EQ(IdleTime(4, 3), "rank 0 has 2 of 4 micro-batches, the others 1: 33% of the ranks' time is idle");
}

}  // namespace
}  // namespace weft
