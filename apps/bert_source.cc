#include "weft/apps/bert_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {

Hyperparameters BertSource::Table() {
  const auto size = [](const char* flag, const char* what, int64_t value, int64_t* to, double high) {
    return Hyperparameter{
        flag, absl::StrCat(what, "; 0: as --init has it, else ", value), to, {.low = 0, .high = high}};
  };
  return {
      {"init",
       "begin with the weights of this folder (config.json, model.safetensors, a tokenizer), as MiniLM's",
       &init_,
       {.may_change = true, .is_path = true}},
      size("context", "the most tokens of an input, with the special ones", defaults_.context, &context_, 1e6),
      size("layers", "encoder blocks", defaults_.layers, &layers_, 1e4),
      size("heads", "attention heads of a block", defaults_.heads, &heads_, 1e4),
      size("width", "of the model, a multiple of heads", defaults_.width, &width_, 1e6),
      size("feed-forward", "width of the feed-forward layers", defaults_.feed_forward, &feed_forward_, 1e7),
      {"dropout", "probability", &dropout_, {.low = 0, .high = 0.99}},
  };
}

absl::Status BertSource::Read() {
  config_ = defaults_;
  if (!init_.empty()) {
    WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadBert(init_));
    published_.emplace(std::move(published));
    config_ = published_->config;
  }
  const struct {
    const char* name;
    int64_t asked;
    int64_t* size;
  } kSizes[] = {{"layers", layers_, &config_.layers},
                {"heads", heads_, &config_.heads},
                {"width", width_, &config_.width},
                {"feed-forward", feed_forward_, &config_.feed_forward},
                {"context", context_, &config_.context}};
  for (const auto& [name, asked, size] : kSizes) {
    if (asked == 0) continue;
    if (published_ && asked != *size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " is ", asked, ", but the weights of ", init_, " are for ", *size));
    }
    *size = asked;
  }
  config_.dropout = dropout_;
  BertConfig with_vocabulary = config_;
  with_vocabulary.vocabulary = std::max<int64_t>(config_.vocabulary, 1);
  return Validate(with_vocabulary);
}

absl::Status BertSource::SetVocabulary(const Tokenizer& tokenizer) {
  if (!published_) {
    config_.vocabulary = tokenizer.vocabulary_size();
    return absl::OkStatus();
  }
  if (tokenizer.vocabulary_size() <= config_.vocabulary) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", tokenizer.vocabulary_size(),
                                                 " tokens, but the weights of ", init_, " are for ",
                                                 config_.vocabulary));
}

absl::Status BertSource::Initialize(const std::vector<std::string>& heads, Parameters* parameters) const {
  if (!published_) return absl::OkStatus();
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::byte>> kept;  // what the heads have
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    const auto& all = published_->weights.tensors();
    const auto found = std::find_if(all.begin(), all.end(), [&](const NamedTensor& t) { return t.name == name; });
    const bool is_head =
        std::any_of(heads.begin(), heads.end(), [&](const std::string& head) { return absl::StartsWith(name, head); });
    if (found != all.end()) {
      tensors.push_back(*found);
    } else if (is_head) {
      WEFT_ASSIGN_OR_RETURN(const Tensor own, parameters->Find(name));
      kept.emplace_back(own.data, own.data + own.type.bytes());
      tensors.push_back({name, {own.type, kept.back().data()}});
    }
  }
  return parameters->Set(init_, tensors);
}

}  // namespace weft
