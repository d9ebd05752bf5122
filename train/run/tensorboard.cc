#include "weft/train/run/tensorboard.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "weft/core/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

double Now() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

}  // namespace

absl::StatusOr<TensorBoard> TensorBoard::Open(const std::string& folder, int64_t step) {
  WEFT_ASSIGN_OR_RETURN(EventFile file, EventFile::Open(folder, step));
  return TensorBoard(std::move(file));
}

absl::Status TensorBoard::Step(const Metrics& metrics) {
  std::vector<EventFile::Scalar> scalars;
  if (metrics.training) {
    scalars = {{"loss/train", metrics.training->loss},
               {"learning_rate", metrics.training->learning_rate},
               {"gradient_norm", metrics.training->gradient_norm},
               {"tokens_per_second", metrics.training->tokens_per_second}};
  }
  if (metrics.validation) {
    scalars.push_back({"loss/validation", metrics.validation->loss});
    const auto add = [&](const char* tag, std::optional<double> value) {
      if (value) scalars.push_back({tag, *value});
    };
    add("accuracy/validation", metrics.validation->accuracy);
    add("loss/validation_ema", metrics.validation->ema_loss);
    add("accuracy/validation_ema", metrics.validation->ema_accuracy);
    add("bits_per_byte/validation", metrics.validation->bits_per_byte);
    add("bits_per_byte/validation_ema", metrics.validation->ema_bits_per_byte);
    for (const auto& [name, value] : metrics.validation->figures) {
      scalars.push_back({absl::StrCat(name, "/validation"), value});
    }
    for (const auto& [name, value] : metrics.validation->ema_figures) {
      scalars.push_back({absl::StrCat(name, "/validation_ema"), value});
    }
  }
  if (metrics.memory > 0) scalars.push_back({"memory", static_cast<double>(metrics.memory)});
  return file_.AppendScalars(metrics.step, Now(), scalars);
}

absl::Status TensorBoard::Weights(int64_t step, const Parameters& parameters) {
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    WEFT_ASSIGN_OR_RETURN(const Tensor weight, parameters.Find(name));
    if (!IsFloat(weight.type.dtype)) continue;
    WEFT_RETURN_IF_ERROR(file_.AppendHistogram(step, Now(), absl::StrCat("weights/", name), weight));
  }
  return absl::OkStatus();
}

// TensorBoard shows texts as Markdown, in which lines that begin with four spaces are shown as they are.
absl::Status TensorBoard::Text(int64_t step, const std::string& name, absl::string_view text) {
  const std::string valid = ReplaceInvalidUtf8(text);
  std::string block;
  for (const absl::string_view line : absl::StrSplit(valid, '\n')) {
    absl::StrAppend(&block, "    ", line, "\n");
  }
  return file_.AppendText(step, Now(), name, block);
}

}  // namespace weft
