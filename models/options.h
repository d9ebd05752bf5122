// ModelRows lists the options of each model family as rows, by which command lines and configuration files set them
// (options/hyperparameters.h). A new field of a configuration needs a row here.
//
//   GptConfig config;
//   for (const Hyperparameter& row : ModelRows(&config)) {
//     if (row.flag == "rotary") WEFT_RETURN_IF_ERROR(SetFromText("halves", row));
//   }
//
// Sizes that follow from the data have no rows: those of vocabularies and images, and the number of classes.
#ifndef WEFT_MODELS_OPTIONS_H_
#define WEFT_MODELS_OPTIONS_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/models/attention_rows.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// The rows point into `config`, which must outlive them. Rows that may change in a resumed run have the rule
// `may_change`: they change no weight's shape, and no result of inference.
Hyperparameters ModelRows(GptConfig* config);
Hyperparameters ModelRows(BertConfig* config);
Hyperparameters ModelRows(TransformerConfig* config);
Hyperparameters ModelRows(VitConfig* config);

// Returns the names of the parts that are left out: "residual,query-is-key"; "none" for none.
std::string ToText(const Ablation& ablation);
// Reads the text that ToText returns. Parts may stand in any order, with '_' in place of '-'.
absl::StatusOr<Ablation> AblationFromText(absl::string_view text);

}  // namespace weft

#endif  // WEFT_MODELS_OPTIONS_H_
