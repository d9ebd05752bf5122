// These functions read low-rank adapters (models/lora.h) in the files of the package PEFT: adapter_config.json, which
// names the base model, and adapter_model.safetensors. WriteAdapter (weights.h) writes them.
//
//   WEFT_ASSIGN_OR_RETURN(const PublishedModel merged, ReadModel("adapter"));   // weights.h; the format "peft"
//
// Merging adds (alpha / rank)·B·A to the weight of each adapter's layer. The result computes what the model with its
// adapters computes, up to rounding.
#ifndef WEFT_FORMATS_ADAPTERS_H_
#define WEFT_FORMATS_ADAPTERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/core/safetensors.h"

namespace weft {

inline constexpr char kAdapterConfig[] = "adapter_config.json", kAdapterWeights[] = "adapter_model.safetensors";

// The keys of adapter_config.json that reading needs. Layers have the names of Hugging Face's model.
struct AdapterConfig {
  using Pattern = std::vector<std::pair<std::string, double>>;  // names of layers, and values of these layers

  std::string base;  // path of the base model's folder or file, which exists
  int64_t rank = 8;
  double alpha = 8;
  bool rank_stabilized = false;  // whether adapters are multiplied by alpha / sqrt(rank), not by alpha / rank
  Pattern rank_pattern, alpha_pattern;
  std::vector<std::string> saved;  // ends of the names of layers that the adapter replaces
  // Ends of the names of layers that have low-rank adapters, and that have none; unset: any.
  std::optional<std::vector<std::string>> targets, excluded;
  std::optional<std::vector<int64_t>> layer_numbers;  // only layers in blocks of these numbers, unless named in full
  std::optional<std::vector<std::string>> blocks;     // names before these numbers, such as "h"

  int64_t RankOf(absl::string_view layer) const;
  double ScaleOf(absl::string_view layer) const;
  bool Saves(absl::string_view layer) const;
  bool Targets(absl::string_view layer) const;  // whether the file says that the layer has a low-rank adapter
};
// Returns InvalidArgument if the adapter is not LoRA, or if base_model_name_or_path is no path. A key that is unknown,
// or that changes the computation in a way that is not supported, is InvalidArgument, too. A relative path starts at
// the working folder or, if that does not exist, at `folder`.
absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder);
// Reports whether `folder` has an adapter_config.json and no config.json of a model or run.
bool IsAdapter(const std::string& folder);

// Returns `tensors` without the adapters of the layers among them. Each layer's weight is merged, in bytes of `arena`;
// other tensors keep their bytes. An adapter without a layer is returned unchanged. Returns InvalidArgument if A, B and
// the weight do not fit together.
absl::StatusOr<std::vector<NamedTensor>> MergeAdapters(absl::Span<const NamedTensor> tensors, double scale,
                                                       Arena* arena);

}  // namespace weft

#endif  // WEFT_FORMATS_ADAPTERS_H_
