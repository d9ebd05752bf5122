// `weft estimate train NAME` takes the flags of `weft train NAME` and tells what that training would take.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/train/run_training.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/lab/estimate/available_memory.h"
#include "weft/lab/estimate/training_estimate.h"
#include "weft/train/jobs/job_list.h"

namespace weft {
namespace {

struct EstimateFlags : RunFlags {
  bool measure = true, json = false;
  double seconds = 3;
};

Hyperparameters Table(EstimateFlags* flags) {
  Hyperparameters table = InGroup(
      "Estimate",
      {{"measure", "measure some steps; off: the times are those of the cost model, which are rough", &flags->measure},
       {"measure-seconds", "duration of the measurement, in seconds", &flags->seconds, {.low = 0.01, .high = 3600}},
       {"json", "print a JSON object", &flags->json}});
  Append(RunTable(flags), &table);
  return table;
}

std::string Megabytes(uint64_t bytes) { return absl::StrFormat("%.1f MB", static_cast<double>(bytes) * 1e-6); }

std::string Duration(double seconds) {
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  if (seconds < 120) return absl::StrFormat("%.3g s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.1f minutes", seconds / 60);
  return absl::StrFormat("%.1f hours", seconds / 3600);
}

// Returns how the times were found.
std::string Basis(const TrainingEstimate& estimate) {
  const MachineSpeed& speed = estimate.speed;
  if (speed.steps == 0) return "by the cost model, without a measurement";
  const std::string steps = absl::StrCat(speed.steps, speed.steps == 1 ? " step" : " steps");
  if (estimate.measured_batch == estimate.batch) return absl::StrCat("measured ", steps, " of this training");
  return absl::StrCat("measured ", steps, " of a batch of ", estimate.measured_batch, ", scaled by the cost model");
}

nlohmann::ordered_json ToJson(const TrainingEstimate& estimate, uint64_t available) {
  const TrainingMemory& memory = estimate.memory;
  const TrainingTime& time = estimate.time;
  return {{"planned_bytes", memory.planned},
          {"evaluation_bytes", memory.evaluation},
          {"weight_bytes", memory.weights},
          {"state_bytes", memory.state},
          {"worker_bytes", memory.workers},
          {"code_bytes", memory.code},
          {"process_bytes", memory.process},
          {"resident_bytes", memory.resident()},
          {"available_bytes", available},
          {"steps", time.steps},
          {"step_seconds", time.step_seconds},
          {"tokens_per_second", time.tokens_per_second},
          {"evaluations", time.evaluations},
          {"evaluation_seconds", time.evaluation_seconds},
          {"run_seconds", time.run_seconds()},
          {"measured_steps", estimate.speed.steps},
          {"measured_batch", estimate.measured_batch},
          {"batch", estimate.batch}};
}

void Print(const TrainingEstimate& estimate, uint64_t available) {
  const TrainingMemory& memory = estimate.memory;
  const TrainingTime& time = estimate.time;
  const auto row = [](const std::string& name, const std::string& value, const std::string& note) {
    std::printf("%-22s %14s%s%s\n", name.c_str(), value.c_str(), note.empty() ? "" : "  ", note.c_str());
  };
  row("planned", Megabytes(memory.planned), "values and gradients of a step");
  row("evaluation", Megabytes(memory.evaluation), "values of an evaluation");
  row("weights", Megabytes(memory.weights), "");
  row("optimizer", Megabytes(memory.state), "moments and averages");
  row("workers", Megabytes(memory.workers), "workspaces and constants");
  row("code", Megabytes(memory.code), "code that training runs, or generates for its shapes");
  row("process", Megabytes(memory.process), "program, data and graphs, measured");
  row("resident", Megabytes(memory.resident()),
      available > 0 ? absl::StrCat("maximum; ", Megabytes(available), " are available") : "maximum");
  row("step", Duration(time.step_seconds), absl::StrFormat("%.0f tokens a second", time.tokens_per_second));
  row("evaluation", Duration(time.evaluation_seconds), absl::StrCat(time.evaluations, " in the run"));
  row("run", Duration(time.run_seconds()), absl::StrCat(time.steps, " steps, without saving"));
  std::printf("\ntimes: %s\n", Basis(estimate).c_str());
}

absl::Status Estimate(EstimateFlags flags) {
  // A new run's folder does not matter.
  const RunDirectoryOptions where = flags.run.resume ? flags.run : RunDirectoryOptions{.name = flags.run.name};
  WEFT_ASSIGN_OR_RETURN(const RunDirectory run, FindRun(where));
  const auto make = [&](const OptionTexts& changes) { return ReadJob(flags, run, changes); };
  const uint64_t available = AvailableMemory();
  WEFT_ASSIGN_OR_RETURN(
      const TrainingEstimate estimate,
      UsageError(EstimateTraining(make, {.seconds = flags.measure ? flags.seconds : 0, .available = available})));
  if (flags.json) {
    std::printf("%s\n", JsonLine(ToJson(estimate, available)).c_str());
  } else {
    Print(estimate, available);
  }
  return absl::OkStatus();
}

// Returns the flags of examples that name the data of `weft train NAME`.
std::string DataFlags(absl::string_view name) {
  if (name == "translate") return " --source=en.txt --target=de.txt";
  if (name == "classify") return " --data=reviews.tsv";
  if (name == "vit") return " --data=digits.csv";
  return "";
}

}  // namespace

Command EstimateCommand(CLI::App* weft, const std::string& name) {
  const std::string training(absl::StripPrefix(name, "estimate "));
  auto flags = std::make_shared<EstimateFlags>();
  flags->run.name = std::string(absl::StripPrefix(training, "train "));
  const std::string example = absl::StrCat("weft ", name, DataFlags(flags->run.name));
  Command command = MakeCommand(
      weft, name,
      {absl::StrCat("Estimates memory and time of `weft ", training, "`."),
       absl::StrCat("tells the memory and time of weft ", training),
       {{"Tells what a larger batch takes.", absl::StrCat(example, " --batch=64")},
        {"Prints a JSON object, with times of the cost model.", absl::StrCat(example, " --no-measure --json")}}},
      flags, Table, Estimate);
  AddFlags(command.app, MakeJob(flags->run.name)->Table(), &flags->given);
  return command;
}

}  // namespace weft
