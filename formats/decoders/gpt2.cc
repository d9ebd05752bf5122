// GPT-2 (Radford et al., 2019) and minGPT's gpt-nano, which has GPT-2's keys.
#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

constexpr absl::string_view kClasses[] = {"GPT2LMHeadModel", "GPT2Model"};

template <class Keys>
void ListGpt2(Keys& keys, GptConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("n_positions", config.context);
  keys.Field("n_embd", config.width);
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.SizeOrNull("n_inner", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  keys.Field("attn_pdrop", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Only("scale_attn_weights", true);
  keys.Only("scale_attn_by_inverse_layer_idx", false);
  keys.Only("position_embedding_type", "absolute");
  // n_ctx was the size of the causal mask. reorder_and_upcast_attn asks for attention in f32, which is always so here.
  // The summary keys belong to a head that no GPT here has.
  keys.Harmless({"n_ctx", "reorder_and_upcast_attn", "n_special", "predict_special_tokens", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
}

void ReadGptNano(KeyReader& keys, GptConfig& config) {
  config.tied_head = false;
  keys.Field("block_size", config.context);
  ListGpt2(keys, config);
}

GptConfig Defaults() {
  GptConfig config;
  config.dropout = 0.1;
  config.embedding_dropout = config.attention_dropout = 0.1;
  return config;
}

std::vector<Weights::Rule> Gpt2Rules(const GptConfig&) { return TransposeRules(PublishedGpt::kFamily); }

}  // namespace

constexpr DecoderFamily kGpt2Decoder = {.model_type = "gpt2",
                                        .classes = kClasses,
                                        .defaults = Defaults,
                                        .read = ListGpt2<KeyReader>,
                                        .write = ListGpt2<KeyWriter>,
                                        .rules = Gpt2Rules};
constexpr DecoderFamily kGptNanoDecoder = {
    .model_type = "gpt-nano", .classes = kClasses, .defaults = Defaults, .read = ReadGptNano, .write = nullptr};

}  // namespace weft
