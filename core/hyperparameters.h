// Hyperparameters: one table that --flags, --config=FILE.json and a run's config.json share.
//
//   Hyperparameters table = {{"batch", "windows in a batch", &options.batch, {.low = 1}}};
//   WEFT_RETURN_IF_ERROR(SetFromJson(json, table));     // {"batch": 12}
//   WEFT_RETURN_IF_ERROR(SetFromText("12", table[0]));  // --batch=12
//
// A key is a flag's name with '_' for '-'.
#ifndef WEFT_CORE_HYPERPARAMETERS_H_
#define WEFT_CORE_HYPERPARAMETERS_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weft {

struct Hyperparameter {
  struct Rules {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    std::vector<std::string> choices = {};  // of a text; empty: any
    bool may_change = false;                // when a run is resumed
    bool may_be_empty = false;              // a text that a flag gives
    bool is_path = false;                   // a text that a run keeps as an absolute path
    bool is_bytes = false;                  // a whole number that a flag may give in K, M or G: thousands and so on
  };

  std::string flag;  // "learning-rate"
  std::string help;
  std::variant<int64_t*, uint64_t*, double*, bool*, std::string*> value;
  Rules rules = {};

  std::string key() const;   // "learning_rate"
  std::string text() const;  // the value, as a flag would give it
  nlohmann::ordered_json json() const;
};
using Hyperparameters = std::vector<Hyperparameter>;

// InvalidArgument "batch: 'many' is not a whole number" and the like.
absl::Status SetFromText(absl::string_view text, const Hyperparameter& parameter);
// Sets what `json`, an object, has. InvalidArgument names an unknown key and the nearest known one. Keys of
// `annotations` are passed over.
absl::Status SetFromJson(const nlohmann::ordered_json& json, const Hyperparameters& table,
                         const std::vector<std::string>& annotations = {});
nlohmann::ordered_json ToJson(const Hyperparameters& table);

// "'widht', did you mean 'width'?"
std::string NameAndNearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace weft

#endif  // WEFT_CORE_HYPERPARAMETERS_H_
