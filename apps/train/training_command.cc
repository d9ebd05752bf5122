// This file has the code that all training commands share: it reads the options, prepares the job, and runs the
// trainer.
#include "weft/apps/train/training_command.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/apps/flags.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/ops/ops.h"
#include "weft/text/utf8.h"
#include "weft/train/jobs/run_files.h"
#include "weft/train/options.h"
#include "weft/train/run/build_info.h"
#include "weft/train/run/progress.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/trainer.h"

namespace weft {
namespace {

using MakeJob = std::function<std::unique_ptr<TrainingJob>()>;

struct RunFlags {
  GivenFlags given;
  std::string config;
  RunDirectoryOptions run;
};

Hyperparameters RunTable(RunFlags* flags) {
  const std::string& name = flags->run.name;
  return InGroup("Run",
                 {
                     {"config",
                      "a JSON file with values for flags: {\"steps\": 100, \"learning_rate\": 3e-4, ...}; flags of the "
                      "command line win",
                      &flags->config,
                      {.type = "FILE"}},
                     {"out",
                      absl::StrCat("the run's folder; without it, runs/", name, "-N with the next free N"),
                      &flags->run.out,
                      {.type = "FOLDER"}},
                     {"resume", absl::StrCat("continue a run: that of --out, or the newest of runs/", name, "-N"),
                      &flags->run.resume},
                     {"overwrite", "replace the run that --out holds", &flags->run.overwrite},
                 });
}

// Makes `path`, a path in the value of `row`, absolute. Returns InvalidArgument if it is not UTF-8.
absl::Status MakeAbsolute(const Hyperparameter& row, std::string* path) {
  if (path->empty()) return absl::OkStatus();
  std::error_code error;
  *path = std::filesystem::absolute(*path, error).string();
  WEFT_RETURN_IF_ERROR(SystemStatus("find", *path, error.value()));
  if (CheckUtf8(*path).ok()) return absl::OkStatus();
  return InvalidArgument("--", row.flag, ": the path is not UTF-8, which config.json requires");
}

// Makes paths absolute, because a resumed run may have another working folder. If the value of a list names an existing
// file, the value is one path, even with a comma. Returns InvalidArgument if a path is not UTF-8.
absl::Status MakeAbsolute(const Hyperparameters& table) {
  for (const Hyperparameter& row : table) {
    if (!row.rules.is_path && !row.rules.is_path_list) continue;
    std::string& text = *std::get<std::string*>(row.value);
    if (row.rules.is_path || Exists(text)) {
      WEFT_RETURN_IF_ERROR(MakeAbsolute(row, &text));
      continue;
    }
    std::vector<std::string> paths = absl::StrSplit(text, ',');
    for (std::string& path : paths) WEFT_RETURN_IF_ERROR(MakeAbsolute(row, &path));
    text = absl::StrJoin(paths, ",");
  }
  return absl::OkStatus();
}

// Checks that options whose rules lack `may_change` have the same values `now` as `before`, when the run began.
absl::Status CheckUnchanged(const Hyperparameters& before, const Hyperparameters& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].rules.may_change || now[i].json() == before[i].json()) continue;
    return InvalidArgument("a resumed run can't change ", now[i].flag, ": it has '", before[i].text(),
                           "', asked for is '", now[i].text(), "'");
  }
  return absl::OkStatus();
}

// Returns a job with checked options. Later sources win: defaults, config.json of a resumed run, --config, flags.
absl::StatusOr<std::unique_ptr<TrainingJob>> ReadJob(const RunFlags& flags, const RunDirectory& run,
                                                     const MakeJob& make) {
  const RunDirectory* const resumed = flags.run.resume ? &run : nullptr;
  std::unique_ptr<TrainingJob> job = make();
  WEFT_RETURN_IF_ERROR(SetOptions({flags.run.name, resumed, flags.config, flags.given}, job.get()));
  const Hyperparameters table = job->Table();
  WEFT_RETURN_IF_ERROR(MakeAbsolute(table));
  if (resumed != nullptr) {
    const std::unique_ptr<TrainingJob> before = make();
    WEFT_RETURN_IF_ERROR(SetOptions({flags.run.name, resumed, "", {}}, before.get()));
    WEFT_RETURN_IF_ERROR(CheckUnchanged(before->Table(), table));
  }
  WEFT_RETURN_IF_ERROR(Validate(job->training()));
  WEFT_RETURN_IF_ERROR(job->Check(resumed));
  return job;
}

// Returns the contents of config.json. `run`: the run's folder, or "" if it is new.
nlohmann::ordered_json ToConfig(const std::string& name, TrainingJob* job, const std::string& run) {
  nlohmann::ordered_json json = {{kCommandKey, absl::StrCat("train ", name)}};
  json.update(ToJson(job->Table()));
  if (nlohmann::ordered_json model = job->Model(); !model.empty()) json[kModelKey] = std::move(model);
  json[kVersionKey] = kVersion;
  json[kFilesKey] = FileChecksums(job->Table(), run);
  return json;
}

// Returns `status`, the error of a run folder, as a usage error. If the folder exists, adds the flags that help.
absl::Status FolderError(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) {
    return InvalidArgument(status.message(),
                           ": pass --resume to continue it, --overwrite to replace it, or another --out");
  }
  return UsageError(status);
}

