// Measures the machine's present speed each time that a line arrives on standard input, and prints it as a JSON object.
// The comparisons in this folder keep it running, to tell which of their rounds other programs disturbed.
//
//   echo | bazel-bin/bench/probe --threads=2
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/bench/command_line.h"
#include "weft/core/cores.h"
#include "weft/lab/peak.h"

namespace weft {
namespace {

int Probe(int threads) {
  SpeedProbe probe(threads > 0 ? threads : Cores());
  for (std::string line; std::getline(std::cin, line);) {
    const SpeedProbe::Speed speed = probe.Measure();
    const nlohmann::ordered_json json = {{"f32_gflops", speed.flops * 1e-9}, {"read_gb_per_second", speed.read * 1e-9}};
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  int threads = 0;
  CLI::App app("Measures the machine's present speed each time that a line arrives on standard input.", "probe");
  SetUp(&app);
  app.add_option("--threads", threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  return RunProgram(&app, argc, argv, [&] { return Probe(threads); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
