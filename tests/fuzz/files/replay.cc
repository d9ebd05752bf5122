// Runs a fuzz target on its seeds, on all their prefixes and, for a few seconds, on mutations of them. The order of
// inputs is always the same. With --write, writes each seed to a file instead, as a corpus for libFuzzer.
//
//   bazel run -c opt //tests/fuzz/files:config_replay -- --write=corpus
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

void Give(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Returns a seed with bytes changed, removed, doubled, or replaced by bytes of another seed.
std::string Mutated(const std::vector<std::string>& seeds, std::mt19937* random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : (*random)() % n; };
  std::string input = seeds[below(seeds.size())];
  for (size_t changes = 1 + below(4); changes > 0 && !input.empty(); --changes) {
    const size_t at = below(input.size()), length = std::min(input.size() - at, 1 + below(8));
    switch (below(5)) {
      case 0:
        input[at] = static_cast<char>(below(256));
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ 1 << below(8));
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(at, input.substr(at, length));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        const size_t from = below(other.size());
        input.replace(at, length, other.substr(from, 1 + below(16)));
      }
    }
  }
  return input;
}

int Replay(double seconds) {
  const std::vector<std::string> seeds = Seeds();
  for (const std::string& seed : seeds) {
    Give(seed);
    if (!accepted) {
      std::cerr << "a seed is not read: " << seed << "\n";
      return 1;
    }
    for (size_t size = 0; size < seed.size(); ++size) Give(seed.substr(0, size));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::mt19937 random(1);
  int64_t mutations = 0, read = 0;
  for (; std::chrono::steady_clock::now() < end; ++mutations) {
    Give(Mutated(seeds, &random));
    read += accepted;
  }
  std::cout << seeds.size() << " seeds, " << mutations << " mutations, of which " << read << " are read\n";
  return 0;
}

int Write(const std::string& folder) {
  std::filesystem::create_directories(folder);
  int count = 0;
  for (const std::string& seed : Seeds()) {
    std::ofstream file(folder + "/seed" + std::to_string(count++), std::ios::binary);
    if (!(file << seed).flush()) {
      std::cerr << "can't write into " << folder << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  double seconds = 5;
  std::string write;
  CLI::App app("Gives a reader of files its seeds and mutations of them.");
  app.option_defaults()->always_capture_default();
  app.add_option("--seconds", seconds, "of mutations")->check(CLI::NonNegativeNumber);
  app.add_option("--write", write, "a folder that the seeds are written into, and nothing else is done");
  CLI11_PARSE(app, argc, argv);
  return write.empty() ? weft::Replay(seconds) : weft::Write(write);
}
