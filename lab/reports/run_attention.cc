#include "weft/lab/reports/run_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/formats/run_folder.h"
#include "weft/inference/measure/attention_weights.h"
#include "weft/lab/reports/attention_report.h"
#include "weft/lab/reports/curve.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxWeights = 160'000;      // of a checkpoint: 12 · 12 heads of 33 tokens
constexpr size_t kMaxPageBytes = 1'600'000;  // of the weights of all runs, in base64
constexpr size_t kFewestCheckpoints = 2;     // tokens are left out before fewer checkpoints are shown
constexpr size_t kMaxCheckpoints = 40;

}  // namespace

RunAttention::RunAttention(std::string run, std::string text, size_t runs)
    : run_(std::move(run)), text_(std::move(text)), max_bytes_(kMaxPageBytes / std::max<size_t>(runs, 1)) {}

bool RunAttention::Update() {
  bool changed = false;
  const std::string before = std::exchange(problem_, "");
  // Base64 has four bytes for three weights.
  const size_t max_weights = std::min(kMaxWeights, max_bytes_ / kFewestCheckpoints * 3 / 4);
  for (const int64_t step : ListCheckpoints(run_ + "/checkpoints")) {
    if (by_step_.contains(step)) continue;
    const absl::StatusOr<AttentionWeights> weights =
        ReadAttention(absl::StrCat(run_, "@", step), {.text = text_, .truncate = true});
    if (absl::IsNotFound(weights.status())) continue;  // the training has removed it in the meantime
    if (!weights.ok()) {
      problem_ = std::string(weights.status().message());
      break;
    }
    // Of an encoder-decoder, the last kind is the attention to the source.
    Json maps = AttentionMapsForPage(weights->maps.back(), static_cast<int64_t>(max_weights));
    maps["step"] = step;
    by_step_[step] = std::move(maps);
    changed = true;
  }
  return changed || problem_ != before;
}

Json RunAttention::ToJson() const {
  size_t bytes = 1;  // of the largest checkpoint
  std::vector<int64_t> steps;
  for (const auto& [step, maps] : by_step_) {
    steps.push_back(step);
    bytes = std::max(bytes, maps["weights"].get_ref<const std::string&>().size());
  }
  const size_t limit = std::clamp(max_bytes_ / bytes, kFewestCheckpoints, kMaxCheckpoints);
  Json checkpoints = Json::array();
  for (const int64_t step : TakeEvenly(steps, limit)) checkpoints.push_back(by_step_.at(step));
  return {{"text", text_}, {"problem", problem_}, {"of", steps.size()}, {"checkpoints", std::move(checkpoints)}};
}

}  // namespace weft
