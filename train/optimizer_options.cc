// This file has the rows of all settings of all optimizers. Which optimizers use a setting follows from the table of
// optimizers.
#include "weft/train/optimizer_options.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr double kBelowOne = 0.99999999, kNoLimit = std::numeric_limits<double>::infinity();

// A setting that some optimizers use.
template <class T>
struct SettingRow {
  const char *name, *help;
  std::optional<T> OptimizerSettings::*value;
  double high = kNoLimit;
};

constexpr SettingRow<double> kNumbers[] = {
    {"momentum", "decay rate of the running sum of gradients", &OptimizerSettings::momentum, kBelowOne},
    {"beta1", "decay rate of the mean gradient", &OptimizerSettings::beta1, kBelowOne},
    {"beta2", "decay rate of the mean squared gradient; lion: of the mean gradient that it keeps",
     &OptimizerSettings::beta2, kBelowOne},
    {"epsilon", "number added to the divisor of an update, against division by 0", &OptimizerSettings::epsilon},
    {"weight-decay", "factor of weight decay; adam, sgd and adagrad apply it to all weights, others to matrices only",
     &OptimizerSettings::weight_decay},
    {"rate-decay", "the rate in step s is divided by 1 + (s - 1) * this number", &OptimizerSettings::rate_decay},
    {"beta2-decay", "the decay rate of squares in step s is 1 - s ^ -(this number)", &OptimizerSettings::beta2_decay},
    {"adamw-rate", "factor of the learning rate for embeddings, output layers and vectors, which adamw updates",
     &OptimizerSettings::adamw_rate},
};
constexpr SettingRow<bool> kSwitches[] = {
    {"nesterov", "look ahead along the running sum of gradients", &OptimizerSettings::nesterov},
};

// Calls `visit` with each row.
template <class Visit>
void ForEachSetting(Visit visit) {
  for (const SettingRow<double>& row : kNumbers) visit(row);
  for (const SettingRow<bool>& row : kSwitches) visit(row);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : Optimizers()) names.emplace_back(row.name);
  return names;
}

}  // namespace

OptimizerSettings OptimizerOptions::Defaults() const {
  if (name == initial.row().name) return initial.settings();
  const OptimizerRow* const row = FindOptimizer(name);
  return row != nullptr ? row->defaults : OptimizerSettings();
}

absl::StatusOr<Optimizer> OptimizerOptions::Make() const {
  const OptimizerRow* const row = FindOptimizer(name);
  if (row == nullptr) {
    return InvalidArgument("optimizer: there is no '", name, "'", DidYouMean(name, Names()));
  }
  OptimizerSettings settings = Defaults();
  absl::Status status;
  ForEachSetting([&](const auto& setting) {
    const auto value = given.*setting.value;
    if (!value) return;
    if (!(row->defaults.*setting.value)) {
      status.Update(InvalidArgument(setting.name, ": the optimizer ", name, " has no such setting"));
    }
    settings.*setting.value = value;
  });
  WEFT_RETURN_IF_ERROR(status);
  settings.clip = given.clip;
  settings.clip_value = given.clip_value;
  settings.groups = initial.settings().groups;
  if (!groups.empty()) {
    WEFT_ASSIGN_OR_RETURN(settings.groups, ParseParameterGroups(groups));
  }
  return Optimizer(*row, settings);
}

Hyperparameters OptimizerHyperparameters(OptimizerOptions* options) {
  Hyperparameters table = {{"optimizer", "how weights are updated", &options->name, {.choices = Names()}}};
  ForEachSetting([&](const auto& setting) {
    std::vector<absl::string_view> users;
    for (const OptimizerRow& row : Optimizers()) {
      if (row.defaults.*setting.value) users.push_back(row.name);
    }
    const auto unset = [options, value = setting.value]() -> nlohmann::ordered_json {
      const auto otherwise = options->Defaults().*value;
      if (!otherwise) return nullptr;
      return *otherwise;
    };
    table.push_back({setting.name,
                     absl::StrCat(setting.help, " (", absl::StrJoin(users, ", "), ")"),
                     &(options->given.*setting.value),
                     {.low = 0, .high = setting.high, .unset = unset}});
  });
  table.push_back({"clip", "maximum global norm of the gradients; 0: no maximum", &options->given.clip, {.low = 0}});
  table.push_back({"clip-value",
                   "maximum absolute value of a gradient's element; 0: no maximum",
                   &options->given.clip_value,
                   {.low = 0}});
  table.push_back({"groups",
                   "other settings for some weights, by patterns on their names: '*.bias:decay=0; wte.*:frozen; "
                   "h.0.*:rate=0.5'; the first match applies",
                   &options->groups,
                   {.may_be_empty = true}});
  return table;
}

absl::Status Validate(const OptimizerOptions& options) { return options.Make().status(); }

}  // namespace weft
