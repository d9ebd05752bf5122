// GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): parallel layers, and rotary positions that turn a
// part of the features. The rows of one tensor are the query, the key and the value of the first head, then of the
// second.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

constexpr absl::string_view kClasses[] = {"GPTNeoXForCausalLM"};

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_act", kActivations, config.activation);
  keys.Field("hidden_dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  ListRotary(keys, config, {.theta = "rotary_emb_base", .part = "rotary_pct", .usual_part = 0.25});
  ListAttentionBias(keys, config);
  bool parallel = config.residual == ResidualForm::kParallel;
  keys.Field("use_parallel_residual", parallel);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (keys.IsNull("use_parallel_residual")) keys.Refuse("use_parallel_residual", "true or false");
  }
  config.residual = parallel ? ResidualForm::kParallel : ResidualForm::kSequential;
  keys.Harmless({"classifier_dropout"});  // of a class that no GPT here is
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 50432;
  config.layers = 44;
  config.heads = 64;
  config.width = 6144;
  config.feed_forward = 24576;
  config.activation = Activation::kGelu;
  config.bias = true;
  config.attention.projection_bias = config.attention.output_bias = true;
  config.attention_dropout = 0;
  config.norm = {.epsilon = 1e-5};
  config.gated = false;
  config.residual = ResidualForm::kParallel;
  return config;
}

std::vector<Weights::Rule> Rules(const GptConfig& config) {
  std::vector<Weights::Rule> rules = {{"gpt_neox.embed_in.weight", {"model.embed_tokens.weight"}},
                                      {"embed_out.weight", {"lm_head.weight"}}};
  for (const std::string array : {"weight", "bias"}) {
    const std::string in = "gpt_neox.layers.#.", out = "model.layers.#.", attention = out + "self_attn.";
    rules.push_back(
        {.from = in + "attention.query_key_value." + array,
         .to = {attention + "q_proj." + array, attention + "k_proj." + array, attention + "v_proj." + array},
         .groups = config.heads});
    for (const auto& [from, to] :
         {std::pair("attention.dense.", "self_attn.o_proj."), std::pair("mlp.dense_h_to_4h.", "mlp.up_proj."),
          std::pair("mlp.dense_4h_to_h.", "mlp.down_proj."), std::pair("input_layernorm.", "input_layernorm."),
          std::pair("post_attention_layernorm.", "post_attention_layernorm.")}) {
      rules.push_back({in + from + array, {out + to + array}});
    }
    rules.push_back({"gpt_neox.final_layer_norm." + array, {"model.norm." + array}});
  }
  // Older files have buffers beside the weights.
  rules.push_back({"gpt_neox.layers.#.attention.bias", {}});
  rules.push_back({"gpt_neox.layers.#.attention.masked_bias", {}});
  rules.push_back({"gpt_neox.layers.#.attention.rotary_emb.inv_freq", {}});
  return rules;
}

}  // namespace

constexpr DecoderFamily kGptNeoxDecoder = {.model_type = "gpt_neox",
                                           .classes = kClasses,
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>,
                                           .rules = Rules};

}  // namespace weft
