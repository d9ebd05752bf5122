// The keys of Marian's, Pegasus's and Blenderbot's config.json, and the choice between the three.
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/marian.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Positions = PositionKind;

struct Layout {
  const char *model_type, *architecture;
  bool pre_norm;
  bool separate_tables;     // whether the two sides may have token tables of their own
  bool stores_positions;    // whether position embeddings are weights
  TransformerConfig usual;  // what the class's missing keys mean
};

const std::vector<Layout>& Layouts() {
  const auto usual = [](int64_t vocabulary, int64_t context, int64_t encoder, int64_t decoder, int64_t heads,
                        int64_t width) -> TransformerConfig {
    return {.source_vocabulary = vocabulary,
            .context = context,
            .encoder_layers = encoder,
            .decoder_layers = decoder,
            .heads = heads,
            .width = width,
            .feed_forward = 4 * width};
  };
  static const auto* const layouts = new std::vector<Layout>{
      {"marian", "MarianMTModel", /*pre_norm=*/false, /*separate_tables=*/true,
       /*stores_positions=*/false, usual(58101, 1024, 12, 12, 16, 1024)},
      {"pegasus", "PegasusForConditionalGeneration", true, false, false, usual(50265, 1024, 12, 12, 16, 1024)},
      {"blenderbot", "BlenderbotForConditionalGeneration", true, false, true, usual(8008, 128, 2, 24, 32, 2560)}};
  return *layouts;
}

const Layout* FindLayout(const Json& model_type) {
  const auto found = absl::c_find_if(Layouts(), [&](const Layout& each) { return model_type == each.model_type; });
  return found != Layouts().end() ? &*found : nullptr;
}

const Layout* LayoutOf(const Json& config) {
  const Json* const type = FindModelType(config);
  return type != nullptr ? FindLayout(*type) : nullptr;
}

// Returns the first option of `config`, with its value, that the class lacks, or "" if the class has the model.
std::string Lacking(const Layout& layout, const TransformerConfig& config) {
  constexpr double kEpsilon = 1e-5;
  if (std::string unusual = UnusualOption(config); !unusual.empty()) return unusual;
  if (config.norm.kind == NormKind::kRmsNorm) return "norm is rms_norm";
  if (config.norm.kind == NormKind::kBatchNorm) return "norm is batch_norm";
  if (config.norm.epsilon != kEpsilon) return absl::StrCat("the norm's epsilon is ", config.norm.epsilon);
  if (config.dtype != kF32) return "dtype is f64";
  if (config.pre_norm != layout.pre_norm) return absl::StrCat("pre_norm is ", config.pre_norm ? "true" : "false");
  if (!layout.separate_tables && !config.shared_embeddings) return "shared_embeddings is false";
  if (config.shared_embeddings && !config.tied_head) return "tied_head is false, but shared_embeddings is true";
  if (layout.stores_positions) return "";
  if (config.positions == Positions::kLearned) return "positions are learned";
  if (config.positions == Positions::kSinusoidalHalves) return "positions are sinusoidal_halves";
  if (config.first_position != 0) return absl::StrCat("first_position is ", config.first_position);
  return "";
}

template <class Keys, class Config>
void ListMarian(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.source_vocabulary);
  ListTranslator(keys, config);
  keys.Field("scale_embedding", config.scale_embeddings);
  keys.Field("tie_word_embeddings", config.tied_head);
}

}  // namespace

bool IsMarian(const Json& config) { return LayoutOf(config) != nullptr; }

absl::StatusOr<std::string> MarianTypeFor(TransformerConfig config) {
  config.positions = Resolve(config.positions, config.attention, Positions::kSinusoidal);
  WEFT_RETURN_IF_ERROR(Validate(config));
  std::vector<std::string> reasons;
  for (const Layout& layout : Layouts()) {
    const std::string lacking = Lacking(layout, config);
    if (lacking.empty()) return std::string(layout.model_type);
    reasons.push_back(absl::StrCat("not ", layout.model_type, ", because ", lacking));
  }
  return InvalidArgument("no class of Hugging Face has this Transformer: ", absl::StrJoin(reasons, "; "));
}

