#include "weft/bench/ranked_step.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/random.h"
#include "weft/lab/machine/measure.h"

namespace weft {
namespace {

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

BenchModel SizesOf(const RankedOptions& options) {
  BenchModel sizes = *FindBenchModel(options.model);
  const auto take = [](int64_t flag, int64_t* of_model) { *of_model = flag > 0 ? flag : *of_model; };
  take(options.batch, &sizes.batch);
  take(options.length, &sizes.length);
  take(options.layers, &sizes.layers);
  take(options.width, &sizes.width);
  return sizes;
}

}  // namespace

void AddRankedFlags(CLI::App* app, RankedOptions* options) {
  std::vector<std::string> trained;
  for (const BenchModel& model : BenchModels()) {
    if (model.trains) trained.push_back(model.name);
  }
  const auto size = [&](const char* flag, int64_t* value, const char* what, int64_t max) {
    app->add_option(flag, *value, absl::StrCat(what, "; 0: the model's own number"))
        ->check(CLI::Range(int64_t{0}, max));
  };
  app->add_option("--model", options->model, "the model")->check(CLI::IsMember(trained));
  size("--batch", &options->batch, "texts in a micro-batch", 1 << 16);
  size("--length", &options->length, "tokens of a text", 1 << 20);
  size("--layers", &options->layers, "number of blocks", 1000);
  size("--width", &options->width, "features of a token", 1 << 16);
  app->add_option("--micro-batches", options->micro_batches, "micro-batches of a step, of all ranks")
      ->check(CLI::Range(1, 1 << 16));
  app->add_option("--precision", options->precision, "number format of products and of the values between ops")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app->add_option("--threads", options->threads, "threads of each rank; 0: the number of cores")
      ->check(CLI::Range(0, 1024));
  app->add_option("--steps", options->steps, "number of steps; the first two don't count")
      ->check(CLI::Range(3, 1'000'000));
  app->add_flag("--json", options->json, "print one JSON object instead of a table");
}

RankedModel::RankedModel(const RankedOptions& options)
    : sizes_(SizesOf(options)), loss_(RecordModel(&tape_, sizes_, sizes_.batch, sizes_.length)) {}

TrainingBatch RankedModel::Batch(int64_t micro_batch) {
  const auto stream = static_cast<uint32_t>(2 * micro_batch);
  fed_tokens_ = RandomTokens(tokens(), sizes_.vocabulary, stream);
  fed_targets_ = RandomTokens(tokens(), sizes_.vocabulary, stream + 1);
  return {
      .feeds = {{loss_.tokens, fed_tokens_}, {loss_.targets, fed_targets_}}, .tokens = tokens(), .targets = tokens()};
}

nlohmann::ordered_json RankedModel::Sizes() const {
  return {{"model", sizes_.name}, {"batch", sizes_.batch}, {"length", sizes_.length}};
}

int64_t PrivateBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

uint64_t WeightChecksum(const Parameters& parameters) {
  uint64_t checksum = 0;
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    const Tensor tensor = *parameters.Find(name);
    checksum = 31 * checksum + StableHash({reinterpret_cast<const char*>(tensor.data), tensor.type.bytes()});
  }
  return checksum;
}

nlohmann::ordered_json RankRow(const RankedOptions& options, const RankedModel& model, int ranks,
                               const RankFigures& figures) {
  const std::vector<double>& steps = figures.step_seconds;
  const double median = Median({steps.begin() + 2, steps.end()});
  const double messages = Sum(figures.message_seconds), hidden = Sum(figures.hidden_seconds);
  nlohmann::ordered_json row = model.Sizes();
  row["micro_batches"] = options.micro_batches;
  row["precision"] = options.precision;
  row["ranks"] = ranks;
  row["threads"] = options.threads;
  row["median_ms"] = median * 1e3;
  row["best_ms"] = *std::min_element(steps.begin() + 1, steps.end()) * 1e3;
  row["first_step_ms"] = steps[0] * 1e3;
  row["tokens_per_second"] = static_cast<double>(model.tokens() * options.micro_batches) / median;
  row["message_ms"] = figures.message_seconds.empty() ? 0 : Median(figures.message_seconds) * 1e3;
  row["hidden_ms"] = figures.hidden_seconds.empty() ? 0 : Median(figures.hidden_seconds) * 1e3;
  row["hidden_fraction"] = messages > 0 ? hidden / messages : 1;
  row["sent_mb"] = static_cast<double>(figures.bytes_sent) * 1e-6;
  row["peak_rss_mb"] = PeakMegabytes();
  if (figures.planned_bytes > 0) {
    row["planned_mb"] = static_cast<double>(figures.planned_bytes) * 1e-6;
    row["private_mb"] = static_cast<double>(figures.private_bytes) * 1e-6;
  }
  row["loss"] = figures.loss;
  row["checksum"] = absl::StrCat(absl::Hex(figures.checksum, absl::kZeroPad16));
  return row;
}

nlohmann::ordered_json CombinedRow(absl::Span<const nlohmann::ordered_json> rows) {
  nlohmann::ordered_json combined = rows[0];
  for (const char* key : {"planned_mb", "private_mb"}) {
    if (!combined.contains(key)) continue;
    combined[key] = nlohmann::ordered_json::array();
    for (const nlohmann::ordered_json& row : rows) combined[key].push_back(row[key]);
  }
  for (const nlohmann::ordered_json& row : rows) {
    for (const char* key : {"median_ms", "best_ms", "first_step_ms", "peak_rss_mb", "sent_mb"}) {
      combined[key] = std::max(combined[key].get<double>(), row[key].get<double>());
    }
    combined["tokens_per_second"] =
        std::min(combined["tokens_per_second"].get<double>(), row["tokens_per_second"].get<double>());
    if (row["hidden_fraction"] >= combined["hidden_fraction"]) continue;
    for (const char* key : {"message_ms", "hidden_ms", "hidden_fraction"}) combined[key] = row[key];
  }
  return combined;
}

}  // namespace weft
