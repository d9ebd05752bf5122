// This file has the part of Trainer that reads and writes the files of a run. train/loop/trainer.cc has the loop.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/ranks.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/formats/run_folder.h"
#include "weft/train/loop/trainer.h"
#include "weft/train/run/build_info.h"
#include "weft/train/run/checkpoint.h"
#include "weft/train/run/metrics.h"

namespace weft {
namespace {

void WarnOfOtherBits(const CheckpointInfo& info) {
  if (info.version == BuildName() && info.cpu == CpuFeatures()) return;
  Warn(absl::StrCat("the checkpoint of step ", info.step, " was written by Weft ", info.version, " on a CPU with ",
                    info.cpu, "; this is Weft ", BuildName(), " with ", CpuFeatures(),
                    "; the run continues, but its results have other bits"));
}

}  // namespace

// Loads the checkpoint of `step`. Returns FailedPrecondition if it has other data or another seed.
absl::Status Trainer::LoadStep(int64_t step) {
  const std::string checkpoints = run_->File("checkpoints");
  WEFT_ASSIGN_OR_RETURN(const CheckpointInfo info, ReadCheckpointInfo(checkpoints, step));
  if (info.data != task_->data()) {
    return absl::FailedPreconditionError(
        "data: this run began with other data; resume it with the same data, or begin another run");
  }
  if (info.seed != parameters_->seed()) {
    return absl::FailedPreconditionError(absl::StrCat("seed: it is ", parameters_->seed(),
                                                      ", but the checkpoint of step ", step, " is of a run with seed ",
                                                      info.seed));
  }
  WEFT_ASSIGN_OR_RETURN(TrainingHistory history, TrainingHistory::FromJson(info.trainer));
  WEFT_RETURN_IF_ERROR(LoadCheckpoint(checkpoints, info, parameters_));
  if (options_.ranks.first()) WarnOfOtherBits(info);
  history_ = std::move(history);
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::Resume() {
  const Ranks& ranks = options_.ranks;
  // The steps of the checkpoints as "1000 500", the newest first.
  WEFT_ASSIGN_OR_RETURN(const std::string steps, ResultOfFirst(ranks, [&]() -> absl::StatusOr<std::string> {
                          WEFT_RETURN_IF_ERROR(TidyCheckpoints(run_->File("checkpoints")));
                          return absl::StrJoin(ListCheckpoints(run_->File("checkpoints")), " ");
                        }));
  absl::Status first_error;
  for (const absl::string_view text : absl::StrSplit(steps, ' ', absl::SkipEmpty())) {
    int64_t step = 0;
    WEFT_CHECK(absl::SimpleAtoi(text, &step));
    const absl::Status mine = LoadStep(step);
    // Rank 0 decides whether to pass over a checkpoint. The other ranks must be able to load the same one.
    const absl::Status loaded = OnFirst(ranks, [&] { return mine; });
    if (loaded.ok()) {
      WEFT_RETURN_IF_ERROR(AllAgree(ranks, mine));
      step_ = saved_step_ = step;
      resumed_ = true;
      return true;
    }
    if (absl::IsFailedPrecondition(loaded)) return loaded;
    if (ranks.first()) Warn(absl::StrCat("passing over the checkpoint of step ", step, ": ", loaded.message()));
    if (first_error.ok()) first_error = loaded;
  }
  if (!first_error.ok()) return Annotate(first_error, "no checkpoint can be read");
  WEFT_RETURN_IF_ERROR(OnFirst(ranks, [&]() -> absl::Status {
    if (!Exists(run_->File("model.safetensors"))) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        run_->path(), " has a model.safetensors, but no checkpoint to continue from; overwrite the run, or ",
        "choose another folder"));
  }));
  return false;
}

// Opens the log on rank 0. Sets the number of tokens trained on so far, and the time at which the run began.
absl::Status Trainer::OpenLog() {
  const RunLogOptions options = {
      .insights = options_.insights, .tensorboard = options_.tensorboard, .keeps_errors = options_.ranks.size() > 1};
  WEFT_ASSIGN_OR_RETURN(const std::string tokens, ResultOfFirst(options_.ranks, [&]() -> absl::StatusOr<std::string> {
                          WEFT_ASSIGN_OR_RETURN(log_, RunLog::Open(run_->path(), resumed_ ? step_ : -1, options));
                          return absl::StrCat(log_.tokens());
                        }));
  WEFT_CHECK(absl::SimpleAtoi(tokens, &tokens_));
  for (const std::string& warning : log_.warnings()) Warn(warning);
  using Clock = std::chrono::steady_clock;
  begin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(log_.seconds()));
  return absl::OkStatus();
}

// Checks that all ranks have the same weights and optimizer state.
absl::Status Trainer::CheckSameWeights() const {
  if (options_.check_weights_every == 0) return absl::OkStatus();
  return CheckSameParameters(options_.ranks, *parameters_, step_);
}

