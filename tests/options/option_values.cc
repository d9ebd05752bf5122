// The values suit the small models of tests/options/every_option_test.cc: width 16, 2 heads, 2 layers.
#include "weft/tests/options/option_values.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"

namespace weft {

bool OptionValue::IsFor(absl::string_view training) const {
  const std::vector<absl::string_view> names = absl::StrSplit(trainings, ' ', absl::SkipEmpty());
  return names.empty() || absl::c_linear_search(names, training);
}

const std::vector<OptionValue>& OptionValues() {
  static const auto* const kValues = new std::vector<OptionValue>{
      {"init", "default"},
      {"ignore-extra-tensors", "true"},
      {"context", "12", "", "gpt bert translate"},
      {"context", "24", "", "classify"},
      {"patch-size", "1"},
      {"layers", "1"},
      {"encoder-layers", "1"},
      {"decoder-layers", "1"},
      {"heads", "4"},
      {"width", "32"},
      {"feed-forward", "24"},
      {"segments", "3"},
      {"dropout", "0.3"},
      {"attention-dropout", "0.3"},
      {"embedding-dropout", "0.3"},
      {"activation-dropout", "0.3"},
      {"classifier-dropout", "0.3", "", "classify"},
      {"classifier-dropout", "0.3", "", "bert", true},  // no classifier is trained
      {"label-smoothing", "0.3"},
      {"tied-head", "false"},
      {"head-bias", "true"},
      {"shared-embeddings", "false"},
      {"scale-embeddings", "false"},
      {"first-position", "2"},
      {"memory", "same-layer"},
      {"layer-names", "llama", "norm=rms-norm rotary=halves gated=true activation=silu bias=false"},

      {"activation", "gelu-tanh", "", "bert translate classify vit"},
      {"activation", "gelu", "", "gpt translate"},
      {"activation", "relu", "", "gpt bert classify vit"},
      {"activation", "silu"},
      {"gated", "true"},
      {"gated", "true", "activation=silu"},
      {"pre-norm", "false", "", "gpt translate vit"},
      {"pre-norm", "true", "", "bert classify"},
      {"norm", "rms-norm"},
      {"norm", "batch-norm"},
      {"norm-epsilon", "0.1"},
      {"bias", "false"},
      {"positions", "learned", "", "translate"},
      {"positions", "learned", "rotary=halves", "gpt bert classify vit"},
      {"positions", "learned", "", "gpt bert classify vit", true},
      {"positions", "sinusoidal", "", "gpt bert classify vit"},
      {"positions", "sinusoidal-halves"},
      {"positions", "none"},
      {"positions", "auto", "", "translate", true},
      {"positions", "auto", "rotary=halves", "translate"},

      {"initializer", "normal:0.1"},
      {"initializer", "truncated-normal:0.1"},
      {"initializer", "uniform:0.1"},
      {"initializer", "xavier-normal"},
      {"initializer", "xavier-uniform:0.5"},
      {"initializer", "he-normal"},
      {"initializer", "he-uniform"},
      {"initializer", "lecun-normal"},
      {"initializer", "lecun-uniform"},
      {"initializer", "orthogonal"},

      {"key-value-heads", "1"},
      {"query-width", "4"},
      {"query-width", "6", "key-width=4 score=additive"},
      {"key-width", "4"},
      {"value-width", "4"},
      {"score", "additive"},
      {"score-width", "4", "score=additive"},
      {"head-merge", "average"},
      {"window", "3"},
      {"window", "3,0"},
      {"stride", "2"},
      {"stride", "0,2"},
      {"dilation", "2", "window=2"},
      {"distance-bias", "alibi"},
      {"distance-bias", "buckets"},
      {"buckets", "4", "distance-bias=buckets"},
      {"max-distance", "8", "distance-bias=buckets buckets=8"},
      {"soft-cap", "0.5"},
      {"rotary", "halves"},
      {"rotary", "pairs"},
      {"rotary-base", "100", "rotary=halves"},

      {"ablate", "residual"},
      {"ablate", "norm"},
      {"ablate", "feed-forward"},
      {"ablate", "value"},
      {"ablate", "query-is-key"},
  };
  return *kValues;
}

}  // namespace weft
