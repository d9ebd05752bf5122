// Phi-3 (Microsoft, 2024): a Llama whose queries, keys and values are one tensor, and whose gates and ups are another.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  keys.Field("resid_pdrop", config.dropout);
  ListLlamaKeys(keys, config);
  ListRotary(keys, config, {.part = "partial_rotary_factor", .may_scale = false});
  ListWindow(keys, config);
  keys.Harmless({"original_max_position_embeddings", "embd_pdrop"});  // for scalings, which are refused; unused
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 32064;
  config.context = 4096;
  config.width = 3072;
  config.feed_forward = 8192;
  config.norm.epsilon = 1e-5;
  config.embedding_dropout = config.attention_dropout = 0;
  return config;
}

std::vector<Weights::Rule> Rules(const GptConfig& config) {
  const int64_t groups = config.attention.key_value_heads != 0 ? config.attention.key_value_heads : config.heads;
  return {{.from = "#.self_attn.qkv_proj.weight",
           .to = {"#.self_attn.q_proj.weight", "#.self_attn.k_proj.weight", "#.self_attn.v_proj.weight"},
           .parts = {config.heads, groups, groups}},
          {.from = "#.mlp.gate_up_proj.weight", .to = {"#.mlp.gate_proj.weight", "#.mlp.up_proj.weight"}}};
}

}  // namespace

constexpr DecoderFamily kPhi3Decoder = {.model_type = "phi3",
                                        .classes = {"Phi3ForCausalLM"},
                                        .defaults = Defaults,
                                        .read = List<KeyReader>,
                                        .write = List<KeyWriter>,
                                        .rules = Rules};

}  // namespace weft
