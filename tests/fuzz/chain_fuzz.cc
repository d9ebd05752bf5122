// Draws chains of ops for a given time, and checks that they compute the same however they are compiled and run
// (chain_check.h). Exits with code 1 at the first failure, after finding the shortest chain of that seed that fails.
//
//   bazel run -c opt //tests/fuzz:chain_fuzz -- --seconds=3600 --seed=1000000
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>

#include "weft/graph/compile/print.h"
#include "weft/tests/fuzz/chain_check.h"

namespace weft {
namespace {

char current_seed[64];  // a plain array, which a signal handler may read

void SayWhereAndEnd(int signal) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, current_seed, std::strlen(current_seed));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Returns the check of a seed: half of the programs are in f64, the others in f32, of which a third is compiled in
// bf16. `ops`: the number of ops; 0: the seed's own.
ChainCheck CheckOf(uint32_t seed, int ops, uint32_t builds) {
  std::mt19937 random(~seed);  // a stream other than the chain's
  ChainCheck check = {.chain = {.seed = seed}, .builds = builds};
  check.chain.ops = 1 + static_cast<int>(random() % 40);
  if (ops > 0) check.chain.ops = ops;
  if (random() % 2 == 0) {
    check.chain.dtype = kF32;
    if (random() % 3 == 0) check.precision = kBF16;
  }
  check.first_build = static_cast<uint32_t>(random());
  return check;
}

struct FuzzOptions {
  double seconds = 60;
  uint32_t seed = 1, programs = 0, builds = 4;
  int ops = 0;
};

int Fuzz(const FuzzOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint32_t programs = 0;
  while (elapsed() < options.seconds && (options.programs == 0 || programs < options.programs)) {
    const uint32_t seed = options.seed + programs++;
    int ops = CheckOf(seed, options.ops, options.builds).chain.ops;
    std::snprintf(current_seed, sizeof current_seed, "chain_fuzz: at --seed=%u --ops=%d\n", seed, ops);
    absl::Status status = CheckChain(CheckOf(seed, ops, options.builds));
    if (status.ok()) continue;
    for (int fewer = 1; fewer < ops; ++fewer) {
      const absl::Status again = CheckChain(CheckOf(seed, fewer, options.builds));
      if (again.ok()) continue;
      status = again;
      ops = fewer;
    }
    Tape tape;
    RecordRandomChain(CheckOf(seed, ops, 1).chain, &tape);
    std::cerr << PrintText(tape.program()) << "chain_fuzz: " << status
              << "\nchain_fuzz: again with --programs=1 --seed=" << seed << " --ops=" << ops
              << " --builds=" << options.builds << "\n";
    return 1;
  }
  std::cout << programs << " programs, each compiled with " << options.builds << " of " << kBuildCount
            << " sets of passes, in " << static_cast<int>(elapsed()) << " s: no difference\n";
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::FuzzOptions options;
  CLI::App app("Checks that random chains of ops compute the same however they are compiled and run.");
  app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--seconds", options.seconds, "time after which no new program begins")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "seed of the first program; each program has the next one");
  app.add_option("--programs", options.programs, "maximum number of programs; 0: no limit");
  app.add_option("--ops", options.ops, "number of ops in a chain; 0: 1 to 40, by the seed")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--builds", options.builds, "number of sets of passes that each program is compiled with")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer's own handler reports more
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, weft::SayWhereAndEnd);
#endif
  return weft::Fuzz(options);
}
