// Collects the figures of runs as JSON, which the scripts of run_page.html draw.
#include "weft/lab/reports/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/lab/reports/run_page.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxPoints = 24'000;        // of one figure of all runs: about 500 kB of JSON
constexpr size_t kMaxPointsOfCurve = 4'000;  // more than twice the pixels of a wide chart
constexpr size_t kMaxFigures = 40;           // of a run; a training of Weft has fewer than 20
constexpr size_t kMaxClockPoints = 400;      // the page interpolates tokens and seconds between them
constexpr size_t kMaxSamples = 40, kMaxSampleBytes = 2'000;
constexpr size_t kMaxValueBytes = 300;    // of a value of a configuration
constexpr size_t kMaxCells = 6'000;       // histograms of weights in a page: at most 150 bytes each
constexpr size_t kMaxEvaluations = 40;    // of a run
constexpr size_t kFewestEvaluations = 8;  // weights are left out before fewer evaluations are shown

// The running mean of the training loss is of a fiftieth of the longest run, so that it is smooth in each chart.
constexpr size_t kMinMeanSteps = 5, kMeansOfRun = 50;
constexpr char kTrainingLoss[] = "train_loss";

// Returns the number with 6 digits, which are enough to draw it, or null if it is not finite.
Json Short(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr);
}

Json ToJson(const Curve& curve) {
  Json steps = Json::array(), values = Json::array();
  for (const Point& point : curve) {
    steps.push_back(point.step);
    values.push_back(Short(point.value));
  }
  return {{"steps", std::move(steps)}, {"values", std::move(values)}};
}

std::optional<int64_t> Count(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  constexpr double kMax = 1e15;  // JavaScript's integers are exact up to 9e15
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value >= 0 && value <= kMax)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Adds the values of `config` as texts. The key of a value in an object is "OBJECT.KEY".
void Flatten(const Json& config, const std::string& prefix, std::map<std::string, std::string>* values) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_object() && !value.empty()) {
      Flatten(value, absl::StrCat(prefix, key, "."), values);
    } else {
      const std::string text = value.is_string() ? value.get<std::string>() : JsonLine(value);
      (*values)[prefix + key] = Shortened(text, kMaxValueBytes, " ...");
    }
  }
}

// Returns the rows [key, value of each run or null], and the number of keys left out because all runs agree.
Json CompareConfigurations(const std::vector<Json>& configs) {
  std::vector<std::map<std::string, std::string>> values(configs.size());
  std::set<std::string> keys;
  for (size_t i = 0; i < configs.size(); ++i) {
    Flatten(configs[i], "", &values[i]);
    for (const auto& [key, value] : values[i]) keys.insert(key);
  }
  Json rows = Json::array();
  int64_t equal = 0;
  for (const std::string& key : keys) {
    Json row = Json::array({key});
    bool differs = configs.size() == 1;  // of one run, all keys are shown
    for (const auto& of_run : values) {
      const auto found = of_run.find(key);
      row.push_back(found == of_run.end() ? Json() : Json(found->second));
      differs |= row.back() != row[1];
    }
    if (differs) rows.push_back(std::move(row));
    equal += differs ? 0 : 1;
  }
  return {{"rows", std::move(rows)}, {"equal", equal}};
}

Json Samples(absl::Span<const nlohmann::json> evaluations) {
  std::vector<const nlohmann::json*> with_sample;
  for (const nlohmann::json& line : evaluations) {
    if (line.contains("sample") && line["sample"].is_string()) with_sample.push_back(&line);
  }
  Json samples = Json::array();
  for (const nlohmann::json* const line : TakeEvenly(with_sample, kMaxSamples)) {
    samples.push_back({Count(*line, "step").value_or(0),
                       Shortened((*line)["sample"].get_ref<const std::string&>(), kMaxSampleBytes, " ...")});
  }
  return {{"texts", std::move(samples)}, {"of", with_sample.size()}};
}

Json Rounded(const nlohmann::json& line, const char* key, double digits) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return nullptr;
  const double value = found->get<double>(), scale = std::pow(10, digits);
  return std::isfinite(value) ? Json(std::round(value * scale) / scale) : Json();
}

// Returns [low, high, [counts]], or null if the weight has no finite value.
Json Histogram(const nlohmann::json& weight) {
  const auto low = weight.find("low"), high = weight.find("high"), counts = weight.find("counts");
  if (counts == weight.end() || !counts->is_array() || low == weight.end() || high == weight.end()) return nullptr;
  if (!absl::c_all_of(*counts, [](const nlohmann::json& count) { return count.is_number(); })) return nullptr;
  return {Rounded(weight, "low", 5), Rounded(weight, "high", 5), Json(*counts)};
}

