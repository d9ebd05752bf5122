// Sizes come from the resumed run, or else from published weights, or else from options. If an option contradicts the
// run or the weights, Read returns an error.
#include "weft/train/jobs/bert_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/model_formats.h"
#include "weft/models/lora.h"

namespace weft {
namespace {

absl::StatusOr<PublishedBert> ReadInit(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel(path));
  if (PublishedBert* const bert = std::get_if<PublishedBert>(&model)) return std::move(*bert);
  return InvalidArgument(path, ": the model is not a BERT");
}

}  // namespace

Hyperparameters BertSource::Table() {
  const auto size = [](const char* name, const char* help, int64_t value, int64_t* to, double high) {
    return Hyperparameter{
        name, absl::StrCat(help, "; 0: as in the weights of init, or else ", value), to, {.low = 0, .high = high}};
  };
  return {
      {"init",
       "begin with the weights in this folder (config.json, model.safetensors, a tokenizer), such as MiniLM's",
       &init_,
       {.may_change = true, .is_path = true}},
      size("context", "maximum number of tokens in an input, special tokens included", defaults_.context, &context_,
           1e6),
      size("layers", "encoder blocks", defaults_.layers, &layers_, 1e4),
      size("heads", "attention heads of a block", defaults_.heads, &heads_, 1e4),
      size("width", "width of the model, a multiple of heads", defaults_.width, &width_, 1e6),
      size("feed-forward", "width of the feed-forward layers", defaults_.feed_forward, &feed_forward_, 1e7),
      {"dropout", "probability of dropout", &dropout_, {.low = 0, .high = 0.99}},
  };
}

absl::Status BertSource::Read(const nlohmann::ordered_json& model) {
  config_ = defaults_;
  std::string owner = init_;
  if (!model.empty()) {
    owner = "the run";
    WEFT_ASSIGN_OR_RETURN(config_, BertConfigFromJson(model));
  } else if (!init_.empty()) {
    WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadInit(init_));
    published_.emplace(std::move(published));
    config_ = published_->config;
  }
  has_weights_ = !owner.empty();
  const struct {
    const char* name;
    int64_t given;
    int64_t* size;
  } kSizes[] = {{"layers", layers_, &config_.layers},
                {"heads", heads_, &config_.heads},
                {"width", width_, &config_.width},
                {"feed-forward", feed_forward_, &config_.feed_forward},
                {"context", context_, &config_.context}};
  for (const auto& [name, given, size] : kSizes) {
    if (given == 0) continue;
    if (has_weights_ && given != *size) {
      return InvalidArgument(name, ": ", given, " was given, but the weights of ", owner, " are for ", *size);
    }
    *size = given;
  }
  config_.dropout = dropout_;
  config_.attention_dropout.reset();
  config_.classifier_dropout.reset();
  BertConfig with_vocabulary = config_;
  with_vocabulary.vocabulary = std::max<int64_t>(config_.vocabulary, 1);
  return Validate(with_vocabulary);
}

absl::Status BertSource::SetVocabulary(const Tokenizer& tokenizer) {
  if (!has_weights_) {
    config_.vocabulary = tokenizer.vocabulary_size();
    return absl::OkStatus();
  }
  return CheckVocabulary(init_.empty() ? "the run" : init_, tokenizer.vocabulary_size(), config_.vocabulary);
}

absl::Status BertSource::Initialize(const std::vector<std::string>& heads, const std::vector<std::string>& labels,
                                    Parameters* parameters) {
  if (init_.empty()) return absl::OkStatus();
  if (!published_) {  // a resumed run that has no checkpoint yet
    WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadInit(init_));
    published_.emplace(std::move(published));
  }
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::byte>> kept;  // copies of the initial values of heads and adapters
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    const Tensor* const found = published_->weights.Find(name);
    const bool is_head =
        std::any_of(heads.begin(), heads.end(), [&](const std::string& head) { return absl::StartsWith(name, head); });
    const bool other_classes = absl::StartsWith(name, "classifier.") && published_->labels != labels;
    if (found != nullptr && !other_classes) {
      tensors.push_back({name, *found});
    } else if (is_head || absl::EndsWith(name, kLoraA) || absl::EndsWith(name, kLoraB)) {
      WEFT_ASSIGN_OR_RETURN(const Tensor own, parameters->Find(name));
      kept.emplace_back(own.data, own.data + own.type.bytes());
      tensors.push_back({name, {own.type, kept.back().data()}});
    }
  }
  return parameters->Set(init_, tensors);
}

}  // namespace weft
