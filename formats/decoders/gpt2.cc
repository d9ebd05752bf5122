// GPT-2 (Radford et al., 2019) and minGPT's gpt-nano, which has GPT-2's keys.
#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

template <class Keys>
void ListGpt2(Keys& keys, GptConfig& config) {
  ListGpt2Keys(keys, config);
  keys.Only("scale_attn_weights", true);
  keys.Only("scale_attn_by_inverse_layer_idx", false);
  keys.Only("position_embedding_type", "absolute");
  // n_ctx was the size of the causal mask. reorder_and_upcast_attn asks for attention in f32, which is always so here.
  keys.Harmless({"n_ctx", "reorder_and_upcast_attn", "n_special", "predict_special_tokens"});
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
                                        .classes = {"GPT2LMHeadModel", "GPT2Model"},
                                        .defaults = Defaults,
                                        .read = ListGpt2<KeyReader>,
                                        .write = ListGpt2<KeyWriter>,
                                        .rules = Gpt2Rules};
constexpr DecoderFamily kGptNanoDecoder = {.model_type = "gpt-nano",
                                           .classes = {"GPT2LMHeadModel", "GPT2Model"},
                                           .defaults = Defaults,
                                           .read = ReadGptNano,
                                           .write = nullptr};

}  // namespace weft
