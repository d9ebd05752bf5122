// kPolicies lists all policies, in the order in which commands and benchmarks show them.
#include "weft/graph/run/policies/policies.h"

#include "absl/algorithm/container.h"
#include "weft/graph/run/queue_executor.h"

namespace weft {
namespace {

constexpr const Policy* kPolicies[] = {&kSerial,         &kFifo,
                                       &kLifo,           &kLevel,
                                       &kCriticalPath,   &kCriticalPathMeasured,
                                       &kEarliestFinish, &kEarliestFinishLearned};

}  // namespace

absl::Span<const Policy* const> Policies() { return kPolicies; }

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const Policy* policy : kPolicies) names.push_back(policy->name);
  return names;
}

const Policy* FindPolicy(absl::string_view name) {
  const auto it = absl::c_find_if(kPolicies, [&](auto* p) { return p->name == name; });
  return it == std::end(kPolicies) ? nullptr : *it;
}

std::unique_ptr<Executor> MakeExecutor(const Policy& policy, const Schedule* schedule, int threads) {
  if (policy.executor != nullptr) return policy.executor(schedule, threads);
  return std::make_unique<QueueExecutor>(schedule, threads, policy.queue(schedule, threads), policy.learns);
}

}  // namespace weft
