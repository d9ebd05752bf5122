#include "weft/apps/training/training_command.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/ops/ops.h"
#include "weft/text/utf8.h"
#include "weft/train/options.h"

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
  return {
      {"config", "a JSON file: {\"steps\": 100, \"learning_rate\": 3e-4, ...}", &flags->config},
      {"out", absl::StrCat("the run's folder; without it, runs/", name, "-N with the next free N"), &flags->run.out},
      {"resume", absl::StrCat("continue a run: that of --out, or the newest of runs/", name, "-N"), &flags->run.resume},
      {"overwrite", "replace the run that --out holds", &flags->run.overwrite},
  };
}

// The paths of the table as they are from anywhere.
absl::Status MakeAbsolute(const Hyperparameters& table) {
  for (const Hyperparameter& row : table) {
    if (!row.rules.is_path) continue;
    std::string& path = *std::get<std::string*>(row.value);
    if (path.empty()) continue;
    std::error_code error;
    path = std::filesystem::absolute(path, error).string();
    WEFT_RETURN_IF_ERROR(SystemStatus("find", path, error.value()));
    if (!CheckUtf8(path).ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", row.flag, ": the path is not UTF-8, as config.json needs it"));
    }
  }
  return absl::OkStatus();
}

// A resumed run keeps what its config.json says, but for the rows that may change.
absl::Status CheckUnchanged(const Hyperparameters& before, const Hyperparameters& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].rules.may_change || now[i].json() == before[i].json()) continue;
    return absl::InvalidArgumentError(absl::StrCat("a resumed run can't change ", now[i].flag, ": it has '",
                                                   before[i].text(), "', asked for is '", now[i].text(), "'"));
  }
  return absl::OkStatus();
}

// A job of the defaults, then a resumed run's own config.json, then --config, then flags.
absl::StatusOr<std::unique_ptr<TrainingJob>> ReadJob(const RunFlags& flags, const RunDirectory& run,
                                                     const MakeJob& make) {
  std::unique_ptr<TrainingJob> job = make(), before = make();
  const Hyperparameters table = job->Table();
  const std::string& name = flags.run.name;
  if (flags.run.resume) {
    for (TrainingJob* each : {job.get(), before.get()}) {
      WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(run.config(), name, each->Table()), run.File("config.json")));
    }
  }
  if (!flags.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(flags.config));
    WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(json, name, table), flags.config));
  }
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, table));
  WEFT_RETURN_IF_ERROR(MakeAbsolute(table));
  if (flags.run.resume) WEFT_RETURN_IF_ERROR(CheckUnchanged(before->Table(), table));
  const TrainerOptions trainer = job->trainer();
  if (trainer.minimum_learning_rate > trainer.learning_rate) {
    return absl::InvalidArgumentError(absl::StrCat("min-learning-rate ", trainer.minimum_learning_rate,
                                                   " is more than learning-rate ", trainer.learning_rate,
                                                   "; give both"));
  }
  WEFT_RETURN_IF_ERROR(job->Check(flags.run.resume ? &run : nullptr));
  return job;
}

nlohmann::ordered_json ToConfig(const std::string& name, TrainingJob* job) {
  nlohmann::ordered_json json = {{kCommandKey, absl::StrCat("train ", name)}};
  json.update(ToJson(job->Table()));
  if (nlohmann::ordered_json model = job->Model(); !model.empty()) json[kModelKey] = std::move(model);
  return json;
}

absl::Status Run(RunFlags flags, const MakeJob& make) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, RunTable(&flags)));
  absl::StatusOr<RunDirectory> run = RunDirectory::Find(flags.run);
  if (!run.ok()) return UsageError(run.status());
  absl::StatusOr<std::unique_ptr<TrainingJob>> read = ReadJob(flags, *run, make);
  if (!read.ok()) return UsageError(read.status());
  TrainingJob* const job = read->get();
  Parameters parameters({.seed = job->trainer().seed});
  WEFT_RETURN_IF_ERROR(UsageError(job->Prepare(&parameters)));
  const TrainerOptions options = job->trainer();
  if (options.steps > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("--epochs: they take ", options.steps, " steps, more than the ", kMaxSteps, " there may be"));
  }
  for (const TrainingProgram& program : job->programs()) WEFT_RETURN_IF_ERROR(program.tape->status());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Create(options, job, &parameters, &*run));
  bool resumed = false;
  if (flags.run.resume) {
    absl::StatusOr<bool> found = trainer->Resume();
    if (!found.ok()) {
      return absl::IsFailedPrecondition(found.status()) ? UsageError(found.status()) : Failure(found.status());
    }
    resumed = *found;
    if (trainer->step() > options.steps) {
      return absl::InvalidArgumentError(absl::StrCat("the run has made ", trainer->step(),
                                                     " steps already, more than the ", options.steps,
                                                     " that it should have"));
    }
  }
  if (!resumed) WEFT_RETURN_IF_ERROR(UsageError(job->Initialize(&parameters)));
  WEFT_RETURN_IF_ERROR(UsageError(run->Begin(ToConfig(flags.run.name, job))));
  WEFT_RETURN_IF_ERROR(Failure(job->WriteFiles(*run)));

  std::signal(SIGPIPE, SIG_IGN);  // whoever reads along may leave
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error like a full disk
  Progress progress({.terminal = isatty(STDOUT_FILENO) != 0, .log_every = options.log_every});
  progress.Say(absl::StrCat("training ", job->Title(parameters), " in ", run->path()));
  if (options.precision == "bf16" && !HasBF16Products()) {
    progress.Say("this CPU has no bf16 products: they are computed in f32, which takes longer than --precision=f32");
  }
  if (resumed) progress.Say(absl::StrCat("resumed after step ", trainer->step()));
  if (flags.run.resume && !resumed) progress.Say("nothing was saved yet to resume from: starting at step 0");
  WEFT_RETURN_IF_ERROR(Failure(trainer->Train(&progress)));
  progress.Say(absl::StrCat("saved ", run->File("model.safetensors")));
  return Failure(job->Conclude(*run, &parameters));
}

}  // namespace

Command TrainingCommand(CLI::App* train, const std::string& name, const std::string& about, MakeJob make) {
  auto flags = std::make_shared<RunFlags>();
  flags->run.name = name;
  CLI::App* app = AddCommand(train, name, about);
  AddFlags(app, RunTable(flags.get()), &flags->given);
  AddFlags(app, make()->Table(), &flags->given);  // copies what it needs of the rows
  return {absl::StrCat("weft train ", name), app, [flags, make = std::move(make)] { return Run(*flags, make); }};
}

}  // namespace weft
