// Measures upper bounds of this machine's speed: multiply-adds per second and memory bandwidth. With --model, also
// measures a lower bound of a step's time: the sum of its matrix products, each alone and at its best tiling, and of
// AdamW.
//
//   bazel run -c opt //bench:ceiling
//   bazel run -c opt //bench:ceiling -- --model=gpt2 --threads=2 --json
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/peak_bf16.h"
#include "weft/bench/products.h"
#include "weft/bench/row.h"
#include "weft/lab/machine/peak.h"
#include "weft/lab/real_graphs.h"

namespace weft {
namespace {

struct Options {
  std::string model, precision = "f32";
  int64_t batch = 0, length = 0;  // 0: the model's
  int threads = 0;
  double seconds = 0.2;
  bool json = false;
};

constexpr size_t kArrayBytes = size_t{256} << 20;  // 256 MiB: more than all caches hold

std::string Name(const GemmShape& shape) {
  char name[100];
  std::snprintf(name, sizeof name, "%lld x [%lld,%lld]%s [%lld,%lld]%s", static_cast<long long>(shape.batch),
                static_cast<long long>(shape.rows), static_cast<long long>(shape.inner), shape.transpose_a ? "'" : "",
                static_cast<long long>(shape.inner), static_cast<long long>(shape.cols), shape.transpose_b ? "'" : "");
  return name;
}

nlohmann::ordered_json MeasurePeaks(Team* team, double seconds) {
  const Bandwidth bandwidth = PeakBandwidth(team, kArrayBytes, seconds);
  const double bf16 = PeakBF16(team, seconds);
  nlohmann::ordered_json row = {{"threads", team->threads()},
                                {"f32_gflops", PeakF32(team, seconds) * 1e-9},
                                {"bf16_gflops", nullptr},
                                {"read_gb_per_second", bandwidth.read * 1e-9},
                                {"write_gb_per_second", bandwidth.write * 1e-9},
                                {"copy_gb_per_second", bandwidth.copy * 1e-9}};
  if (bf16 > 0) row["bf16_gflops"] = bf16 * 1e-9;
  return row;
}

void AddFloor(Team* team, const Options& options, nlohmann::ordered_json* row) {
  const BenchModel& model = *FindBenchModel(options.model);
  const int64_t batch = options.batch > 0 ? options.batch : model.batch;
  const int64_t length = options.length > 0 ? options.length : model.length;
  Tape tape;
  RecordModel(&tape, model, batch, length);
  double products_seconds = 0, adamw_seconds = 0;
  nlohmann::ordered_json products = nlohmann::ordered_json::array();
  for (const StepProduct& product : ProductsOf(tape, model, options.precision == "bf16" ? kBF16 : kF32)) {
    const Tiling best = BestTiling(team, product, options.seconds);
    products_seconds += best.seconds * static_cast<double>(product.count);
    products.push_back({{"product", Name(product.shape)},
                        {"count", product.count},
                        {"tile", {best.batch, best.rows, best.cols}},
                        {"ms", best.seconds * 1e3},
                        {"gflops", product.flops() / best.seconds * 1e-9}});
  }
  if (model.trains) {
    int64_t weights = 0;
    for (const Var& weight : tape.Weights()) weights += weight.shape().elements();
    adamw_seconds = AdamWSeconds(weights, team->threads(), options.seconds);
  }
  row->update({{"model", model.name},
               {"batch", batch},
               {"length", length},
               {"precision", options.precision},
               {"floor_ms", (products_seconds + adamw_seconds) * 1e3},
               {"products_ms", products_seconds * 1e3},
               {"adamw_ms", adamw_seconds * 1e3},
               {"products", products}});
}

void PrintTable(const nlohmann::ordered_json& row) {
  nlohmann::ordered_json figures = row;
  figures.erase("products");
  PrintRow(figures, /*json=*/false, /*width=*/20);
  if (!row.contains("products")) return;
  std::printf("\n%-40s %5s %-18s %10s %9s\n", "product ('): stored transposed", "count", "tile", "ms", "GFLOP/s");
  for (const auto& product : row["products"]) {
    std::printf("%-40s %5d %-18s %10.3f %9.1f\n", product["product"].get<std::string>().c_str(),
                product["count"].get<int>(), product["tile"].dump().c_str(), product["ms"].get<double>(),
                product["gflops"].get<double>());
  }
}

int Measure(Options options) {
  if (!(options.seconds > 0)) throw CLI::ValidationError("--seconds", "not a number");
  Team team(options.threads > 0 ? options.threads : Cores());
  nlohmann::ordered_json row = MeasurePeaks(&team, options.seconds);
  if (!options.model.empty()) AddFloor(&team, options, &row);
  options.json ? PrintRow(row, /*json=*/true) : PrintTable(row);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the machine's peak speeds, and a lower bound of the time of a model's step.", "ceiling");
  SetUp(&app);
  app.add_option("--model", options.model, "also measure the lower bound of a step of this model")
      ->check(CLI::IsMember(RowNames(BenchModels())));
  app.add_option("--batch", options.batch, "texts in a step; 0: the model's own number")->check(CLI::Range(0, 1 << 16));
  app.add_option("--length", options.length, "tokens of a text; 0: the model's own number")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--precision", options.precision, "number format of the products")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", options.threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--seconds", options.seconds, "measuring time of each figure")->check(CLI::Range(1e-6, 1e3));
  app.add_flag("--json", options.json, "print one JSON object instead of tables");
  return RunProgram(&app, argc, argv, [&] { return Measure(options); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
