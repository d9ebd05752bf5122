// Summarize lists the layers of a model with their parameters, and tells what the model costs to run and to train.
//
//   WEFT_ASSIGN_OR_RETURN(const PublishedModel model, ReadModel("runs/gpt-1"));
//   WEFT_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(model));
//   std::fputs(PrintSummary(summary).c_str(), stdout);
#ifndef WEFT_LAB_ESTIMATE_SUMMARY_H_
#define WEFT_LAB_ESTIMATE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/graph/graph.h"

namespace weft {

// A part of a model, such as the attention of a block. Equal blocks are one part each, counted `copies` times.
struct SummaryPart {
  std::string scope;                // "wte", or inside a block "attn"
  std::vector<std::string> shapes;  // "c_attn.weight [768,2304]"
  int64_t parameters = 0;           // of one copy

  bool operator==(const SummaryPart&) const = default;
};
// Equal blocks in a row, or a part outside of blocks, which is the only one of its group.
struct SummaryGroup {
  std::string first, last;  // "h.0", "h.11"; empty outside of blocks
  int64_t copies = 1;
  std::vector<SummaryPart> parts;
  int64_t parameters() const;  // of one copy
};

struct ModelSummary : ModelSizes {
  std::string kind;  // "a GPT"
  std::vector<SummaryGroup> groups;
  int64_t parameters = 0;    // with statistics
  int64_t statistics = 0;    // values that steps change without gradients, such as BatchNorm's running means
  double forward_flops = 0;  // of the products, for each token of a sequence of `context` tokens
  // A training step computes each product again for both of its inputs' gradients.
  double training_flops() const { return 3 * forward_flops; }
};
absl::StatusOr<ModelSummary> Summarize(const PublishedModel& model);

// Groups parameters by the scopes in their names.
std::vector<SummaryGroup> GroupParameters(absl::Span<const ParameterSpec> parameters);

// What a training holds in memory beside its values. `trained`: number of trained parameters.
struct TrainedParameters {
  int64_t trained = 0, frozen = 0, statistics = 0;
  int64_t all() const { return trained + frozen + statistics; }
};
// Print the summary as text, and as a JSON object. Weights are f32, and the optimizer is AdamW. `step`: the compiled
// training step, or null.
std::string PrintSummary(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step);
std::string PrintSummaryJson(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step);

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_SUMMARY_H_
