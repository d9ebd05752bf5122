// Each family records its model as for evaluation. The probes of attention (models/attention.h) are then fetched.
#include "weft/inference/measure/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/formats/weights.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/text/data/classifier_input.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

absl::StatusOr<Ids> ParseIds(const std::string& text) {
  Ids ids;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(", \t"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id)) return InvalidArgument("'", word, "' is not a token id");
    ids.push_back(id);
  }
  return ids;
}

// Returns the indices of the special tokens among `ids`, except unknown and mask tokens, which stand for words of the
// text. Without a tokenizer there are none.
std::vector<size_t> SpecialOf(const Ids& ids, const Tokenizer* tokenizer) {
  std::vector<size_t> special;
  for (size_t i = 0; i < ids.size() && tokenizer != nullptr; ++i) {
    const SpecialTokens& roles = tokenizer->special_tokens();
    const bool is_word = ids[i] == roles.unknown || ids[i] == roles.mask;
    if (tokenizer->IsSpecial(ids[i]) && !is_word) special.push_back(i);
  }
  return special;
}

// Returns the texts of single tokens. A byte that is not part of a whole character is written as <0xE6>. Ids without a
// tokenizer, or beyond its vocabulary, are written as numbers.
Texts TextsOf(const Ids& ids, const Tokenizer* tokenizer) {
  Texts texts;
  for (const int32_t id : ids) {
    const absl::StatusOr<std::string> text =
        tokenizer != nullptr ? tokenizer->DecodeWithSpecial({id}) : absl::StatusOr<std::string>(InvalidArgument(""));
    if (!text.ok()) {
      texts.push_back(absl::StrCat(id));
    } else if (CheckUtf8(*text).ok()) {
      texts.push_back(*text);
    } else {
      std::string& bytes = texts.emplace_back();
      for (const char byte : *text) absl::StrAppendFormat(&bytes, "<0x%02X>", static_cast<uint8_t>(byte));
    }
  }
  return texts;
}

// Holds a recorded model until its weights are read.
class Reading {
 public:
  explicit Reading(const AttentionQuery& query) : query_(query) {}

  Var Ids(const char* name, const std::vector<int32_t>& ids, int64_t below) {
    const Var var = graph_.tape.Input(name, {kI32, {1, static_cast<int64_t>(ids.size())}}, {.below = below});
    feeds_.emplace_back(var, ids);
    return var;
  }
  Var Pixels(const std::vector<float>& pixels, const Shape& shape) {
    const Var var = graph_.tape.Input("images", {kF32, shape});
    feeds_.emplace_back(var, pixels);
    return var;
  }

  // Adds the maps of the probes of this kind, with the texts of their tokens. All probes are of the kind "attention".
  // `special`: the indices of the special tokens among the sources.
  absl::Status Add(const std::string& kind, const Texts& targets, const Texts& sources, std::vector<size_t> special) {
    AttentionMaps maps = {.kind = kind, .targets = targets, .sources = sources, .special = std::move(special)};
    VarList vars;
    for (const auto& [name, value] : graph_.tape.probes()) {
      const char* const own = absl::StartsWith(name, "encoder.")          ? "encoder"
                              : absl::StrContains(name, ".encoder_attn.") ? "cross"
                                                                          : "decoder";
      if (absl::EndsWith(name, kAttentionWeights) && (kind == "attention" || kind == own)) vars.push_back(value);
    }
    WEFT_RETURN_IF_ERROR(graph_.tape.status());
    if (vars.empty()) return InvalidArgument("the model has no attention");
    maps.layers = static_cast<int64_t>(vars.size());
    maps.heads = vars[0].dim(1);
    count_ += maps.layers * vars[0].shape().elements();
    if (count_ > query_.max_weights) {
      return InvalidArgument(maps.layers, " layers with ", maps.heads, " heads would have ", count_, " weights for ",
                             maps.targets.size(), " tokens, more than ", query_.max_weights, "; give fewer tokens");
    }
    maps_.push_back(std::move(maps));
    vars_.push_back(std::move(vars));
    return absl::OkStatus();
  }

