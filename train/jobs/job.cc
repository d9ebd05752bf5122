// This file has the code that all jobs share: the keys of config.json, fingerprints of data, and reading options from a
// configuration.
#include "weft/train/jobs/job.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/json.h"
#include "weft/core/option_names.h"
#include "weft/core/random.h"
#include "weft/core/status.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {

absl::Status MissingFile(absl::string_view option) { return InvalidArgument(option, ": no file was given"); }

std::string FingerprintOfBytes(absl::string_view bytes, absl::string_view previous) {
  return absl::StrFormat("%016x", StableHash(absl::StrCat(previous, "\n", bytes)));
}

absl::Status TrainingJob::SaveMore(const Parameters& parameters, const std::string& folder) const {
  return SaveAdapter(lora(), initial_weights().model, Model(), parameters, folder);
}

absl::Status TrainingJob::CheckDivisible() const {
  if (lora().rank == 0) return absl::OkStatus();
  return InvalidArgument("shard: weights does not work with low-rank adapters (lora-rank); use optimizer");
}

absl::StatusOr<ProgramCounts> TrainingJob::CountPrograms(int64_t steps) {
  ProgramCounts counts = {.training = std::vector<int64_t>(programs().size()),
                          .evaluation = std::vector<int64_t>(programs().size())};
  const int64_t count = training().trainer.micro_batches;
  for (int64_t i = 0; i < count; ++i) {
    WEFT_ASSIGN_OR_RETURN(const TrainingBatch batch, Train(0, {i, count}));
    counts.training[batch.program] += steps;
    counts.evaluation[batch.program] += validation_batches() / count;
  }
  return counts;
}

namespace {

using Json = nlohmann::ordered_json;

// Sets the options at the top level of `json`, a configuration file or a run's config.json.
absl::Status SetFromConfig(const Json& json, const std::string& name, const Hyperparameters& table) {
  if (json.is_object() && json.contains(kCommandKey) && json[kCommandKey] != absl::StrCat("train ", name)) {
    return InvalidArgument("belongs to another command, ", json[kCommandKey].dump());
  }
  return SetFromJson(json, table, {kCommandKey, kModelKey, kVersionKey, kFilesKey});
}

// Reports whether a key of `json` is a name of `option`, its own or one of core/option_names.h.
bool Names(const Json& json, const std::string& option) {
  return absl::c_any_of(json.items(), [&](const auto& item) { return FindOption(item.key(), {option}) == option; });
}

// Sets the options of a configuration file: first those of "model", then the others. Adds to `changed` the options
// whose values the others change.
absl::Status SetFromConfigFile(const Json& json, const std::string& name, TrainingJob* job,
                               std::set<std::string>* changed) {
  const auto set = [&]() -> absl::Status {
    const Hyperparameters table = job->Table();
    std::vector<Json> before;
    for (const Hyperparameter& row : table) before.push_back(row.json());
    WEFT_RETURN_IF_ERROR(SetFromConfig(json, name, table));
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i].json() != before[i]) changed->insert(table[i].flag);
    }
    return absl::OkStatus();
  };
  const auto model = json.is_object() ? json.find(kModelKey) : json.end();
  if (!json.is_object() || model == json.end()) return set();
  WEFT_RETURN_IF_ERROR(Annotate(job->SetModel(*model, json.contains(kCommandKey)), kModelKey));
  const Json by_model = ToJson(job->ModelTable());
  WEFT_RETURN_IF_ERROR(set());
  for (const Hyperparameter& row : job->ModelTable()) {
    const bool in_model = model->contains("model_type") || Names(*model, row.flag);
    const Json before = by_model.value(row.key(), Json());
    if (!in_model || row.json() == before) continue;
    return InvalidArgument("key '", row.key(), "' is ", row.json().dump(), ", but by the key 'model' it is ",
                           before.dump());
  }
  return absl::OkStatus();
}

// Returns the value of the option init, or "".
std::string InitOf(const OptionSources& sources, const Json& run, const Json& config) {
  constexpr char kInit[] = "init";
  if (const auto found = sources.given.find(kInit); found != sources.given.end()) return found->second;
  for (const Json* json : {&config, &run}) {
    if (!json->is_object()) continue;
    for (const auto& [key, value] : json->items()) {
      if (FindOption(key, {kInit}) == kInit && value.is_string()) return value;
    }
  }
  return "";
}

}  // namespace

absl::Status SetOptions(const OptionSources& sources, TrainingJob* job) {
  Json run, config;
  if (sources.resumed != nullptr) run = sources.resumed->config();
  if (!sources.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(config, ReadJsonFile(sources.config));
    if (!config.is_object()) return InvalidArgument(sources.config, ": not a JSON object");
  }
  std::string init = InitOf(sources, run, config);
  if (!init.empty()) init = std::filesystem::absolute(init).string();
  WEFT_RETURN_IF_ERROR(job->Begin(run, init));
  if (sources.resumed != nullptr) {
    WEFT_RETURN_IF_ERROR(
        Annotate(SetFromConfig(run, sources.name, job->Table()), sources.resumed->File("config.json")));
  }
  std::set<std::string> changed;  // by the configuration file
  if (!sources.config.empty()) {
    WEFT_RETURN_IF_ERROR(Annotate(SetFromConfigFile(config, sources.name, job, &changed), sources.config));
  }
  WEFT_RETURN_IF_ERROR(SetFromTexts(sources.given, job->Table()));
  return Annotate(CheckNeeds(changed, job->Table()), sources.config);
}

}  // namespace weft
