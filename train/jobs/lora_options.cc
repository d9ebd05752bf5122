#include "weft/train/jobs/lora_options.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/formats/adapters.h"

namespace weft {

Hyperparameters LoraHyperparameters(LoraOptions* options) {
  return {
      {"lora-rank",
       "rank of low-rank adapters (LoRA), which are trained in place of the model's weights; 0: none",
       &options->rank,
       {.low = 0, .high = 65536}},
      {"lora-alpha",
       "the result of an adapter is multiplied by lora-alpha / lora-rank",
       &options->alpha,
       {.low = 0, .needs = "lora-rank"}},
      {"lora-dropout",
       "probability of dropout for an adapter's input",
       &options->dropout,
       {.low = 0, .high = 0.99, .needs = "lora-rank"}},
      {"lora-targets",
       "names of the layers that get adapters, separated by commas; * matches any text, and ? one character",
       &options->targets,
       {.needs = "lora-rank"}},
  };
}

std::string CountTrained(const LoraOptions& options, const Parameters& parameters) {
  if (options.rank == 0) return "";
  return absl::StrCat(" (", parameters.ElementCount(Parameters::kTrained), " of them trained)");
}

absl::Status SaveAdapter(const LoraOptions& options, const std::string& base, const nlohmann::ordered_json& model,
                         const Parameters& parameters, const std::string& folder) {
  if (options.rank == 0) return absl::OkStatus();
  const auto type = model.find("model_type");
  return WriteAdapter(folder,
                      {.lora = options,
                       .base = base,
                       .model_type = type != model.end() && type->is_string() ? type->get<std::string>() : ""},
                      parameters);
}

}  // namespace weft