  // Runs `model` once, and returns the maps that were added with their weights.
  template <class Model>
  absl::StatusOr<AttentionWeights> Run(const char* family, const std::string& path, const Model& model) {
    CompileOptions options;
    for (const VarList& vars : vars_) options.fetch.insert(options.fetch.end(), vars.begin(), vars.end());
    if (!query_.raise) options.without = PassSet({Pass::kRaise});
    WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, model.weights, &parameters_));
    WEFT_RETURN_IF_ERROR(graph_.Compile(options, {.threads = query_.threads}, &parameters_));
    WEFT_ASSIGN_OR_RETURN(const Outputs out, graph_.Run(feeds_));
    for (size_t i = 0; i < maps_.size(); ++i) {
      for (const Var var : vars_[i]) {
        const absl::Span<const float> layer = out[var].span<const float>();
        maps_[i].weights.insert(maps_[i].weights.end(), layer.begin(), layer.end());
      }
    }
    return AttentionWeights{.family = family, .maps = std::move(maps_)};
  }

 private:
  const AttentionQuery& query_;
  Parameters parameters_{{.draw = false}};
  EvalGraph graph_;
  std::vector<FeedPair> feeds_;  // they refer to the caller's ids and pixels
  std::vector<AttentionMaps> maps_;
  std::vector<VarList> vars_;  // of each of maps_, by layer
  int64_t count_ = 0;
};

absl::Status RefuseSecond(const AttentionQuery& query, const char* family) {
  if (!query.second) return absl::OkStatus();
  return InvalidArgument("a ", family, " reads one text, but a second was given");
}

absl::Status Fit(const AttentionQuery& query, const char* whose, int64_t context, int64_t vocabulary, Ids* ids) {
  if (query.truncate && static_cast<int64_t>(ids->size()) > context) ids->resize(static_cast<size_t>(context));
  return CheckTokens(whose, *ids, context, vocabulary);
}

// The following functions read the attention of one family each.
absl::StatusOr<AttentionWeights> Read(const std::string& path, const PublishedGpt& gpt, const AttentionQuery& query) {
  WEFT_RETURN_IF_ERROR(RefuseSecond(query, "GPT"));
  std::unique_ptr<Tokenizer> tokenizer;
  Ids ids;
  if (query.ids) {
    WEFT_ASSIGN_OR_RETURN(ids, ParseIds(query.text));
  } else {
    WEFT_ASSIGN_OR_RETURN(OpenedGpt opened, OpenGpt(path, ""));
    opened.tokenizer->ReadSpecial(query.special_tokens);
    WEFT_ASSIGN_OR_RETURN(ids, PromptTokens(opened, query.text));
    tokenizer = std::move(opened.tokenizer);
  }
  WEFT_RETURN_IF_ERROR(Fit(query, "the text", gpt.config.context, gpt.config.vocabulary, &ids));
  Reading reading(query);
  Gpt(gpt.config).Logits(reading.Ids("tokens", ids, gpt.config.vocabulary));
  const Texts texts = TextsOf(ids, tokenizer.get());
  WEFT_RETURN_IF_ERROR(reading.Add("attention", texts, texts, SpecialOf(ids, tokenizer.get())));
  return reading.Run("gpt", path, gpt);
}

absl::StatusOr<AttentionWeights> Read(const std::string& path, const PublishedBert& bert, const AttentionQuery& query) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!query.ids) {
    WEFT_ASSIGN_OR_RETURN(OpenedBert opened, OpenBert(path));
    tokenizer = std::move(opened.tokenizer);
    tokenizer->ReadSpecial(query.special_tokens);
  }
  ModelInput input;
  if (query.ids) {
    WEFT_ASSIGN_OR_RETURN(input.ids, ParseIds(query.text));
    WEFT_ASSIGN_OR_RETURN(const Ids second, ParseIds(query.second.value_or("")));
    input.segments.resize(input.ids.size(), 0);
    input.ids.insert(input.ids.end(), second.begin(), second.end());
    WEFT_RETURN_IF_ERROR(FitContext(/*special=*/0, bert.config.context, query.truncate, &input.ids));
    input.segments.resize(input.ids.size(), 1);
  } else {
    const EncodeLimits limits = {bert.config.context, query.truncate};
    WEFT_ASSIGN_OR_RETURN(input, query.second ? PairInput(query.text, *query.second, *tokenizer, limits)
                                              : TextInput(query.text, *tokenizer, limits));
  }
  WEFT_RETURN_IF_ERROR(CheckTokens("the text", input.ids, bert.config.context, bert.config.vocabulary));
  Reading reading(query);
  const Var tokens = reading.Ids("tokens", input.ids, bert.config.vocabulary);
  const bool has_segments = query.second && bert.config.segment_inputs;
  const Var segments = has_segments ? reading.Ids("segments", input.segments, bert.config.segments) : Var{};
  Bert(bert.config).Encode(tokens, {.segments = segments});
  const Texts texts = TextsOf(input.ids, tokenizer.get());
  WEFT_RETURN_IF_ERROR(reading.Add("attention", texts, texts, SpecialOf(input.ids, tokenizer.get())));
  return reading.Run("bert", path, bert);
}

