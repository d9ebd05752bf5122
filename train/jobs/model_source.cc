// Options are set on top of the run's or the published model, so that Check can compare both.
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/run_folder.h"
#include "weft/models/lora.h"
#include "weft/models/options.h"
#include "weft/train/jobs/job.h"

namespace weft {
namespace {

// Options that may differ from those of the weights although a resumed run can't change them. They change no shape.
constexpr absl::string_view kPatterns[] = {"window", "stride", "dilation"};
// The ends of the names of tables of positions.
constexpr absl::string_view kPositionTables[] = {"wpe.weight", "position_embeddings.weight", "embed_positions.weight"};

// Returns the fields of `config` that hold the sizes of vocabularies.
std::vector<int64_t*> Vocabularies(TransformerConfig* config) {
  return {&config->source_vocabulary, &config->target_vocabulary};
}
std::vector<int64_t*> Vocabularies(VitConfig*) { return {}; }
template <class Config>
std::vector<int64_t*> Vocabularies(Config* config) {
  return {&config->vocabulary};
}

// Sets sizes that are not known before the data is read to valid ones.
void SetUnknownSizes(VitConfig* config) {
  config->image_height = config->image_width = config->patch_size;
  config->channels = 1;
}
template <class Config>
void SetUnknownSizes(Config* config) {
  for (int64_t* const size : Vocabularies(config)) *size = std::max<int64_t>(*size, 1);
}

// Copies the probabilities of dropout.
template <class Config>
void CopyDropout(const Config& from, Config* to) {
  to->dropout = from.dropout;
  to->attention_dropout = from.attention_dropout;
  to->activation_dropout = from.activation_dropout;
  if constexpr (requires { to->embedding_dropout; }) to->embedding_dropout = from.embedding_dropout;
  if constexpr (requires { to->classifier_dropout; }) to->classifier_dropout = from.classifier_dropout;
}

template <class Published>
bool HasLabels(const Published& published, const std::vector<std::string>& labels) {
  if constexpr (requires { published.labels; }) return published.labels == labels;
  return true;
}

// Returns `found`, or its first rows if it is a table of positions with more rows than `own`.
Tensor Cropped(absl::string_view name, const Tensor& found, const Tensor& own) {
  const Shape &from = found.type.shape, &to = own.type.shape;
  const bool table = absl::c_any_of(kPositionTables, [&](absl::string_view end) { return absl::EndsWith(name, end); });
  if (!table || from.rank() != 2 || to.rank() != 2 || from.dim(1) != to.dim(1) || from.dim(0) <= to.dim(0))
    return found;
  return {{found.type.dtype, to}, found.data};
}

}  // namespace

std::string ModelSource::tokenizer() const { return init_.empty() ? "" : TokenizerOf(init_); }

template <class Published>
SourceOf<Published>::SourceOf(const Config& defaults) : defaults_(defaults), config_(defaults) {
  for (int64_t* const size : Vocabularies(&defaults_)) *size = 0;
  base_ = config_ = defaults_;
}

template <class Published>
Hyperparameters SourceOf<Published>::Table() {
  Hyperparameters table = {{"init",
                            "begin with the weights of this model: a run, a folder with config.json and "
                            "model.safetensors as published, or any other that weft import reads",
                            &init_,
                            {.may_change = true, .is_path = true, .type = "MODEL"}},
                           {"ignore-extra-tensors",
                            "leave out tensors of --init that its model does not have, and name them on stderr",
                            &ignore_extra_tensors_,
                            {.may_change = true, .needs = "init"}}};
  Append(ModelRows(&config_), &table);
  return InGroup("Model", std::move(table));
}

template <class Published>
absl::Status SourceOf<Published>::ReadInit() {
  const ReadModelOptions options = {.ignore_extra_tensors = true};  // see CheckExtra
  WEFT_ASSIGN_OR_RETURN(published_, ReadModelOf<Published>(init_, options));
  extra_ = published_->weights.extra();
  return absl::OkStatus();
}

template <class Published>
absl::Status SourceOf<Published>::CheckExtra() const {
  return published_ && !ignore_extra_tensors_ ? published_->weights.CheckNoExtra() : absl::OkStatus();
}

template <class Published>
nlohmann::ordered_json SourceOf<Published>::Model() const {
  Config written = config_;
  if constexpr (std::is_same_v<Config, GptConfig>) {
    const bool has_table = Resolve(config_.positions, config_.attention) != PositionKind::kNone;
    if (has_weights() && !has_table) written.context = std::max(written.context, base_.context);
  }
  return WriteModelConfig(written).value_or(nlohmann::ordered_json());
}

template <class Published>
absl::Status SourceOf<Published>::Begin(const nlohmann::ordered_json& run, const std::string& init) {
  init_ = init;
  if (run.is_object() && run.contains("model")) {
    owner_ = "the run";
    base_ = config_;
    WEFT_RETURN_IF_ERROR(ReadWholeRunModel(run, &base_));
    return ReadRunModel(run, &config_);
  }
  if (!run.is_object() && !init_.empty()) {
    owner_ = init_;
    WEFT_RETURN_IF_ERROR(ReadInit());
    config_ = published_->config;
    CopyDropout(defaults_, &config_);
  }
  base_ = config_;
  return absl::OkStatus();
}

template <class Published>
absl::Status SourceOf<Published>::SetModel(const nlohmann::ordered_json& model, bool is_run) {
  Config before = config_;
  WEFT_RETURN_IF_ERROR(ReadModelConfig(model, &config_));
  const std::vector<int64_t*> from = Vocabularies(&before), to = Vocabularies(&config_);
  for (size_t i = 0; i < from.size() && (is_run || has_weights()); ++i) *to[i] = *from[i];
  return absl::OkStatus();
}

template <class Published>
absl::Status SourceOf<Published>::Check() const {
  WEFT_RETURN_IF_ERROR(CheckExtra());
  Config now = config_, then = base_;
  const Hyperparameters given = ModelRows(&now), own = ModelRows(&then);
  for (size_t i = 0; i < given.size() && has_weights(); ++i) {
    const std::string& flag = given[i].flag;
    const bool may_differ = given[i].rules.may_change || absl::c_linear_search(kPatterns, flag);
    if (may_differ || given[i].json() == own[i].json()) continue;
    if constexpr (requires { now.context; }) {
      if (flag == "context" && now.context < then.context) continue;
    }
    return InvalidArgument(flag, ": ", given[i].text(), " was given, but the weights of ", owner_, " are for ",
                           own[i].text());
  }
  SetUnknownSizes(&now);
  return Validate(now);
}

template <class Published>
absl::Status SourceOf<Published>::SetVocabulary(int64_t tokens) {
  for (int64_t* const size : Vocabularies(&config_)) {
    if (*size == 0) {
      *size = tokens;
    } else {
      WEFT_RETURN_IF_ERROR(CheckVocabulary(has_weights() ? owner_ : "model", tokens, *size));
    }
  }
  return absl::OkStatus();
}

template <class Published>
absl::Status SourceOf<Published>::Initialize(const std::vector<std::string>& heads,
                                             const std::vector<std::string>& labels, Parameters* parameters) {
  if (init_.empty()) return absl::OkStatus();
  if (!published_) WEFT_RETURN_IF_ERROR(ReadInit());  // a resumed run that has no checkpoint yet
  WEFT_RETURN_IF_ERROR(CheckExtra());
  missing_.clear();
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::byte>> kept;  // copies of the initial values of heads and adapters
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    const Tensor* const found = published_->weights.Find(name);
    const bool is_head = absl::c_any_of(heads, [&](const std::string& head) { return absl::StartsWith(name, head); });
    const bool other_classes = absl::StrContains(name, "classifier.") && !HasLabels(*published_, labels);
    WEFT_ASSIGN_OR_RETURN(const Tensor own, parameters->Find(name));
    if (found != nullptr && !other_classes) {
      tensors.push_back({name, Cropped(name, *found, own)});
      continue;
    }
    const bool is_adapter = absl::EndsWith(name, kLoraA) || absl::EndsWith(name, kLoraB);
    if (!is_head && !is_adapter) continue;
    if (!is_adapter) missing_.push_back(name);
    kept.emplace_back(own.data, own.data + own.type.bytes());
    tensors.push_back({name, {own.type, kept.back().data()}});
  }
  return parameters->Set(init_, tensors);
}

template class SourceOf<PublishedGpt>;
template class SourceOf<PublishedBert>;
template class SourceOf<PublishedTransformer>;
template class SourceOf<PublishedVit>;

}  // namespace weft
