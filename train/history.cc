#include "weft/train/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/json.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr int64_t kLossWindow = 100;  // losses: enough for a stable deviation, and short enough to follow the training

}  // namespace

std::optional<double> MetricValue(const Metrics::Validation& validation, absl::string_view metric) {
  const bool averaged = absl::ConsumePrefix(&metric, "ema_");
  for (const auto& [name, value] : validation.All(averaged)) {
    if (absl::StrCat("val_", name) == metric) return value;
  }
  return std::nullopt;
}

bool LargerIsBetter(absl::string_view metric) { return !absl::EndsWith(metric, "loss"); }

bool TrainingHistory::Evaluated(int64_t step, absl::string_view metric, std::optional<double> value) {
  const bool better = value && (!best_ || (LargerIsBetter(metric) ? *value > *best_ : *value < *best_));
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

std::string TrainingHistory::ToJson() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (best_) {
    json["best"] = {{"value", *best_}, {"step", best_step_}, {"evaluations_since", evaluations_since_best_}};
  } else if (evaluations_since_best_ > 0) {
    json["undefined"] = {{"evaluations", evaluations_since_best_}};
  }
  json["loss"] = {{"count", losses_}, {"mean", mean_}, {"variance", variance_}};
  json["skipped"] = {{"count", skipped_}, {"in_a_row", skipped_in_a_row_}};
  if (std::isfinite(plateau.best)) {
    json["plateau"] = {{"best", plateau.best}, {"bad", plateau.bad}, {"scale", plateau.scale}};
  }
  if (pending) {
    json["pending"] = {{"tokens", pending->tokens}};
    if (pending->skipped) json["pending"]["skipped"] = *pending->skipped;
    if (const auto& training = pending->training) {
      json["pending_training"] = {{"loss", training->loss},
                                  {"learning_rate", training->learning_rate},
                                  {"gradient_norm", training->gradient_norm},
                                  {"tokens_per_second", training->tokens_per_second}};
    }
  }
  return json.dump();
}

absl::StatusOr<TrainingHistory> TrainingHistory::FromJson(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ParseJsonObject(text));
  TrainingHistory history;
  const char* bad = nullptr;
  // Reads the number json[group][key], which must exist if the group exists.
  const auto read = [&](const char* group, const char* key, auto* value) {
    const auto found = json.find(group);
    if (found == json.end()) return;
    if (!found->is_object() || !found->contains(key) || !(*found)[key].is_number()) {
      bad = group;
      return;
    }
    (*found)[key].get_to(*value);
  };
  if (json.contains("best")) history.best_ = 0;
  read("plateau", "best", &history.plateau.best);
  read("plateau", "bad", &history.plateau.bad);
  read("plateau", "scale", &history.plateau.scale);
  if (json.contains("pending")) {
    Metrics& pending = history.pending.emplace();
    read("pending", "tokens", &pending.tokens);
    if (json["pending"].is_object() && json["pending"].contains("skipped")) {
      read("pending", "skipped", &pending.skipped.emplace());
    }
    if (json.contains("pending_training")) {
      Metrics::Training& training = pending.training.emplace();
      read("pending_training", "loss", &training.loss);
      read("pending_training", "learning_rate", &training.learning_rate);
      read("pending_training", "gradient_norm", &training.gradient_norm);
      read("pending_training", "tokens_per_second", &training.tokens_per_second);
    }
  }
  if (history.best_) read("best", "value", &*history.best_);
  read("best", "step", &history.best_step_);
  read("best", "evaluations_since", &history.evaluations_since_best_);
  read("undefined", "evaluations", &history.evaluations_since_best_);
  read("loss", "count", &history.losses_);
  read("loss", "mean", &history.mean_);
  read("loss", "variance", &history.variance_);
  read("skipped", "count", &history.skipped_);
  read("skipped", "in_a_row", &history.skipped_in_a_row_);
  if (bad != nullptr) return absl::DataLossError(absl::StrCat("the trainer's history has an unreadable '", bad, "'"));
  return history;
}

}  // namespace weft
