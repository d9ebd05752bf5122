#include "weft/train/jobs/same_training.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/train/jobs/job.h"
#include "weft/train/run/build_info.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMayDiffer[] = {"threads", "log_every"};

// Returns the value of `key`, or a word for a key that is missing.
std::string ValueOf(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() ? "none" : found->dump();
}

// Returns the first key whose value differs between `a` and `b`, or "" if none does. Searches the keys of `a` first. If
// both values are objects, returns the path of a key inside them, such as "model.n_layer". Sets `a_value` and
// `b_value`.
std::string FirstDifference(const Json& a, const Json& b, std::string* a_value, std::string* b_value) {
  for (const Json* keys : {&a, &b}) {
    for (const auto& [key, unused] : keys->items()) {
      const auto of_a = a.find(key), of_b = b.find(key);
      if (of_a != a.end() && of_b != b.end()) {
        if (*of_a == *of_b) continue;
        if (of_a->is_object() && of_b->is_object()) {
          return absl::StrCat(key, ".", FirstDifference(*of_a, *of_b, a_value, b_value));
        }
      }
      *a_value = ValueOf(a, key);
      *b_value = ValueOf(b, key);
      return key;
    }
  }
  return "";
}

}  // namespace

Json DescribeTraining(const Json& config, const Hyperparameters& table, const std::string& data) {
  // Data come first: other data may also change the model, such as its vocabulary, and the cause should be reported.
  Json description = {{"build", BuildName()}, {"cpu", CpuFeatures()}, {kFilesKey, Json::object()}, {"data", data}};
  description.update(config);
  for (const Hyperparameter& row : table) {
    if ((row.rules.is_path || row.rules.is_path_list) && row.key() != "data") description.erase(row.key());
  }
  for (const char* const key : kMayDiffer) description.erase(key);
  description["data"] = data;  // in place of the path
  return description;
}

absl::Status CheckSameTraining(const Ranks& ranks, const Json& description) {
  if (ranks.size() == 1) return absl::OkStatus();
  const std::vector<std::string> texts = ranks.AllGather(JsonLine(description));
  WEFT_ASSIGN_OR_RETURN(const Json first, ParseJsonObject(texts[0]));
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    WEFT_ASSIGN_OR_RETURN(const Json other, ParseJsonObject(texts[rank]));
    std::string value_of_first, value;
    const std::string key = FirstDifference(first, other, &value_of_first, &value);
    if (key.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", rank, " has ", key, " ", value, ", but rank 0 has ", value_of_first,
                     "; all ranks need the same version of Weft, CPU features, options and data"));
  }
  return absl::OkStatus();
}

}  // namespace weft
