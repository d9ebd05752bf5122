// An Ablation names parts of a Transformer that a model leaves out. It is for study only: it shows what each part is
// for, and no published model or file format has such a model. By default nothing is left out.
//
//   GptConfig config = {.layers = 4, .ablation = {.residual = true}};
//   absl::StatusOr<Ablation> ablation = AblationFromText("residual,norm");
#ifndef WEFT_MODELS_ABLATION_H_
#define WEFT_MODELS_ABLATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/models/layers.h"

namespace weft {

struct Ablation {
  bool residual = false;      // a block's layer replaces x; its result is not added to x
  bool norm = false;          // the model has no norm anywhere
  bool feed_forward = false;  // blocks have no feed-forward layer, and no norm and residual connection of it
  bool value = false;         // a head's values are its part of the features of the keys' input, without a layer
  bool query_is_key = false;  // one layer computes both queries and keys

  friend bool operator==(const Ablation&, const Ablation&) = default;
};

// Returns the names of the parts that are left out: "residual,query-is-key"; "none" for none.
std::string ToText(const Ablation& ablation);
// Reads the text that ToText returns. Parts may stand in any order, with '_' in place of '-'.
absl::StatusOr<Ablation> AblationFromText(absl::string_view text);

// Returns Norm(name, x, options) or, if norms are left out, x.
Var Norm(absl::string_view name, Var x, const NormOptions& options, const Ablation& ablation);

}  // namespace weft

#endif  // WEFT_MODELS_ABLATION_H_