// Returns a line with the memory of a training that trains only some of the weights, or "" if it trains all.
std::string MemoryOfTrained(const Parameters& parameters) {
  const int64_t trained = parameters.ElementCount(Parameters::kTrained);
  const int64_t weights = parameters.ElementCount(Parameters::kWeights);
  if (trained == weights) return "";
  const auto megabytes = [](int64_t values) { return static_cast<double>(values) * 4e-6; };  // f32
  return absl::StrFormat(
      "%.2f%% of the weights are trained: %.1f MB for their gradients, %.1f MB of optimizer state; %.1f MB of weights "
      "stay as they are",
      100.0 * static_cast<double>(trained) / static_cast<double>(weights), megabytes(trained),
      megabytes(parameters.ElementCount(Parameters::kAll) - weights), megabytes(weights - trained));
}

absl::Status Run(RunFlags flags, const MakeJob& make) {
  const Hyperparameters run_table = RunTable(&flags);
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, run_table));
  absl::StatusOr<RunDirectory> run = RunDirectory::Find(flags.run);
  if (!run.ok()) return FolderError(run.status());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> owned, UsageError(ReadJob(flags, *run, make)));
  TrainingJob* const job = owned.get();
  Parameters parameters({.seed = job->training().seed});
  WEFT_RETURN_IF_ERROR(UsageError(job->Prepare(&parameters)));
  const TrainerOptions options = ToTrainerOptions(job->training(), job->batches_per_epoch());
  if (options.steps > kMaxSteps) {
    return InvalidArgument("--epochs: they take ", options.steps, " steps, more than the ", kMaxSteps, " there may be");
  }
  if (!flags.run.resume) WEFT_RETURN_IF_ERROR(CheckSchedule(job->training(), job->batches_per_epoch()));
  for (const TrainingProgram& program : job->programs()) WEFT_RETURN_IF_ERROR(program.tape->status());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        UsageError(Trainer::Create(options, job, &parameters, &*run)));
  nlohmann::ordered_json config = ToConfig(flags.run.name, job, flags.run.resume ? run->path() : "");
  bool resumed = false;
  if (flags.run.resume) {
    absl::StatusOr<bool> found = trainer->Resume();
    if (absl::IsFailedPrecondition(found.status())) {
      const std::string changed = ChangedFiles(run->config(), config);
      return InvalidArgument(found.status().message(), changed.empty() ? "" : "; ", changed);
    }
    if (!found.ok()) return Failure(found.status());
    resumed = *found;
    if (trainer->step() > options.steps) {
      return InvalidArgument("the run has made ", trainer->step(), " steps already, more than the ", options.steps,
                             " that it should have");
    }
  }
  if (!resumed) WEFT_RETURN_IF_ERROR(UsageError(job->Initialize(&parameters)));
  WEFT_RETURN_IF_ERROR(UsageError(run->Begin(config)));
  WEFT_RETURN_IF_ERROR(Failure(job->WriteFiles(*run)));
  config[kFilesKey].update(FileChecksums({}, run->path()));  // the tokenizer's files, which exist by now
  WEFT_RETURN_IF_ERROR(Failure(run->SetConfig(config)));

  std::signal(SIGPIPE, SIG_IGN);  // if the reader of the output ends, the training continues
  Progress progress({.terminal = isatty(STDOUT_FILENO) != 0, .log_every = job->training().log_every});
  progress.Say(absl::StrCat("training ", job->Title(parameters), " in ", run->path()));
  if (const std::string memory = MemoryOfTrained(parameters); !memory.empty()) {
    progress.Say(memory);
  }
  if (options.precision == "bf16" && !HasBF16Products()) {
    progress.Say("this CPU has no bf16 products: they are computed in f32, which takes longer than --precision=f32");
  }
  if (resumed) progress.Say(absl::StrCat("resumed after step ", trainer->step()));
  if (flags.run.resume && !resumed) progress.Say("nothing was saved yet to resume from: starting at step 0");
  const absl::Status trained = trainer->Train(&progress);
  if (absl::IsCancelled(trained)) {
    return absl::CancelledError(absl::StrCat(trained.message(), "; continue with --resume --out=", run->path()));
  }
  WEFT_RETURN_IF_ERROR(Failure(trained));
  progress.Say(absl::StrCat("saved ", run->File("model.safetensors")));
  WEFT_ASSIGN_OR_RETURN(const std::string conclusion, Failure(job->Conclude(*run, &parameters)));
  if (!conclusion.empty()) WEFT_RETURN_IF_ERROR(Failure(trainer->AddText("sample", conclusion)));
  std::fwrite(conclusion.data(), 1, conclusion.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command TrainingCommand(CLI::App* train, const std::string& name, const std::string& about, MakeJob make,
                        const std::string& summary, std::vector<Example> examples) {
  auto flags = std::make_shared<RunFlags>();
  flags->run.name = name;
  CLI::App* app = AddCommand(train, name, about);
  AddFlags(app, RunTable(flags.get()), &flags->given);
  // The table's rows point into a job that lives until the end of this statement. AddFlags keeps no such pointer.
  AddFlags(app, make()->Table(), &flags->given);
  return {absl::StrCat("weft train ", name), app, [flags, make = std::move(make)] { return Run(*flags, make); },
          summary, std::move(examples)};
}

}  // namespace weft
