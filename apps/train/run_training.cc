// A training from its flags to its last file, without a command line.
#include "weft/apps/train/run_training.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/ranks.h"
#include "weft/formats/run_folder.h"
#include "weft/lab/estimate/available_memory.h"
#include "weft/lab/estimate/training_estimate.h"
#include "weft/ops/ops.h"
#include "weft/train/jobs/run_config.h"
#include "weft/train/loop/options.h"
#include "weft/train/loop/trainer.h"
#include "weft/train/run/build_info.h"
#include "weft/train/run/metrics.h"

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

// The objects that a rank creates before the training begins.
struct Prepared {
  explicit Prepared(std::unique_ptr<TrainingJob> made)
      : job(std::move(made)), parameters({.seed = job->training().seed}) {}

  std::unique_ptr<TrainingJob> job;
  Parameters parameters;
  TrainerOptions options;
  std::unique_ptr<Trainer> trainer;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(const RunFlags& flags, const RunDirectory& run) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TrainingJob> owned, UsageError(ReadJob(flags, run)));
  auto prepared = std::make_unique<Prepared>(std::move(owned));
  TrainingJob* const job = prepared->job.get();
  job->set_ranks(flags.run.ranks);
  const auto set_ranks = [&](TrainerOptions options) {
    options.ranks = flags.run.ranks;
    options.check_weights_every = flags.check_weights_every;
    options.sharding = flags.sharding;
    return options;
  };
  WEFT_RETURN_IF_ERROR(Validate(set_ranks(job->training().trainer)));  // before the data is read
  if (flags.sharding == Sharding::kWeights) WEFT_RETURN_IF_ERROR(job->CheckDivisible());
  WEFT_RETURN_IF_ERROR(UsageError(job->Prepare(&prepared->parameters)));
  if (flags.run.overwrite) {  // the files of init would be removed before this training has saved a model
    WEFT_RETURN_IF_ERROR(CheckNotOut("init", ParseRunPath(job->source().init()).folder, flags.run.out));
  }
  TrainerOptions& options = prepared->options;
  options = set_ranks(ToTrainerOptions(job->training(), job->batches_per_epoch()));
  if (options.steps > kMaxSteps) {
    return InvalidArgument("--epochs: they take ", options.steps, " steps, more than the ", kMaxSteps, " there may be");
  }
  if (!flags.run.resume) WEFT_RETURN_IF_ERROR(CheckSchedule(job->training(), job->batches_per_epoch()));
  for (const TrainingProgram& program : job->programs()) WEFT_RETURN_IF_ERROR(program.tape->status());
  options.memory_limit = AvailableMemory();
  absl::StatusOr<std::unique_ptr<Trainer>> created = Trainer::Create(options, job, &prepared->parameters, &run);
  if (absl::IsResourceExhausted(created.status()) && prepared->parameters.Names().empty()) {  // nothing was allocated
    const auto make_changed = [&](const OptionTexts& changes) { return ReadJob(flags, run, changes); };
    const std::vector<SmallerTraining> that_fit = FindSmallerTrainings(make_changed, options.memory_limit);
    return InvalidArgument(created.status().message(), ListTrainings(that_fit));
  }
  if (!created.ok()) return UsageError(created.status());
  prepared->trainer = *std::move(created);
  return prepared;
}

// Loads published weights, if an option names them. If ranks divide the weights, each rank takes its rows of them.
absl::Status Initialize(Prepared* prepared) {
  TrainingJob* const job = prepared->job.get();
  Parameters& parameters = prepared->parameters;
  if (job->source().init().empty() || !parameters.divided()) return job->Initialize(&parameters);
  Parameters whole({.seed = parameters.seed()});
  std::vector<ParameterSpec> specs;
  for (const ParameterSpec& spec : job->programs()[0].tape->program().parameters) {
    if (spec.kind == ParameterKind::kWeight || spec.kind == ParameterKind::kFrozen) specs.push_back(spec);
  }
  WEFT_RETURN_IF_ERROR(whole.Create(specs));
  WEFT_RETURN_IF_ERROR(job->Initialize(&whole));
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    const Tensor to = *parameters.Find(name), from = *whole.Find(WeightOfPiece(name));
    const std::optional<Piece> piece = ParsePiece(name);
    const size_t row_bytes = static_cast<size_t>(to.type.shape.cols()) * SizeOf(to.type.dtype);
    const size_t begin = piece ? static_cast<size_t>(piece->rows.begin) * row_bytes : 0;
    std::memcpy(to.data, from.data + begin, to.type.bytes());
  }
  return absl::OkStatus();
}

// Loads the newest checkpoint of a run. Returns false if nothing was saved yet.
absl::StatusOr<bool> Resume(const RunDirectory& run, const nlohmann::ordered_json& config, Prepared* prepared) {
  absl::StatusOr<bool> resumed = prepared->trainer->Resume();
  if (absl::IsFailedPrecondition(resumed.status())) {
    const std::string changed = ChangedFiles(run.config(), config);
    return InvalidArgument(resumed.status().message(), changed.empty() ? "" : "; ", changed);
  }
  if (!resumed.ok()) return Failure(resumed.status());
  if (prepared->trainer->step() > prepared->options.steps) {
    return InvalidArgument("the run has made ", prepared->trainer->step(), " steps already, more than the ",
                           prepared->options.steps, " that it should have");
  }
  return resumed;
}

