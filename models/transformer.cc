// Encoder and decoder are stacks of Block with the names of Hugging Face's models.
#include "weft/models/transformer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/models/block.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

// A Gaussian of variance 1 / C, as Glorot and Bengio (2010) propose for a layer with C inputs and C outputs.
Initializer UsualInitializer(const TransformerConfig& config) {
  return Gaussian(1.0f / std::sqrt(static_cast<float>(config.width)));
}

BlockOptions BlockOf(const TransformerConfig& config, int64_t layer, bool decoder) {
  const BlockOptions names = {.attention = {.causal = decoder, .packed = nullptr, .output = "out_proj"},
                              .feed_forward = {.up = "fc1", .gate = "fc_gate", .down = "fc2"},
                              .attention_name = "self_attn",
                              .attention_norm = "self_attn_layer_norm",
                              .cross_name = "encoder_attn",
                              .cross_norm = "encoder_attn_layer_norm",
                              .feed_forward_name = "",
                              .feed_forward_norm = "final_layer_norm"};
  BlockOptions block = WithStack(names, config, layer, UsualInitializer(config));
  if (config.shared_distance_bias && layer > 0) {
    block.attention.shared_bias = decoder ? "decoder.layers.0.self_attn.relative_attention_bias.weight"
                                          : "encoder.layers.0.self_attn.relative_attention_bias.weight";
  }
  if (!decoder) return block;
  AttentionOptions cross = block.attention;  // without what depends on positions, which a memory does not have
  cross.causal = false;
  cross.variant.patterns.clear();
  cross.variant.distance_bias = DistanceBias::kNone;
  cross.variant.rotary.reset();
  block.cross_attention = std::move(cross);
  return block;
}

PositionKind PositionsOf(const TransformerConfig& config) {
  return Resolve(config.positions, config.attention, PositionKind::kSinusoidal);
}

std::string LayerName(const char* side, int64_t i) { return absl::StrCat(side, ".layers.", i); }

}  // namespace

absl::Status Validate(const TransformerConfig& config) {
  WEFT_RETURN_IF_ERROR(ValidateStack(config,
                                     {{"source_vocabulary", config.source_vocabulary, 1, kMaxTokens},
                                      {"target_vocabulary", config.target_vocabulary, 1, kMaxTokens},
                                      {"context", config.context, 1, kMaxPositions},
                                      {"encoder_layers", config.encoder_layers, 1, kMaxLayers},
                                      {"decoder_layers", config.decoder_layers, 1, kMaxLayers},
                                      {"first_position", config.first_position, 0, kMaxPositions}},
                                     config.context, PositionsOf(config)));
  if (config.shared_embeddings && config.source_vocabulary != config.target_vocabulary) {
    return InvalidArgument("source_vocabulary ", config.source_vocabulary, " and target_vocabulary ",
                           config.target_vocabulary, " differ, but share their embeddings");
  }
  if (config.memory == TransformerConfig::Memory::kSameLayer && config.encoder_layers != config.decoder_layers) {
    return InvalidArgument("encoder_layers ", config.encoder_layers, " and decoder_layers ", config.decoder_layers,
                           " differ, but each decoder layer attends to its own encoder layer");
  }
  WEFT_RETURN_IF_ERROR(CheckPositive("logits_scale", config.logits_scale));
  return CheckDropout(config.label_smoothing, "label_smoothing");
}

Var Transformer::Logits(Var source, Var target, Var source_lengths) const {
  return Decode(target, Encode(source, source_lengths), source_lengths);
}

Var Transformer::Loss(Var logits, Var next) const {
  return CrossEntropy(logits, next, {.label_smoothing = config_.label_smoothing});
}

Var Transformer::Embed(const char* side, Var tokens, int64_t vocabulary, const AttentionCache* cache) const {
  Tape* const tape = tokens.tape;
  if (!CheckTokens("transformer", absl::StrCat(side, "'s tokens"), tokens, config_)) return tape->Poison();
  const DType dtype = config_.dtype;
  const bool second = config_.shared_embeddings && tape->HasParameter("shared.weight");
  const Var table =
      second ? tape->FindParameter("shared.weight")
             : EmbeddingTable(config_.shared_embeddings ? "shared" : absl::StrCat(side, ".embed_tokens"), tape,
                              vocabulary, config_.width, {.initializer = UsualInitializer(config_), .dtype = dtype});
  Var x = Embedding(table, tokens);  // [B, T, C]
  if (config_.scale_embeddings) x = Scale(x, std::sqrt(static_cast<double>(config_.width)));
  const std::string table_name = absl::StrCat(side, ".embed_positions");
  x = AddPositions(x,
                   {.kind = PositionsOf(config_),
                    .name = table_name.c_str(),
                    .context = config_.context,
                    .first = config_.first_position},
                   cache);
  if (config_.embedding_norm) {
    x = Norm(absl::StrCat(side, ".layernorm_embedding"), x, config_.norm, config_.ablation);
  }
  return Dropout(x, config_.dropout);
}

