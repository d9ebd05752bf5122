// A new kind of training is one row of the table below.
#include "weft/train/jobs/job_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/run_folder.h"
#include "weft/options/hyperparameters.h"
#include "weft/train/jobs/gpt_job.h"
#include "weft/train/loop/options.h"
#include "weft/train/run/run_directory.h"

namespace weft {
namespace {

constexpr struct {
  const char* name;
  std::unique_ptr<TrainingJob> (*make)();
} kRows[] = {{"gpt", []() -> std::unique_ptr<TrainingJob> { return std::make_unique<GptJob>(); }},
             {"bert", MakeBertJob},
             {"translate", MakeTranslateJob},
             {"classify", MakeClassifyJob},
             {"vit", MakeVitJob}};

// Returns the name among JobNames() of the kind of training that began a run with the configuration `config`, or "".
std::string KindOf(const nlohmann::ordered_json& config) {
  for (const auto& row : kRows) {
    if (IsRunConfig(config, row.name)) return row.name;
  }
  return "";
}

}  // namespace

std::vector<std::string> JobNames() { return RowNames(kRows); }

std::unique_ptr<TrainingJob> MakeJob(absl::string_view name) {
  const auto* const row = FindRow(kRows, name);
  return row != nullptr ? row->make() : nullptr;
}

bool HoldsRun(const std::string& folder) {
  const absl::StatusOr<RunDirectory> run = RunDirectory::Read(folder);
  return run.ok() ? !KindOf(run->config()).empty() : Exists(folder + "/config.json");
}

absl::StatusOr<std::unique_ptr<TrainingJob>> ReadRun(const std::string& folder,
                                                     const std::map<std::string, std::string>& changes) {
  WEFT_ASSIGN_OR_RETURN(const RunDirectory run, RunDirectory::Read(folder));
  const std::string kind = KindOf(run.config());
  if (kind.empty()) return absl::FailedPreconditionError(absl::StrCat(folder, " holds no run of a training"));
  std::unique_ptr<TrainingJob> job = MakeJob(kind);
  const Hyperparameters table = job->Table();
  for (const auto& [flag, text] : changes) {
    const bool known =
        std::any_of(table.begin(), table.end(), [&, &name = flag](const auto& r) { return r.flag == name; });
    if (!known) return InvalidArgument(flag, ": train ", kind, ", whose run this is, has no such option");
  }
  WEFT_RETURN_IF_ERROR(SetOptions({.name = kind, .resumed = &run, .given = changes}, job.get()));
  WEFT_RETURN_IF_ERROR(Validate(job->training()));
  WEFT_RETURN_IF_ERROR(Annotate(job->Check(&run), folder));
  return job;
}

}  // namespace weft
