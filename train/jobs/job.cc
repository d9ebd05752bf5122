// This file has the code that all jobs share, and reads their options from a configuration.
#include "weft/train/jobs/job.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/options/option_names.h"

namespace weft {

std::string FingerprintOfBytes(absl::string_view bytes, absl::string_view previous) {
  return absl::StrFormat("%016x", StableHash(absl::StrCat(previous, "\n", bytes)));
}

TrainingJob::TrainingJob(TrainingTokenizer* tokenizer, int64_t batch, LoraOptions lora, TrainingOptions training)
    : batch_(batch), lora_(std::move(lora)), training_(std::move(training)), text_tokenizer_(tokenizer) {}

Hyperparameters TrainingJob::AdapterRows() {
  return InGroup(
      "Low-rank adapters",
      {
          {"lora-rank",
           "rank of low-rank adapters (LoRA), which are trained in place of the model's weights; 0: none",
           &lora_.rank,
           {.low = 0, .high = 65536}},
          {"lora-alpha",
           "the result of an adapter is multiplied by lora-alpha / lora-rank",
           &lora_.alpha,
           {.low = 0, .needs = "lora-rank"}},
          {"lora-dropout",
           "probability of dropout for an adapter's input",
           &lora_.dropout,
           {.low = 0, .high = 0.99, .needs = "lora-rank"}},
          {"lora-targets",
           "names of the layers that get adapters, separated by commas; * matches any text, and ? one character; "
           "queries-and-values: the layers that compute attention's queries and values",
           &lora_.targets,
           {.needs = "lora-rank"}},
      });
}

Hyperparameters TrainingJob::WithSharedRows(Hyperparameters rows, Hyperparameters training) {
  Append(source().Table(), &rows);
  Append(InGroup("Training", std::move(training)), &rows);
  if (text_tokenizer_ != nullptr) Append(text_tokenizer_->Table(), &rows);
  Append(AdapterRows(), &rows);
  Append(TrainingHyperparameters(&training_), &rows);
  return rows;
}

absl::Status TrainingJob::Check(const RunDirectory* resumed) {
  if (resumed != nullptr && text_tokenizer_ != nullptr) text_tokenizer_->set_run(resumed->path());
  for (const Hyperparameter& row : Table()) {
    if (row.rules.required && row.text().empty()) return InvalidArgument(row.flag, ": no file was given");
  }
  WEFT_RETURN_IF_ERROR(weft::Validate(lora_));
  WEFT_RETURN_IF_ERROR(CheckMicroBatches(batch_, micro_batches()));
  return source().Check();
}

absl::Status TrainingJob::PrepareTokenizer(absl::string_view text) {
  text_tokenizer_->set_default(source().tokenizer());
  WEFT_RETURN_IF_ERROR(text_tokenizer_->Prepare(text));
  return source().SetVocabulary((*text_tokenizer_)->vocabulary_size());
}

nlohmann::ordered_json TrainingJob::Model() const { return source().Model(); }

std::string TrainingJob::CountParameters(const Parameters& parameters) const {
  const std::string all = absl::StrCat(parameters.ElementCount(), " parameters");
  if (lora_.rank == 0) return all;
  return absl::StrCat(all, " (", parameters.ElementCount(Parameters::kTrained), " of them trained)");
}

absl::Status TrainingJob::WriteFiles(RunDirectory* run) const {
  return text_tokenizer_ != nullptr ? text_tokenizer_->Write(run) : absl::OkStatus();
}

absl::Status TrainingJob::SaveMore(const Parameters& parameters, const std::string& folder) const {
  if (lora_.rank == 0) return absl::OkStatus();
  const nlohmann::ordered_json model = Model();
  const auto type = model.find("model_type");
  return WriteAdapter(folder,
                      {.lora = lora_,
                       .base = source().init(),
                       .model_type = type != model.end() && type->is_string() ? type->get<std::string>() : ""},
                      parameters);
}

absl::Status TrainingJob::CheckDivisible() const {
  if (lora_.rank == 0) return absl::OkStatus();
  return InvalidArgument("shard: weights does not work with low-rank adapters (lora-rank); use optimizer");
}

absl::StatusOr<ProgramCounts> TrainingJob::CountPrograms(int64_t steps) {
  ProgramCounts counts = {.training = std::vector<int64_t>(programs().size()),
                          .evaluation = std::vector<int64_t>(programs().size())};
  const int64_t count = micro_batches();
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

// Reports whether a key of `json` is a name of `option`, its own or one of options/option_names.h.
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
  WEFT_RETURN_IF_ERROR(Annotate(job->source().SetModel(*model, json.contains(kCommandKey)), kModelKey));
  const Json by_model = ToJson(job->source().Table());
  WEFT_RETURN_IF_ERROR(set());
  for (const Hyperparameter& row : job->source().Table()) {
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
    for (const auto& [key, value] : json->items()) {
      if (FindOption(key, {kInit}) == kInit && value.is_string()) return value;
    }
  }
  return "";
}

}  // namespace

absl::Status SetOptions(const OptionSources& sources, TrainingJob* job) {
  Json run, own;
  Json& config = sources.contents != nullptr ? *sources.contents : own;
  if (sources.resumed != nullptr) run = sources.resumed->config();
  if (!sources.config.empty() && config.is_null()) {
    WEFT_ASSIGN_OR_RETURN(config, ReadJsonFile(sources.config));
  }
  std::string init = InitOf(sources, run, config);
  std::error_code error;
  if (!init.empty()) init = std::filesystem::absolute(init, error).string();
  WEFT_RETURN_IF_ERROR(SystemStatus("find", init, error.value()));
  WEFT_RETURN_IF_ERROR(job->source().Begin(run, init));
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