VarList Transformer::Encode(Var source, Var source_lengths) const {
  const Scope scope(source.tape, "transformer", Scope::kNoNames);
  Var x = Embed("encoder", source, config_.source_vocabulary, nullptr);
  const size_t blocks = static_cast<size_t>(std::max<int64_t>(config_.decoder_layers, 1));
  if (!source.tape->status().ok()) return VarList(blocks, x);
  BlockInputs inputs;
  if (source_lengths.tape != nullptr) inputs.attention.mask = PaddingMask(source_lengths, source.dim(1));
  VarList layers;
  for (int64_t i = 0; i < config_.encoder_layers; ++i) {
    x = Block(LayerName("encoder", i), x, BlockOf(config_, i, /*decoder=*/false), inputs);
    layers.push_back(x);
  }
  if (config_.pre_norm) layers.back() = Norm("encoder.layer_norm", layers.back(), config_.norm, config_.ablation);
  return config_.memory == TransformerConfig::Memory::kSameLayer ? layers : VarList(blocks, layers.back());
}

// Checks that `memory` has one value for each decoder block. If not, fails the tape and returns false.
bool Transformer::CheckMemory(Tape* tape, VarSpan memory) const {
  if (static_cast<int64_t>(memory.size()) == config_.decoder_layers) return true;
  tape->Fail(InvalidArgument("transformer: the memory has ", memory.size(), " values, wanted one for each of ",
                             config_.decoder_layers, " decoder layers"));
  return false;
}

Var Transformer::Decode(Var target, VarSpan memory, Var source_lengths) const {
  if (!CheckMemory(target.tape, memory)) return target;
  BlockInputs inputs;
  if (source_lengths.tape != nullptr) inputs.cross.mask = PaddingMask(source_lengths, memory[0].dim(1));
  return RunDecoder(target, nullptr, /*candidates=*/{}, [&](int64_t i) {
    inputs.cross.memory = memory[static_cast<size_t>(i)];
    return inputs;
  });
}

template <class Inputs>
Var Transformer::RunDecoder(Var target, const AttentionCache* cache, Var candidates, Inputs inputs) const {
  Tape* const tape = target.tape;
  const Scope scope(tape, "transformer", Scope::kNoNames);
  Var x = Embed("decoder", target, config_.target_vocabulary, cache);
  if (!tape->status().ok()) return tape->Poison();
  for (int64_t i = 0; i < config_.decoder_layers; ++i) {
    BlockInputs block = inputs(i);
    const AttentionCache own = cache != nullptr ? LayerOf(*cache, i) : AttentionCache();
    if (cache != nullptr) block.attention.cache = &own;
    x = Block(LayerName("decoder", i), x, BlockOf(config_, i, /*decoder=*/true), block);
  }
  if (config_.pre_norm) x = Norm("decoder.layer_norm", x, config_.norm, config_.ablation);
  return Head(x, candidates);
}

Var Transformer::Head(Var x, Var candidates) const {
  Tape* const tape = x.tape;
  const int64_t vocabulary = config_.target_vocabulary;
  x = Scaled(x, config_.logits_scale);
  if (!config_.tied_head) return Linear("lm_head", x, vocabulary, {.bias = config_.head_bias}, candidates);
  const bool all = candidates.tape == nullptr;
  const Var table = tape->FindParameter(config_.shared_embeddings ? "shared.weight" : "decoder.embed_tokens.weight");
  const Var logits = MatMul(x, all ? table : Embedding(table, candidates), {.transpose_b = true});
  if (!config_.head_bias) return logits;
  const Var bias = tape->Parameter("lm_head.bias", {x.dtype(), {vocabulary}}, Zeros());
  return logits + (all ? bias : Gather(bias, candidates, 0));
}

Var Transformer::DecodeNext(Var target, const AttentionCache& cache, const AttentionCache& stored,
                            Var candidates) const {
  AttentionCache layer;
  return RunDecoder(target, &cache, candidates, [&](int64_t i) {
    layer = LayerOf(stored, i);
    return BlockInputs{.memory = &layer};
  });
}

VarList Transformer::StoreMemory(VarSpan memory, const AttentionCache& cache) const {
  VarList states;
  if (memory.empty() || !CheckMemory(memory[0].tape, memory)) return states;
  for (int64_t i = 0; i < config_.decoder_layers; ++i) {
    const BlockOptions block = BlockOf(config_, i, /*decoder=*/true);
    const Scope scope(memory[0].tape, LayerName("decoder", i));
    const VarList stored = weft::StoreMemory(block.cross_name, memory[static_cast<size_t>(i)], config_.width,
                                             *block.cross_attention, LayerOf(cache, i));
    states.insert(states.end(), stored.begin(), stored.end());
  }
  return states;
}

}  // namespace weft