// Returns the tokens of a greedy translation, without its begin and end tokens.
absl::StatusOr<Ids> Translate(const OpenedTransformer& opened, const Ids& source, int64_t threads) {
  LineTranslatorOptions options = {.search = opened.search, .runtime = {.batch = 1, .threads = threads}};
  options.search.beam = options.search.n_best = 1;
  WEFT_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Create(opened, options));
  WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate({source}));
  return translations[0][0].tokens;
}

absl::StatusOr<AttentionWeights> Read(const std::string& path, const PublishedTransformer&,
                                      const AttentionQuery& query) {
  WEFT_ASSIGN_OR_RETURN(const OpenedTransformer opened, OpenTransformer(path));
  const TransformerConfig& config = opened.model.config;
  for (const auto& tokenizer : {opened.source, opened.target}) tokenizer->ReadSpecial(query.special_tokens);
  WEFT_ASSIGN_OR_RETURN(Ids source,
                        query.ids ? ParseIds(query.text) : EncodeSource(opened, query.text, query.truncate));
  WEFT_RETURN_IF_ERROR(Fit(query, "the source", config.context, config.source_vocabulary, &source));
  Ids produced;
  if (query.second) {
    const std::unique_ptr<Tokenizer> of_targets = opened.target->ForTargets();
    const Tokenizer& tokenizer = of_targets == nullptr ? *opened.target : *of_targets;
    WEFT_ASSIGN_OR_RETURN(produced, query.ids ? ParseIds(*query.second) : tokenizer.Encode(*query.second));
    const auto first = opened.search.forced_begin;
    const bool begins = !produced.empty() && produced.front() == first;  // the user has written the language token
    if (first && !query.ids && !begins) produced.insert(produced.begin(), *first);
  } else {
    WEFT_ASSIGN_OR_RETURN(produced, Translate(opened, source, query.threads));
  }
  const BeamSearchOptions& search = opened.search;
  Ids target = {search.begin};  // the decoder reads the begin token and then the translation
  target.insert(target.end(), produced.begin(), produced.end());
  WEFT_RETURN_IF_ERROR(Fit(query, "the translation", config.context, config.target_vocabulary, &target));
  produced.assign(target.begin() + 1, target.end());
  if (!search.end.empty()) produced.push_back(search.end.front());

  Reading reading(query);
  Transformer(config).Logits(reading.Ids("source", source, config.source_vocabulary),
                             reading.Ids("target", target, config.target_vocabulary));
  const Texts sources = TextsOf(source, opened.source.get()), targets = TextsOf(target, opened.target.get());
  WEFT_RETURN_IF_ERROR(reading.Add("encoder", sources, sources, SpecialOf(source, opened.source.get())));
  WEFT_RETURN_IF_ERROR(reading.Add("decoder", targets, targets, SpecialOf(target, opened.target.get())));
  WEFT_RETURN_IF_ERROR(reading.Add("cross", targets, sources, SpecialOf(source, opened.source.get())));
  WEFT_ASSIGN_OR_RETURN(AttentionWeights result, reading.Run("transformer", path, opened.model));
  result.produced = TextsOf(produced, opened.target.get());
  return result;
}

