#include "weft/tests/fuzz/chain_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

constexpr double kMinScale =
    1e-3;  // differences are relative to at least this: smaller numbers result from cancellation

double ToleranceOf(DType dtype) { return dtype == kF64 ? 1e-9 : 5e-3; }  // chains amplify rounding errors

struct Result {
  std::string name;  // "fetch 3 of execution 1", "w0"
  Buffer value;
};
using Results = std::vector<Result>;

PassSet Without(uint32_t build) {
  PassSet without;
  for (int pass = 0; pass < kPassCount; ++pass) {
    if ((build >> pass & 1u) == 0) without.insert(static_cast<Pass>(pass));
  }
  return without;
}

std::string BuildName(uint32_t build) {
  std::string name = "[";
  for (int pass = 0; pass < kPassCount; ++pass) {
    if ((build >> pass & 1u) != 0) absl::StrAppend(&name, name.size() > 1 ? " " : "", kPassNames[pass]);
  }
  return name + (build >> kPassCount != 0 ? "] under a memory budget" : "]");
}

class Checker {
 public:
  Checker(const Tape& tape, const RandomChain& chain, DType precision)
      : tape_(tape), chain_(chain), precision_(precision) {}

  absl::StatusOr<Graph> Built(uint32_t build) const {
    CompileOptions options = {
        .fetch = chain_.fetch, .update = chain_.updates, .precision = precision_, .without = Without(build)};
    WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape_, options));
    if (build >> kPassCount == 0) return graph;
    const MemoryFigures& memory = graph.compiled().memory;
    options.memory_budget = std::max<size_t>(1, memory.planned - memory.planned / 4);
    absl::StatusOr<Graph> tight = Compile(tape_, options);
    return absl::IsResourceExhausted(tight.status()) ? graph : tight;
  }

  absl::StatusOr<Results> Run(const Graph& graph, int threads, const Policy* policy) const {
    Parameters parameters({.seed = 5});
    Runner runner(graph, &parameters, {.threads = threads, .policy = policy});
    std::vector<FeedPair> feeds;
    for (const auto& [var, buffer] : chain_.feeds) feeds.emplace_back(var, buffer.tensor());
    Results results;
    for (int run = 0; run < 2; ++run) {
      WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner.Run(feeds));
      for (size_t i = 0; i < chain_.fetch.size(); ++i) {
        results.push_back({absl::StrCat("fetch ", i, " of execution ", run), Buffer(outputs[chain_.fetch[i]])});
      }
    }
    for (const std::string& name : parameters.Names()) results.push_back({name, Buffer(*parameters.Find(name))});
    return results;
  }

 private:
  const Tape& tape_;
  const RandomChain& chain_;
  DType precision_;
};

absl::Status Differ(const std::string& what, const Result& result, const std::string& how) {
  return absl::InternalError(absl::StrCat(what, ": ", result.name, ", ", ToString(result.value.type()), ", ", how));
}

absl::Status ExpectSameBits(const Results& got, const Results& wanted, const std::string& what) {
  WEFT_CHECK(got.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i].value.SameBits(wanted[i].value)) continue;
    const std::vector<double> a = got[i].value.Doubles(), b = wanted[i].value.Doubles();
    const auto same = [](double c, double d) { return c == d || (std::isnan(c) && std::isnan(d)); };
    const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), same);
    return Differ(what, wanted[i],
                  x == a.end() ? "has other signs of zeros, or other NaNs"
                               : absl::StrFormat("at %d is %.17g, wanted %.17g", x - a.begin(), *x, *y));
  }
  return absl::OkStatus();
}

absl::Status ExpectClose(const Results& got, const Results& wanted, double relative, const std::string& what) {
  WEFT_CHECK(got.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<double> a = got[i].value.Doubles(), b = wanted[i].value.Doubles();
    double scale = kMinScale;
    for (const double x : b) scale = std::isfinite(x) ? std::max(scale, std::abs(x)) : scale;
    for (size_t j = 0; j < b.size(); ++j) {
      const bool same = a[j] == b[j] || (std::isnan(a[j]) && std::isnan(b[j]));
      if (same || std::abs(a[j] - b[j]) <= relative * scale) continue;
      return Differ(what, wanted[i],
                    absl::StrCat("at ", j, " is ", a[j], ", wanted ", b[j], " within ", relative * scale));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckChain(const ChainCheck& check) {
  Tape tape;
  const RandomChain chain = RecordRandomChain(check.chain, &tape);
  WEFT_RETURN_IF_ERROR(Annotate(tape.status(), "recording"));
  const Checker checker(tape, chain, check.precision);
  const auto results = [&](uint32_t build, int threads, const Policy* policy) -> absl::StatusOr<Results> {
    WEFT_ASSIGN_OR_RETURN(const Graph graph, checker.Built(build));
    return checker.Run(graph, threads, policy);
  };

  WEFT_ASSIGN_OR_RETURN(const Results plain, results(/*build=*/0, 1, &kSerial));
  const absl::Span<const Policy* const> policies = Policies();
  for (uint32_t i = 0; i < check.builds; ++i) {
    const uint32_t build = (check.first_build + i) % kBuildCount;
    const std::string name = BuildName(build);
    WEFT_ASSIGN_OR_RETURN(const Graph graph, checker.Built(build));
    WEFT_ASSIGN_OR_RETURN(const Results serial, checker.Run(graph, 1, &kSerial));
    for (int threads = 1; threads <= 4; ++threads) {
      const Policy* policy = policies[(build + static_cast<uint32_t>(threads)) % policies.size()];
      WEFT_ASSIGN_OR_RETURN(const Results got, checker.Run(graph, threads, policy));
      WEFT_RETURN_IF_ERROR(ExpectSameBits(
          got, serial, absl::StrCat("with passes ", name, " on ", threads, " threads, policy ", policy->name)));
    }
    uint32_t bare = build & ((1u << kPassCount) - 1);
    for (const Pass pass : {Pass::kFold, Pass::kAdvanceWrites, Pass::kFuse}) bare &= ~(1u << static_cast<int>(pass));
    WEFT_ASSIGN_OR_RETURN(const Results unfused, results(bare, 1, &kSerial));
    WEFT_RETURN_IF_ERROR(
        ExpectSameBits(serial, unfused, absl::StrCat("with passes ", name, " beside ", BuildName(bare))));
    if (check.precision == kBF16) continue;  // passes change where values are rounded to bf16, which differs too much
    WEFT_RETURN_IF_ERROR(ExpectClose(serial, plain, ToleranceOf(check.chain.dtype), "with passes " + name));
  }
  return absl::OkStatus();
}

}  // namespace weft
