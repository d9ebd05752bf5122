// A KeyReader remembers each key that a call names, so that Finish can refuse the other keys.
#include "weft/formats/config_keys.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

constexpr std::pair<const char*, Activation> kActivationNames[] = {
    {"gelu", Activation::kGelu},          {"gelu_new", Activation::kGeluTanh},
    {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
    {"gelu_python", Activation::kGelu},   {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"swish", Activation::kSilu},
    {"relu2", Activation::kReluSquared},
};

// Returns `json` as text for an error message: at most 200 bytes, and "..." if more follow.
std::string Shortened(const Json& json) {
  constexpr size_t kMaxCharacters = 200;
  std::string text = JsonLine(json);
  if (text.size() > kMaxCharacters) {
    text.resize(kMaxCharacters);
    text += "...";
  }
  return text;
}

}  // namespace

const Choices<Activation> kActivations = kActivationNames;

const Json* Keys::Find(const char* key) {
  if (!reading()) return nullptr;
  known_.insert(key);
  const auto it = json_->find(key);
  return it == json_->end() || it->is_null() ? nullptr : &*it;
}

void Keys::Field(const char* key, std::optional<double>& value, double usual) {
  double number = value.value_or(usual);
  Field(key, number);
  value = number == usual ? std::nullopt : std::optional<double>(number);
}

void Keys::Only(const char* key, const Json& value) {
  const Json* const json = Find(key);
  if (json != nullptr && *json != value) Refuse(key, value.dump());
}

void Keys::Harmless(absl::Span<const char* const> keys) { known_.insert(keys.begin(), keys.end()); }

void Keys::Refuse(const char* key, absl::string_view wanted) {
  if (!reading() || !status_.ok()) return;
  status_ =
      InvalidArgument(key, " is ", Shortened(json_->value(key, Json())), ", which is not supported; wanted ", wanted);
}

absl::Status KeyReader::Finish() {
  for (const auto& [key, value] : json_->items()) {
    if (!status_.ok()) break;
    const bool unused = value.is_null() || value == false || value == "" || (value.is_structured() && value.empty());
    if (unused || known_.contains(key)) continue;
    status_ = InvalidArgument("'", key, "' is ", Shortened(value),
                              ", but no key that is known here: it might change the model");
  }
  return status_;
}

void ReadUsualKeys(KeyReader& keys, absl::Span<const absl::string_view> classes, bool encoder_decoder) {
  if (const Json* const names = keys.Find("architectures"); names != nullptr) {
    for (const Json& name : *names) {
      if (!name.is_string() || !absl::c_linear_search(classes, name.get_ref<const std::string&>())) {
        keys.Refuse("architectures", absl::StrJoin(classes, ", "));
      }
    }
  }
  keys.Only("is_encoder_decoder", encoder_decoder);
  keys.Only("add_cross_attention", false);
  keys.Only("pruned_heads", Json::object());
  // None of these keys changes the model. For example, chunk_size_feed_forward computes the same values in parts.
  keys.Harmless({// What wrote the file, and from what.
                 "_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "torch_dtype", "dtype",
                 "tokenizer_class", "auto_map",
                 // How to compute, and what to return.
                 "return_dict", "use_return_dict", "output_hidden_states", "output_attentions", "output_past",
                 "torchscript", "use_bfloat16", "xla_device", "use_cache", "chunk_size_feed_forward", "prefix",
                 "_attn_implementation", "_attn_implementation_autoset", "attn_implementation", "cache_implementation",
                 // Training and its task.
                 "tf_legacy_loss", "gradient_checkpointing", "initializer_range", "finetuning_task", "problem_type",
                 "task_specific_params", "id2label", "label2id", "num_labels", "_num_labels"});
  keys.Harmless(kGenerationKeys);
}

absl::Status CheckExpressible(absl::string_view model_type,
                              std::initializer_list<std::pair<bool, const char*>> properties) {
  for (const auto& [holds, property] : properties) {
    if (holds) return InvalidArgument("a configuration of ", model_type, " cannot say that ", property);
  }
  return absl::OkStatus();
}

}  // namespace weft
