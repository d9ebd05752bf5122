// Measures the machine's present speed each time that a line arrives on standard input, and tells whether another round
// of a measurement is needed (bench/rounds.h). The comparisons in this folder keep it running. It answers with a
// JSON object, and ends after the last round, whose answer says which rounds count:
//
//   $ yes | bazel-bin/bench/probe --threads=2 --rounds=1
//   {"go_on":true}
//   {"go_on":false,"counted":[true],"report":"1 of 1 rounds ran at 95% of full speed or above; ..."}
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/base/cores.h"
#include "weft/bench/command_line.h"

namespace weft {
namespace {

int Probe(int threads, int wanted) {
  Rounds rounds = MakeRounds(wanted, /*probe=*/true, threads > 0 ? threads : Cores());
  bool go_on = true;
  for (std::string line; go_on && std::getline(std::cin, line);) {
    nlohmann::ordered_json answer = {{"go_on", go_on = rounds.GoOn()}};
    if (!go_on) answer.update({{"counted", rounds.Counted()}, {"report", rounds.Report()}});
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  int threads = 0, rounds = 1;
  CLI::App app(
      "Tells which rounds of a measurement ran at the machine's full speed. It measures when a line arrives on "
      "standard input.",
      "probe");
  SetUp(&app);
  app.add_option("--threads", threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--rounds", rounds, "number of rounds that must count")->check(CLI::Range(1, 100'000));
  return RunProgram(&app, argc, argv, [&] { return Probe(threads, rounds); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