// Calls `take` with the name of each weight that a line of insights.jsonl has, and with its figures.
template <class Take>
void ForEachWeight(const nlohmann::json& line, Take take) {
  for (const nlohmann::json& weight : line["weights"]) {
    if (!weight.is_object() || !weight.contains("name") || !weight["name"].is_string()) continue;
    take(weight["name"].get<std::string>(), weight);
  }
}

// Returns {"names": [...], "steps": [...], "updates": [...], "histograms": [...], "of": N, "of_names": M}: histograms
// of a run's weights, and how fast the weights change. Element [layer][evaluation] of "updates" is log10 of the
// update's RMS divided by the weight's RMS, or null; that of "histograms" is [lowest, highest, [counts]], or null.
// `evaluations`: the lines of insights.jsonl, which docs/commands.md describes. `runs`: the number of runs that share
// the page. Many evaluations are thinned out evenly, and "of" is their number before that. Likewise "of_names" for the
// weights, of which the first remain.
Json Layers(absl::Span<const nlohmann::json> evaluations, size_t runs) {
  std::vector<const nlohmann::json*> lines;
  std::map<std::string, size_t> rows;
  Json names = Json::array();
  for (const nlohmann::json& line : evaluations) {
    if (!line.contains("weights") || !line["weights"].is_array()) continue;
    lines.push_back(&line);
    ForEachWeight(line, [&](const std::string& name, const nlohmann::json&) {
      if (rows.try_emplace(name, rows.size()).second) names.push_back(name);
    });
  }
  const size_t of = lines.size(), of_names = names.size(), cells = kMaxCells / std::max<size_t>(runs, 1);
  const size_t most = std::clamp(cells / std::max<size_t>(of_names, 1), kFewestEvaluations, kMaxEvaluations);
  lines = TakeEvenly(lines, most);
  const size_t kept = std::min(of_names, std::max<size_t>(1, cells / std::max<size_t>(lines.size(), 1)));
  names.get_ref<Json::array_t&>().resize(kept);
  Json updates(kept, Json(lines.size(), nullptr)), histograms = updates, steps = Json::array();
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto step = lines[i]->find("step");
    steps.push_back(step != lines[i]->end() && step->is_number() ? Json(*step) : Json());
    ForEachWeight(*lines[i], [&](const std::string& name, const nlohmann::json& weight) {
      const size_t row = rows[name];
      if (row >= kept) return;
      updates[row][i] = Rounded(weight, "log10_update", 2);
      histograms[row][i] = Histogram(weight);
    });
  }
  return {{"names", std::move(names)},     {"steps", std::move(steps)},           {"of", of},
          {"updates", std::move(updates)}, {"histograms", std::move(histograms)}, {"of_names", of_names}};
}

}  // namespace

absl::StatusOr<bool> JsonLines::Read(absl::FunctionRef<void()> restart, absl::FunctionRef<void(nlohmann::json)> add) {
  absl::StatusOr<std::string> contents = ReadFile(path_);
  if (absl::IsNotFound(contents.status())) contents = std::string();
  if (!contents.ok()) return contents.status();
  const absl::string_view text = *contents;
  bool changed = false;
  if (end_ > 0 && (text.size() < end_ || text.substr(end_ - last_line_.size(), last_line_.size()) != last_line_)) {
    restart();
    changed = true;
    end_ = 0;
    damaged_ = 0;
    last_line_.clear();
  }
  while (true) {
    const size_t newline = text.find('\n', end_);
    if (newline == text.npos) return changed;
    const absl::string_view line = text.substr(end_, newline - end_);
    end_ = newline + 1;
    last_line_ = std::string(line) + "\n";
    if (line.empty()) continue;
    // A run may have 100,000 lines. ParseJsonObject would also explain errors, and takes several times as long.
    nlohmann::json json = ParseJson(line);
    if (json.is_object()) {
      add(std::move(json));
      changed = true;
    } else {
      ++damaged_;
    }
  }
}

RunReport::Run::Run(std::string path)
    : folder(std::move(path)), metrics(folder + "/metrics.jsonl"), insights(folder + "/insights.jsonl") {}

absl::StatusOr<RunReport> RunReport::Open(absl::Span<const std::string> folders, const std::string& text) {
  if (folders.size() > kMaxReportedRuns) {
    return InvalidArgument("a report shows at most ", kMaxReportedRuns, " runs, not ", folders.size());
  }
  RunReport report;
  for (const std::string& folder : folders) {
    Run run(folder);
    if (!Exists(folder)) return absl::NotFoundError(absl::StrCat(folder, ": there is no such run"));
    absl::StatusOr<Json> config = ReadJsonFile(folder + "/config.json");
    if (absl::IsNotFound(config.status())) {
      return absl::NotFoundError(
          absl::StrCat(folder, ": this is no run of a training, or the training has not begun: no config.json"));
    }
    if (!config.ok()) return config.status();
    const auto command = config->find("command");
    if (command == config->end() || !command->is_string() ||
        !absl::StartsWith(command->get_ref<const std::string&>(), "train ")) {
      return InvalidArgument(folder, ": this is no run of a training: its config.json has no command 'train ...'");
    }
    run.config = *std::move(config);
    if (!text.empty()) run.attention.emplace(folder, text, folders.size());
    report.runs_.push_back(std::move(run));
  }
  WEFT_RETURN_IF_ERROR(report.Update().status());
  return report;
}