// Prints properties of the training before its first step.
void Introduce(const RunFlags& flags, const RunDirectory& run, const Prepared& prepared, bool resumed,
               Progress* progress) {
  const Ranks& ranks = flags.run.ranks;
  const TrainerOptions& options = prepared.options;
  progress->Say(absl::StrCat("training ", prepared.job->Title(prepared.parameters), " in ", run.path(),
                             ranks.size() == 1 ? "" : absl::StrCat(" on ", ranks.size(), " ranks")));
  for (const std::string& line :
       {IdleTime(options.micro_batches, ranks.size()), MemoryOfTrained(prepared.parameters)}) {
    if (!line.empty()) progress->Say(line);
  }
  const auto& source = prepared.job->source();
  if (!source.missing().empty()) {
    progress->Say(
        absl::StrCat("new weights, which ", source.init(), " does not have: ", absl::StrJoin(source.missing(), ", ")));
  }
  if (const std::vector<std::string> extra = source.extra(); !extra.empty()) {
    progress->Say(absl::StrCat("left out of ", source.init(), ": ", absl::StrJoin(extra, ", ")));
  }
  if (options.precision == kBF16 && !HasBF16Products()) {
    progress->Say("this CPU has no bf16 products: they are computed in f32, which takes longer than --precision=f32");
  }
  if (resumed) progress->Say(absl::StrCat("resumed after step ", prepared.trainer->step()));
  if (flags.run.resume && !resumed) progress->Say("nothing was saved yet to resume from: starting at step 0");
}

// Trains on the ranks `flags.run.ranks`. Returns the same status on each rank. Sets `folder` when the run begins.
absl::Status Train(const RunFlags& flags, std::string* folder) {
  const Ranks& ranks = flags.run.ranks;
  WEFT_ASSIGN_OR_RETURN(RunDirectory run, FindRun(flags.run));
  const absl::StatusOr<std::unique_ptr<Prepared>> made = Prepare(flags, run);
  WEFT_RETURN_IF_ERROR(AllAgree(ranks, made.status()));
  Prepared& prepared = **made;
  TrainingJob* const job = prepared.job.get();
  Trainer* const trainer = prepared.trainer.get();
  nlohmann::ordered_json config = ToConfig(flags.run.name, job, flags.run.resume ? run.path() : "");
  nlohmann::ordered_json same = config;
  same["check_weights_every"] = flags.check_weights_every;
  same["rank_timeout"] = flags.rank_timeout;
  same["shard"] = Name(flags.sharding);
  WEFT_RETURN_IF_ERROR(Failure(CheckSameTraining(ranks, DescribeTraining(same, job->Table(), job->data()))));
  bool resumed = false;
  if (flags.run.resume) {
    WEFT_ASSIGN_OR_RETURN(resumed, Resume(run, config, &prepared));
  }
  if (!resumed) WEFT_RETURN_IF_ERROR(AllAgree(ranks, UsageError(Initialize(&prepared))));
  WEFT_RETURN_IF_ERROR(UsageError(run.Begin(config)));
  *folder = run.path();
  WEFT_RETURN_IF_ERROR(Failure(OnFirst(ranks, [&] { return job->WriteFiles(&run); })));
  config[kFilesKey].update(FileChecksums({}, run.path()));  // the tokenizer's files, which exist by now
  WEFT_RETURN_IF_ERROR(Failure(run.SetConfig(config)));

  std::signal(SIGPIPE, SIG_IGN);  // if the reader of the output ends, the training continues
  // If stdout is a file or a pipe, it gets results only. Under mpirun, a rank's terminal may also lead to a file.
  const bool alone = ranks.size() == 1;
  std::FILE* const shown = alone && isatty(STDOUT_FILENO) != 0 ? stdout : stderr;
  Progress progress({.out = shown,
                     .terminal = alone && isatty(fileno(shown)) != 0 && !flags.verbose,
                     .quiet = flags.quiet || !ranks.first(),
                     .log_every = flags.verbose ? 1 : job->training().log_every});
  Introduce(flags, run, prepared, resumed, &progress);
  const absl::Status trained = trainer->Train(&progress);
  if (absl::IsCancelled(trained)) {
    return absl::CancelledError(absl::StrCat(trained.message(), "; continue with --resume --out=", run.path()));
  }
  WEFT_RETURN_IF_ERROR(Failure(trained));
  progress.Say(absl::StrCat("saved ", Printable(run.File("model.safetensors"))));
  return OnFirst(ranks, [&]() -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const std::string conclusion, Failure(job->Conclude(run, &prepared.parameters)));
    if (!conclusion.empty()) WEFT_RETURN_IF_ERROR(Failure(trainer->AddText("sample", conclusion)));
    std::fwrite(conclusion.data(), 1, conclusion.size(), stdout);
    return Failure(trainer->CheckFiles());
  });
}

}  // namespace

absl::StatusOr<std::string> RunTraining(RunFlags flags, std::unique_ptr<Messenger>* messenger) {
  if (flags.quiet && flags.verbose) return InvalidArgument("quiet: it excludes verbose");
  WEFT_ASSIGN_OR_RETURN(*messenger, ConnectMessenger(flags.rank_timeout));
  flags.run.ranks = Ranks(messenger->get());
  std::string folder;
  WEFT_RETURN_IF_ERROR(PrintedByFirst(flags.run.ranks, Train(flags, &folder)));
  return folder;
}

}  // namespace weft
