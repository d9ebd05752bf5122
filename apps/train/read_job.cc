// Makes a job from its options. Later sources of options win, and all of them set the same rows.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/apps/train/run_training.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/loop/options.h"

namespace weft {
namespace {

// Makes `path`, a path in the value of `row`, absolute. Returns InvalidArgument if it is not UTF-8.
absl::Status MakeAbsolute(const Hyperparameter& row, std::string* path) {
  if (path->empty()) return absl::OkStatus();
  if (*path == "-") {
    return InvalidArgument(row.flag, ": '-' is standard input, which a resumed run can't read again; wanted ",
                           TypeName(row));
  }
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
    if (absl::c_linear_search(row.rules.words, text)) continue;
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

// Checks that a resumed run keeps the values `before` of options that may not change, and of words that name no file.
absl::Status CheckUnchanged(const Hyperparameters& before, const Hyperparameters& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    const auto is_word = [](const Hyperparameter& row) { return absl::c_linear_search(row.rules.words, row.text()); };
    const bool may_change = now[i].rules.may_change && !is_word(now[i]) && !is_word(before[i]);
    if (may_change || now[i].json() == before[i].json()) continue;
    return InvalidArgument("a resumed run can't change ", now[i].flag, ": it has '", before[i].text(),
                           "', asked for is '", now[i].text(), "'");
  }
  return absl::OkStatus();
}

}  // namespace

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
                     {"quiet", "print no progress, only errors and the sample of the end", &flags->quiet},
                     {"verbose", "print a line of progress for each step", &flags->verbose},
                     {"rank-timeout",
                      "under mpirun or srun: seconds without a sign of life of a rank after which all ranks end with "
                      "an error; 0: no limit",
                      &flags->rank_timeout,
                      {.low = 0, .type = "SECONDS"}},
                     ChoiceRow<Sharding>("shard",
                                         "under mpirun or srun: state that the ranks divide among themselves to save "
                                         "memory (ZeRO 1 to 3); a run may be resumed with another value",
                                         kShardingNames, &flags->sharding),
                     {"check-weights-every",
                      "under mpirun or srun: steps between comparisons of the weights of all ranks, which find faults "
                      "of a machine; 0: none",
                      &flags->check_weights_every,
                      {.low = 0, .type = "STEPS"}},
                 });
}

absl::StatusOr<RunDirectory> FindRun(const RunDirectoryOptions& options) {
  absl::StatusOr<RunDirectory> run = RunDirectory::Find(options);
  if (!absl::IsAlreadyExists(run.status())) return UsageError(std::move(run));
  return InvalidArgument(run.status().message(),
                         ": pass --resume to continue it, --overwrite to replace it, or another --out");
}

absl::StatusOr<std::unique_ptr<TrainingJob>> ReadJob(const RunFlags& flags, const RunDirectory& run,
                                                     const GivenFlags& changes) {
  GivenFlags given = flags.given;
  for (const auto& [flag, text] : changes) given[flag] = text;
  const RunDirectory* const resumed = flags.run.resume ? &run : nullptr;
  std::unique_ptr<TrainingJob> job = MakeJob(flags.run.name);
  const OptionSources sources = {flags.run.name, resumed, InputPath(flags.config), given, flags.contents.get()};
  WEFT_RETURN_IF_ERROR(SetOptions(sources, job.get()));
  const Hyperparameters table = job->Table();
  WEFT_RETURN_IF_ERROR(MakeAbsolute(table));
  if (resumed != nullptr) {
    const std::unique_ptr<TrainingJob> before = MakeJob(flags.run.name);
    WEFT_RETURN_IF_ERROR(SetOptions({flags.run.name, resumed, "", {}}, before.get()));
    WEFT_RETURN_IF_ERROR(CheckUnchanged(before->Table(), table));
  }
  WEFT_RETURN_IF_ERROR(Validate(job->training()));
  WEFT_RETURN_IF_ERROR(job->Check(resumed));
  return job;
}

}  // namespace weft