absl::StatusOr<TransformerConfig> MarianConfigFromJson(const Json& json) {
  const Layout* const layout = LayoutOf(json);
  if (layout == nullptr) return InvalidArgument("model_type is not marian, pegasus or blenderbot");
  KeyReader keys(json);
  keys.Only("model_type", layout->model_type);
  TransformerConfig config = layout->usual;
  config.activation = Activation::kGelu;
  config.scale_embeddings = false;
  config.shared_embeddings = true;
  config.pre_norm = layout->pre_norm;
  config.positions = layout->stores_positions ? Positions::kLearned : Positions::kSinusoidal;
  ListMarian(keys, config);
  if (keys.IsNull("scale_embedding")) keys.Refuse("scale_embedding", "true or false");
  config.target_vocabulary = config.source_vocabulary;
  if (layout->separate_tables) {
    keys.Field("share_encoder_decoder_embeddings", config.shared_embeddings);
    // The classes read the key only if the tables are separate.
    int64_t unused = 0;
    keys.Field("decoder_vocab_size", config.shared_embeddings ? unused : config.target_vocabulary);
  }
  if (config.shared_embeddings) keys.Only("tie_word_embeddings", true);
  // A missing key has the class's default, not the encoder's value.
  const auto same = [&](const char* key, int64_t usual, int64_t encoder) {
    int64_t decoder = usual;
    keys.Field(key, decoder);
    const std::string wanted = absl::StrCat(encoder, ", as encoder", absl::StripPrefix(key, "decoder"));
    if (decoder == encoder) return;
    keys.Refuse(key, keys.Find(key) != nullptr ? wanted : absl::StrCat(wanted, "; a missing key means ", usual));
  };
  same("decoder_attention_heads", layout->usual.heads, config.heads);
  same("decoder_ffn_dim", layout->usual.feed_forward, config.feed_forward);
  keys.Only("num_hidden_layers", config.encoder_layers);
  // Keys of older versions, which each class has with one value only.
  keys.Only("normalize_before", layout->pre_norm);
  keys.Only("normalize_embedding", false);
  keys.Only("add_final_layer_norm", layout->pre_norm);
  keys.Only("static_position_embeddings", !layout->stores_positions);
  keys.Only("add_bias_logits", false);
  keys.Only("force_bos_token_to_be_generated", false);  // forces the begin token
  keys.Harmless({"encoder_layerdrop", "decoder_layerdrop", "layerdrop", "init_std", "classif_dropout",
                 "classifier_dropout", "extra_pos_embeddings", "gradient_checkpointing", "is_decoder", "use_cache"});
  ReadUsualKeys(keys, {layout->architecture}, /*encoder_decoder=*/true);
  return Finished(keys, config);
}

Json MarianToJson(const std::string& model_type, const TransformerConfig& config, const TranslationTokens& tokens) {
  KeyWriter keys;
  keys.Field("model_type", model_type);
  const Layout* const layout = FindLayout(model_type);
  keys.Field("architectures", std::vector<std::string>{layout->architecture});
  keys.Field("is_encoder_decoder", true);
  TransformerConfig full = WithFeedForward(config);
  ListMarian(keys, full);
  if (layout->separate_tables) {
    keys.Field("share_encoder_decoder_embeddings", full.shared_embeddings);
    keys.Field("decoder_vocab_size", full.target_vocabulary);
  }
  keys.Field("decoder_attention_heads", full.heads);
  keys.Field("decoder_ffn_dim", full.feed_forward);
  keys.Field("num_hidden_layers", full.encoder_layers);
  keys.Field("decoder_start_token_id", tokens.begin);
  keys.Field("bos_token_id", tokens.begin);
  keys.Field("eos_token_id", tokens.end);
  keys.Field("pad_token_id", tokens.padding);
  // The classes' own defaults would force an end token at the maximum length, and forbid repeated phrases.
  keys.Field("forced_eos_token_id", nullptr);
  if (model_type == "blenderbot") keys.Field("encoder_no_repeat_ngram_size", 0);
  return std::move(keys).Finish();
}

}  // namespace weft
