// Phi-1 to Phi-2 (Microsoft, 2023): parallel layers with one norm for both, rotary positions that turn a part of the
// features, and biases in all layers and the head.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  ListLlamaKeys(keys, config, "hidden_act", "layer_norm_eps");
  ListRotary(keys, config, {.part = "partial_rotary_factor", .usual_part = 0.5});
  bool norm = config.attention.query_key_norm == QueryKeyNorm::kHead;
  keys.Field("qk_layernorm", norm);
  if (norm) config.attention.query_key_norm = QueryKeyNorm::kHead;
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 51200;
  config.layers = 24;
  config.width = 2048;
  config.feed_forward = 8192;
  config.head_bias = true;
  config.residual = ResidualForm::kSharedNorm;
  return config;
}

constexpr LayerName kLayers[] = {{"#.self_attn.dense", "#.self_attn.o_proj"},
                                 {"#.self_attn.q_layernorm", "#.self_attn.q_norm"},
                                 {"#.self_attn.k_layernorm", "#.self_attn.k_norm"},
                                 {"#.mlp.fc1", "#.mlp.up_proj"},
                                 {"#.mlp.fc2", "#.mlp.down_proj"},
                                 {"model.final_layernorm", "model.norm"}};

}  // namespace

constexpr DecoderFamily kPhiDecoder = {.model_type = "phi",
                                       .classes = {"PhiForCausalLM"},
                                       .defaults = Defaults,
                                       .read = List<KeyReader>,
                                       .write = List<KeyWriter>,
                                       .layers = kLayers};

}  // namespace weft
