// This file has the code that all training commands share: it reads the options, prepares the job, and runs the
// trainer.
#include "weft/apps/train/training_command.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/flags.h"
#include "weft/apps/train/read_job.h"
#include "weft/core/json.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/lab/estimate/available_memory.h"
#include "weft/lab/estimate/training_estimate.h"
#include "weft/ops/ops.h"
#include "weft/train/jobs/run_files.h"
#include "weft/train/options.h"
#include "weft/train/run/build_info.h"
#include "weft/train/run/progress.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/trainer.h"

namespace weft {
namespace {

// Returns the contents of config.json. `run`: the run's folder, or "" if it is new.
nlohmann::ordered_json ToConfig(const std::string& name, TrainingJob* job, const std::string& run) {
  nlohmann::ordered_json json = {{kCommandKey, absl::StrCat("train ", name)}};
  json.update(ToJson(job->Table()));
  if (nlohmann::ordered_json model = job->Model(); !model.empty()) json[kModelKey] = std::move(model);
  json[kVersionKey] = kVersion;
  json[kFilesKey] = FileChecksums(job->Table(), run);
  return json;
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

// Returns `status`, the error of a training that does not fit in memory, as a usage error with the options that help.
absl::Status TooLarge(const absl::Status& status, const RunFlags& flags, const RunDirectory& run, const JobMaker& make,
                      uint64_t limit) {
  const auto make_changed = [&](const OptionTexts& changes) {
    RunFlags changed = flags;
    for (const auto& [flag, text] : changes) changed.given[flag] = text;
    return ReadJob(changed, run, make);
  };
  return InvalidArgument(status.message(), ListTrainings(FindSmallerTrainings(make_changed, limit)));
}

absl::Status Run(RunFlags flags, const JobMaker& make) {
  const Hyperparameters run_table = RunTable(&flags);
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, run_table));
  if (flags.quiet && flags.verbose) return InvalidArgument("quiet: it excludes verbose");
  absl::StatusOr<RunDirectory> run = RunDirectory::Find(flags.run);
  if (!run.ok()) return FolderError(run.status());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> owned, UsageError(ReadJob(flags, *run, make)));
  TrainingJob* const job = owned.get();
  Parameters parameters({.seed = job->training().seed});
  WEFT_RETURN_IF_ERROR(UsageError(job->Prepare(&parameters)));
  TrainerOptions options = ToTrainerOptions(job->training(), job->batches_per_epoch());
  if (options.steps > kMaxSteps) {
    return InvalidArgument("--epochs: they take ", options.steps, " steps, more than the ", kMaxSteps, " there may be");
  }
  if (!flags.run.resume) WEFT_RETURN_IF_ERROR(CheckSchedule(job->training(), job->batches_per_epoch()));
  for (const TrainingProgram& program : job->programs()) WEFT_RETURN_IF_ERROR(program.tape->status());
  options.memory_limit = AvailableMemory();
  absl::StatusOr<std::unique_ptr<Trainer>> created = Trainer::Create(options, job, &parameters, &*run);
  if (absl::IsResourceExhausted(created.status()) && parameters.Names().empty()) {  // nothing was allocated
    return TooLarge(created.status(), flags, *run, make, options.memory_limit);
  }
  if (!created.ok()) return UsageError(created.status());
  const std::unique_ptr<Trainer> trainer = *std::move(created);
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
  std::FILE* const shown = isatty(STDOUT_FILENO) != 0 ? stdout : stderr;  // a file or pipe gets results alone
  Progress progress({.out = shown,
                     .terminal = isatty(fileno(shown)) != 0 && !flags.verbose,
                     .quiet = flags.quiet,
                     .log_every = flags.verbose ? 1 : job->training().log_every});
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

Command TrainingCommand(CLI::App* weft, const std::string& name, const std::string& about, JobMaker make,
                        const std::string& summary, std::vector<Example> examples) {
  auto flags = std::make_shared<RunFlags>();
  flags->run.name = name;
  CLI::App* app = AddCommand(weft, absl::StrCat("train ", name), about);
  AddFlags(app, RunTable(flags.get()), &flags->given);
  // The table's rows point into a job that lives until the end of this statement. AddFlags keeps no such pointer.
  AddFlags(app, make()->Table(), &flags->given);
  return {absl::StrCat("weft train ", name), app, [flags, make = std::move(make)] { return Run(*flags, make); },
          summary, std::move(examples)};
}

}  // namespace weft