absl::StatusOr<bool> RunReport::Update() {
  bool changed = false;
  for (Run& run : runs_) {
    WEFT_ASSIGN_OR_RETURN(const bool run_changed, Annotate(Update(&run), run.folder));
    changed |= run_changed;
  }
  return changed;
}

absl::StatusOr<bool> RunReport::Update(Run* run) {
  // The order matters: a training that ends between these lines has written its files before.
  const bool running = IsLocked(run->folder), changed_state = running != run->running;
  run->running = running;
  const absl::StatusOr<Json> config = ReadJsonFile(run->folder + "/config.json");
  if (config.ok()) run->config = *config;  // a resumed run may have more steps
  const auto restart = [&] {
    run->figures.clear();
    run->tokens.clear();
    run->seconds.clear();
    run->step = -1;
    run->skipped = run->disorder = 0;
  };
  const auto add = [&](const nlohmann::json& line) { AddLine(line, run); };
  WEFT_ASSIGN_OR_RETURN(const bool metrics, run->metrics.Read(restart, add));
  WEFT_ASSIGN_OR_RETURN(const bool insights,
                        run->insights.Read([&] { run->evaluations.clear(); },
                                           [&](auto line) { run->evaluations.push_back(std::move(line)); }));
  const bool attention = run->attention && run->attention->Update();
  return changed_state || metrics || insights || attention;
}

void RunReport::AddLine(const nlohmann::json& line, Run* run) {
  const std::optional<int64_t> step = Count(line, "step");
  if (!step || *step <= run->step) {
    ++run->disorder;
    return;
  }
  run->step = *step;
  if (line.contains("skipped")) ++run->skipped;
  for (const auto& [key, value] : line.items()) {
    if (key == "step" || key == "skipped" || !value.is_number()) continue;
    const Point point = {*step, value.get<double>()};
    if (!std::isfinite(point.value)) continue;
    if (key == "tokens" || key == "seconds") {
      (key == "tokens" ? run->tokens : run->seconds).push_back(point);
      continue;
    }
    if (run->figures.size() == kMaxFigures && run->figures.count(key) == 0) continue;
    run->figures[key].push_back(point);
  }
}

int64_t RunReport::steps() const {
  int64_t steps = 0;
  for (const Run& run : runs_) steps += std::max<int64_t>(run.step, 0);
  return steps;
}

bool RunReport::going_on() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.running; });
}

std::string RunReport::Page(int reload_seconds) const {
  size_t longest = 0;
  std::vector<Json> configs;
  for (const Run& run : runs_) {
    configs.push_back(run.config);
    longest = std::max(longest, static_cast<size_t>(std::max<int64_t>(run.step, 0)));
  }
  const size_t window = std::max(kMinMeanSteps, longest / kMeansOfRun);
  const size_t limit = std::min(kMaxPointsOfCurve, kMaxPoints / std::max<size_t>(runs_.size(), 1));
  Json runs = Json::array();
  for (const Run& run : runs_) {
    Json figures = Json::object();
    for (const auto& [key, curve] : run.figures) {
      figures[key] = ToJson(Thin(curve, limit));
      figures[key]["of"] = curve.size();
      if (key == kTrainingLoss) figures[key]["mean"] = ToJson(TakeEvenly(RunningMean(curve, window), limit / 2));
    }
    const auto steps = run.config.find("steps");
    runs.push_back({{"name", run.folder},
                    {"command", run.config.value("command", Json())},
                    {"running", run.running},
                    {"planned", steps != run.config.end() && steps->is_number() ? *steps : Json()},
                    {"step", run.step},
                    {"skipped", run.skipped},
                    {"unread", run.metrics.damaged() + run.insights.damaged() + run.disorder},
                    {"tokens", ToJson(TakeEvenly(run.tokens, kMaxClockPoints))},
                    {"seconds", ToJson(TakeEvenly(run.seconds, kMaxClockPoints))},
                    {"figures", std::move(figures)},
                    {"samples", Samples(run.evaluations)},
                    {"layers", Layers(run.evaluations, runs_.size())}});
    if (run.attention) runs.back()["attention"] = run.attention->ToJson();
  }
  const Json data = {{"runs", std::move(runs)},
                     {"configuration", CompareConfigurations(configs)},
                     {"mean_steps", window},
                     {"points", limit},
                     {"reload_seconds", reload_seconds}};
  return FillPage(kRunPage, JsonLine(data));
}

}  // namespace weft
