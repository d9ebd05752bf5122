// Compares the bits of training steps on several numbers of threads and under several policies. The larger models have
// two layers, whose nodes have full size.
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/real_graphs.h"

namespace weft {
namespace {

std::string Bytes(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.type.bytes())};
}

// Runs one step from the initial parameters. Returns the bytes of its results, and of all parameters and optimizer
// states after it, by name.
std::vector<std::pair<std::string, std::string>> RunStep(const Graph& graph, const RealGraph& real, int threads,
                                                         const Policy& policy) {
  Parameters parameters({.seed = 1});
  Runner runner(graph, &parameters, {.threads = threads, .policy = &policy});
  const absl::StatusOr<Outputs> outputs = runner.Run(real.batch.feeds);
  if (!outputs.ok()) {
    ADD_FAILURE() << outputs.status();
    return {};
  }
  std::vector<std::pair<std::string, std::string>> bytes;
  for (const Var& fetched : real.options.fetch) bytes.emplace_back("result", Bytes((*outputs)[fetched]));
  for (const ParameterSpec& spec : graph.compiled().program.parameters) {
    bytes.emplace_back(spec.name, Bytes(*parameters.Find(spec.name)));
  }
  return bytes;
}

class ThreadsTest : public testing::TestWithParam<std::tuple<std::string, DType>> {};

TEST_P(ThreadsTest, NeitherThreadsNorPolicyChangeABit) {
  const auto& [name, precision] = GetParam();
  absl::StatusOr<std::unique_ptr<RealGraph>> real = RecordGraph({.name = name});
  ASSERT_TRUE(real.ok()) << real.status();
  (*real)->options.precision = precision;
  const absl::StatusOr<Graph> graph = Compile(*(*real)->tape, (*real)->options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto serial = RunStep(*graph, **real, 1, kSerial);
  ASSERT_FALSE(serial.empty());
  const auto compare = [&](int threads, const Policy& policy) {
    const auto other = RunStep(*graph, **real, threads, policy);
    ASSERT_EQ(other.size(), serial.size());
    for (size_t i = 0; i < serial.size(); ++i) {
      EXPECT_TRUE(other[i] == serial[i]) << serial[i].first << " on " << threads << " threads, policy " << policy.name;
    }
  };
  for (const int threads : {2, 3, 4, 8, 16}) compare(threads, kCriticalPath);
  compare(2, kFifo);
}

std::string CaseName(const testing::TestParamInfo<std::tuple<std::string, DType>>& info) {
  const auto& [name, precision] = info.param;
  return absl::StrCat(absl::StrReplaceAll(name, {{" ", "_"}, {"-", "_"}}), "_", Name(precision));
}
INSTANTIATE_TEST_SUITE_P(Small, ThreadsTest,
                         testing::Combine(testing::Values("babygpt of two layers", "charcpu", "encoder", "lstm",
                                                          "towers"),
                                          testing::Values(kF32, kBF16)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Large, ThreadsTest,
                         testing::Combine(testing::Values("bert of two layers", "gpt2 of two layers", "minilm-forward",
                                                          "transformer"),
                                          testing::Values(kF32, kBF16)),
                         CaseName);

}  // namespace
}  // namespace weft