absl::StatusOr<AttentionWeights> Read(const std::string& path, const PublishedVit& vit, const AttentionQuery& query) {
  WEFT_RETURN_IF_ERROR(RefuseSecond(query, "ViT"));
  if (query.ids) return InvalidArgument("a ViT reads pictures, not token ids");
  const VitConfig& config = vit.config;
  if (config.distillation != Distillation::kNone) {
    return InvalidArgument(path, ": the attention of a DeiT can't be shown, because it has a token of distillation");
  }
  WEFT_ASSIGN_OR_RETURN(const ImageProcessor processor, ReadImageProcessor(path, config));
  WEFT_ASSIGN_OR_RETURN(const Images images,
                        ReadUnlabelledImages(query.text, config.image_height, config.image_width, processor));
  WEFT_RETURN_IF_ERROR(CheckSize(images, config));
  if (query.picture < 0 || query.picture >= images.size()) {
    return InvalidArgument(query.text, " has ", images.size(), " pictures, counted from 0, but not picture ",
                           query.picture);
  }
  const absl::Span<const float> pixels = images[query.picture];
  std::vector<float> scaled;
  for (size_t i = 0; i < pixels.size(); ++i) scaled.push_back(processor(pixels[i], i));
  Reading reading(query);
  const Var images_read = reading.Pixels(scaled, {1, config.image_height, config.image_width, config.channels});
  Vit(config).Encode(images_read, {.places = vit.task != VitTask::kOrder});  // a run of the task order has no places
  Texts patches = {"[CLS]"};
  for (int64_t i = 0; i < config.patches(); ++i) {
    const int64_t columns = config.image_width / config.patch_size;
    patches.push_back(absl::StrCat(i / columns, ",", i % columns));
  }
  WEFT_RETURN_IF_ERROR(reading.Add("attention", patches, patches, {0}));
  WEFT_ASSIGN_OR_RETURN(AttentionWeights result, reading.Run("vit", path, vit));
  result.picture =
      AttendedPicture{.height = config.image_height, .width = config.image_width, .patch_size = config.patch_size};
  for (auto pixel = pixels.begin(); pixel != pixels.end(); pixel += config.channels) {
    const float sum = std::accumulate(pixel, pixel + config.channels, 0.0f);
    result.picture->pixels.push_back(sum / static_cast<float>(config.channels));
  }
  return result;
}

}  // namespace

absl::Span<const float> AttentionMaps::row(int64_t layer, int64_t head, int64_t target) const {
  const auto t = static_cast<int64_t>(targets.size()), s = static_cast<int64_t>(sources.size());
  return absl::MakeConstSpan(weights).subspan(static_cast<size_t>(((layer * heads + head) * t + target) * s),
                                              sources.size());
}

absl::StatusOr<AttentionWeights> ReadAttention(const std::string& model, const AttentionQuery& query) {
  WEFT_ASSIGN_OR_RETURN(const PublishedModel published, ReadModel(model));
  return std::visit([&](const auto& each) { return Read(model, each, query); }, published);
}

void LeaveOutSpecialTokens(AttentionMaps* maps) {
  const std::ptrdiff_t sources = std::ssize(maps->sources);
  maps->without_special = true;
  for (auto row = maps->weights.begin(); row != maps->weights.end(); row += sources) {
    for (const size_t s : maps->special) row[static_cast<std::ptrdiff_t>(s)] = 0;
    const float sum = std::accumulate(row, row + sources, 0.0f);
    for (auto weight = row; weight != row + sources && sum > 0; ++weight) *weight /= sum;
  }
}

HeadMeasures Measure(const AttentionMaps& maps, int64_t layer, int64_t head) {
  const auto targets = static_cast<int64_t>(maps.targets.size());
  HeadMeasures measures = {.min_sum = 1e9};
  double total = 0;
  for (int64_t t = 0; t < targets; ++t) {
    const absl::Span<const float> row = maps.row(layer, head, t);
    double sum = 0;
    for (size_t s = 0; s < row.size(); ++s) {
      const double weight = row[s];
      if (weight <= 0) continue;
      sum += weight;
      measures.entropy -= weight * std::log2(weight);
      measures.distance += weight * std::abs(static_cast<double>(t) - static_cast<double>(s));
    }
    total += sum;
    measures.min_sum = std::min(measures.min_sum, sum);
    measures.max_sum = std::max(measures.max_sum, sum);
  }
  measures.entropy /= static_cast<double>(targets);
  measures.distance /= std::max(total, 1e-9);
  return measures;
}

std::vector<int64_t> StrongestSources(const AttentionMaps& maps, int64_t layer) {
  std::vector<int64_t> strongest;
  for (size_t t = 0; t < maps.targets.size(); ++t) {
    std::vector<double> mean(maps.sources.size());
    for (int64_t h = 0; h < maps.heads; ++h) {
      const absl::Span<const float> row = maps.row(layer, h, static_cast<int64_t>(t));
      for (size_t s = 0; s < row.size(); ++s) mean[s] += row[s];
    }
    strongest.push_back(std::max_element(mean.begin(), mean.end()) - mean.begin());
  }
  return strongest;
}

}  // namespace weft
