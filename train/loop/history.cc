#include "weft/train/loop/history.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/json.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr int64_t kLossWindow = 100;  // losses: enough for a stable deviation, and short enough to follow the training

}  // namespace

std::optional<double> MetricValue(const Metrics& line, absl::string_view metric) {
  const bool averaged = absl::ConsumePrefix(&metric, "ema_");
  for (const auto& [name, value] : line.Evaluated(averaged)) {
    if (absl::StrCat("val_", name) == metric) return value;
  }
  return std::nullopt;
}

bool TrainingHistory::Evaluated(int64_t step, absl::string_view metric, std::optional<double> value) {
  const bool is_loss = absl::EndsWith(metric, "loss");  // larger values of other metrics are better
  const bool better = value && (!best_ || (is_loss ? *value < *best_ : *value > *best_));
  if (!better) {
    ++evaluations_since_best_;
    return false;
  }
  best_ = value;
  best_step_ = step;
  evaluations_since_best_ = 0;
  return true;
}

void TrainingHistory::Trained(double loss) {
  ++losses_;
  const double gain = 1.0 / static_cast<double>(std::min(losses_, kLossWindow));
  const double before = loss - mean_;
  mean_ += gain * before;
  variance_ += gain * (before * (loss - mean_) - variance_);
  skipped_in_a_row_ = 0;
}

void TrainingHistory::Skipped() {
  ++skipped_;
  ++skipped_in_a_row_;
}

double TrainingHistory::LossLimit(double deviations) const {
  if (deviations == 0 || losses_ < kLossWindow) return std::numeric_limits<double>::infinity();
  return mean_ + deviations * std::sqrt(variance_);
}

// The groups "best", "pending" and "pending_training" exist if their values do. An empty group is not written.
std::vector<TrainingHistory::Field> TrainingHistory::Fields() {
  std::vector<Field> fields;
  const auto add = [&](std::initializer_list<Field> more) { fields.insert(fields.end(), more); };
  if (best_) {
    add({{"best", "value", &*best_},
         {"best", "step", &best_step_},
         {"best", "evaluations_since", &evaluations_since_best_}});
  } else {
    add({{"undefined", "evaluations", &evaluations_since_best_, evaluations_since_best_ == 0}});
  }
  const bool no_plateau = !std::isfinite(plateau.best);
  add({{"loss", "count", &losses_},
       {"loss", "mean", &mean_},
       {"loss", "variance", &variance_},
       {"skipped", "count", &skipped_},
       {"skipped", "in_a_row", &skipped_in_a_row_},
       {"plateau", "best", &plateau.best, no_plateau},
       {"plateau", "bad", &plateau.bad, no_plateau},
       {"plateau", "scale", &plateau.scale, no_plateau}});
  if (!pending) return fields;
  add({{"pending", "tokens", &pending->tokens}});
  if (pending->skipped) add({{"pending", "skipped", &*pending->skipped}});
  if (auto& training = pending->training) {
    add({{"pending_training", "loss", &training->loss},
         {"pending_training", "learning_rate", &training->learning_rate},
         {"pending_training", "gradient_norm", &training->gradient_norm},
         {"pending_training", "tokens_per_second", &training->tokens_per_second}});
  }
  return fields;
}

std::string TrainingHistory::ToJson() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  TrainingHistory copy = *this;
  for (const Field& field : copy.Fields()) {
    if (!field.left_out) std::visit([&](const auto* number) { json[field.group][field.key] = *number; }, field.number);
  }
  return json.dump();
}

absl::StatusOr<TrainingHistory> TrainingHistory::FromJson(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ParseJsonObject(text));
  TrainingHistory history;
  if (json.contains("best")) history.best_ = 0;
  if (const auto found = json.find("pending"); found != json.end()) {
    Metrics& pending = history.pending.emplace();
    if (found->is_object() && found->contains("skipped")) pending.skipped = 0;
    if (json.contains("pending_training")) pending.training.emplace();
  }
  for (const Field& field : history.Fields()) {  // a group has all its numbers
    const auto group = json.find(field.group);
    if (group == json.end()) continue;
    if (!group->is_object() || !group->contains(field.key) || !(*group)[field.key].is_number()) {
      return absl::DataLossError(absl::StrCat("the trainer's history has an unreadable '", field.group, "'"));
    }
    std::visit([&](auto* number) { (*group)[field.key].get_to(*number); }, field.number);
  }
  return history;
}

}  // namespace weft