absl::Status Trainer::Save() {
  const Ranks& ranks = options_.ranks;
  WEFT_RETURN_IF_ERROR(CheckSameWeights());
  const bool divided = ranks.size() > 1 && options_.sharding != Sharding::kNone && saved_step_ != step_;
  if (divided) {
    WEFT_ASSIGN_OR_RETURN(const std::string folder,
                          ResultOfFirst(ranks, [&] { return BeginCheckpoint(run_->File("checkpoints"), step_); }));
    absl::Status written;  // rank 0 writes its files below
    if (!ranks.first() && !training_step_->divided().empty()) written = CheckWeights();
    if (!ranks.first() && written.ok()) written = WriteStatePieces(folder, ranks.rank(), *parameters_);
    WEFT_RETURN_IF_ERROR(AllAgree(ranks, written));
  }
  WEFT_RETURN_IF_ERROR(OnFirst(ranks, [&] { return WriteFiles(/*begun=*/divided); }));
  if (!training_step_->divided().empty()) WEFT_RETURN_IF_ERROR(SaveDivided(run_->File(kLastWeights)));
  saved_step_ = step_;
  return absl::OkStatus();
}

// Writes all files that the run's folder should have after a step. `begun`: whether BeginCheckpoint was called.
absl::Status Trainer::WriteFiles(bool begun) {
  WEFT_RETURN_IF_ERROR(log_.Sync());
  WEFT_RETURN_IF_ERROR(run_->CheckStillThere());
  WEFT_RETURN_IF_ERROR(CheckWeights());
  if (saved_step_ != step_) {
    WEFT_RETURN_IF_ERROR(SaveCheckpoint(run_->File("checkpoints"),
                                        {.step = step_,
                                         .seed = parameters_->seed(),
                                         .parameters_step = parameters_->step(),
                                         .data = task_->data(),
                                         .trainer = history_.ToJson()},
                                        *parameters_, options_.keep, begun));
    saved_step_ = step_;
  } else {  // a run that was killed after it had saved may have older checkpoints left
    WEFT_RETURN_IF_ERROR(PruneCheckpoints(run_->File("checkpoints"), step_, options_.keep));
  }
  if (const std::vector<NamedTensor> averages = ModelOfAverages(*parameters_); !averages.empty()) {
    WEFT_RETURN_IF_ERROR(WriteSafetensors(run_->File(kEmaWeights), averages));
  }
  if (training_step_->divided().empty()) {
    WEFT_RETURN_IF_ERROR(parameters_->Save(run_->File(kLastWeights), Parameters::kWeights));
  }
  WEFT_RETURN_IF_ERROR(task_->SaveMore(*parameters_, run_->path()));
  return RestoreFiles();
}

absl::Status Trainer::RestoreFiles() const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> restored, run_->RestoreFiles());
  for (const std::string& name : restored) {
    Warn(absl::StrCat(run_->File(name), " was removed during the training, and is written again"));
  }
  return absl::OkStatus();
}

absl::Status Trainer::CheckFiles() const {
  WEFT_RETURN_IF_ERROR(RestoreFiles());
  if (Exists(run_->File(kLastWeights))) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(run_->File(kLastWeights), " was removed while the training ended"));
}

// Saves the divided weights. Rank 0 receives and writes one weight after the other. After an error, rank 0 still
// receives the remaining weights, because the other ranks send them.
absl::Status Trainer::SaveDivided(const std::string& path) const {
  const Ranks& ranks = options_.ranks;
  std::map<std::string, const DividedWeight*> weights;  // null: a weight that each rank has as a whole
  for (const std::string& name : parameters_->Names(Parameters::kWeights)) {
    if (!ParsePiece(name)) weights[name] = nullptr;
  }
  for (const DividedWeight& weight : training_step_->divided()) weights[weight.name] = &weight;
  std::vector<SafetensorsWriter::NamedType> types;
  size_t largest = 0;  // bytes of a divided weight
  for (const auto& [name, divided] : weights) {
    types.emplace_back(name, divided != nullptr ? divided->type : parameters_->Find(name)->type);
    if (divided != nullptr) largest = std::max(largest, divided->type.bytes());
  }
  const auto create = [&]() -> absl::StatusOr<SafetensorsWriter> {
    if (!ranks.first()) return absl::CancelledError();
    WEFT_RETURN_IF_ERROR(run_->CheckStillThere());
    return SafetensorsWriter::Create(path, types);
  };
  absl::StatusOr<SafetensorsWriter> writer = create();
  absl::Status status = writer.status();  // OnFirst ignores that of other ranks
  std::vector<std::byte> whole(ranks.first() ? largest : 0);
  for (const auto& [name, divided] : weights) {
    Tensor tensor;
    if (divided != nullptr) {
      GatherRows(ranks, *divided, *parameters_, GatherTo::kFirst, whole.data());
      tensor = {divided->type, whole.data()};
    } else {
      tensor = *parameters_->Find(name);
    }
    if (status.ok()) status = writer->Add(tensor);
  }
  if (status.ok()) status = writer->Finish();
  return OnFirst(ranks, [&] { return status; });
}

// Saves the weights that the metric measured: the averages if its name begins with "ema_".
absl::Status Trainer::SaveBest() const {
  const std::string path = run_->File(kBestWeights);
  if (!training_step_->divided().empty()) return SaveDivided(path);
  return OnFirst(options_.ranks, [&]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(run_->CheckStillThere());
    if (!absl::StartsWith(options_.metric, "ema_")) return parameters_->Save(path, Parameters::kWeights);
    return WriteSafetensors(path, ModelOfAverages(*parameters_));
  });
}

}  // namespace weft
