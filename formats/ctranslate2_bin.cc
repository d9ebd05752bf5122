// model.bin holds the weights with CTranslate2's names, and a number for each property of the model that no shape
// tells. Tables that are one in this project are aliases there.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/ctranslate2_file.h"
#include "weft/formats/published.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

using Positions = TransformerConfig::Positions;

constexpr char kSource[] = "encoder/embeddings_0/weight", kTarget[] = "decoder/embeddings/weight",
               kOutput[] = "decoder/projection/weight";
constexpr char kSourcePositions[] = "encoder/position_encodings/encodings",
               kTargetPositions[] = "decoder/position_encodings/encodings";
constexpr const char* kSides[] = {"encoder", "decoder"};

// CTranslate2's ActivationType.
constexpr std::pair<int, Activation> kActivationNumbers[] = {
    {0, Activation::kRelu}, {1, Activation::kGeluTanh}, {2, Activation::kSilu}, {3, Activation::kGelu}};

// The numbers that both sides have. `set` reports whether a model may have the value.
constexpr struct {
  const char* name;
  int bytes;
  int (*get)(const TransformerConfig&);
  bool (*set)(int, TransformerConfig*);
} kSideNumbers[] = {
    {"num_heads", 2, [](const TransformerConfig& config) { return static_cast<int>(config.heads); },
     [](int value, TransformerConfig* config) { return (config->heads = value) > 0; }},
    {"pre_norm", 1, [](const TransformerConfig& config) { return config.pre_norm ? 1 : 0; },
     [](int value, TransformerConfig* config) {
       config->pre_norm = value != 0;
       return true;
     }},
    {"activation", 1,
     [](const TransformerConfig& config) {
       return absl::c_find_if(kActivationNumbers, [&](const auto& row) { return row.second == config.activation; })
           ->first;
     },
     [](int value, TransformerConfig* config) {
       for (const auto& [number, activation] : kActivationNumbers) {
         if (number == value) config->activation = activation;
       }
       return absl::c_any_of(kActivationNumbers, [&](const auto& row) { return row.first == value; });
     }},
    {"scale_embeddings", 1, [](const TransformerConfig& config) { return config.scale_embeddings ? 1 : 0; },
     [](int value, TransformerConfig* config) {
       config->scale_embeddings = value != 0;
       return true;
     }},
};

// The numbers of features that this project's Transformer lacks, with the values of a model without them, as
// CTranslate2's converters write them. Alignments of words change no translation, so they may have any value.
constexpr struct {
  const char* name;
  int bytes, value;
  bool harmless = false;
} kFeatures[] = {{"encoder/embeddings_merge", 1, 0},
                 {"encoder/multi_query_attention", 1, 0},
                 {"decoder/alignment_layer", 2, -1, /*harmless=*/true},
                 {"decoder/alignment_heads", 2, 1, /*harmless=*/true},
                 {"decoder/alibi", 1, 0},
                 {"decoder/alibi_use_positive_positions", 1, 0},
                 {"decoder/scale_alibi", 1, 0},
                 {"decoder/start_from_zero_embedding", 1, 0}};

// Adds the position embeddings of both sides. A table of sinusoids has at least `kMinPositions` rows, because
// CTranslate2 fails beyond the last one, and its translations have up to 256 tokens unless its caller asks for less.
absl::Status AddPositions(const TransformerConfig& config, Weights* weights, CTranslate2File* file) {
  constexpr int64_t kMinPositions = 512;
  if (config.positions == Positions::kLearned) {
    return weights->Apply({{"encoder.embed_positions.weight", {kSourcePositions}},
                           {"decoder.embed_positions.weight", {kTargetPositions}}});
  }
  file->aliases[kSourcePositions] = kTargetPositions;
  const int64_t rows = std::max(config.context, kMinPositions);
  return AddSinusoids(kTargetPositions, rows, config, weights);
}

// Sets what the file's numbers tell.
absl::Status ReadNumbers(const CTranslate2File& file, TransformerConfig* config) {
  TransformerConfig sides[] = {*config, *config};
  for (const auto& [name, bytes, value] : file.numbers) {
    bool fits = absl::c_any_of(kFeatures, [&, &name = name, value = value](const auto& feature) {
      return name == feature.name && (value == feature.value || feature.harmless);
    });
    for (int side = 0; side < 2; ++side) {
      for (const auto& number : kSideNumbers) {
        if (name == absl::StrCat(kSides[side], "/", number.name)) fits = number.set(value, &sides[side]);
      }
    }
    if (!fits) return InvalidArgument(name, " is ", value, ", which is not supported");
  }
  for (const auto& number : kSideNumbers) {
    const int encoder = number.get(sides[0]), decoder = number.get(sides[1]);
    if (encoder == decoder) continue;
    return InvalidArgument("decoder/", number.name, " is ", decoder, ", wanted ", encoder, ", as in the encoder");
  }
  *config = sides[0];
  return absl::OkStatus();
}

// Adds a copy of each tensor that has a second name, except the tables that the model shares.
absl::Status ResolveAliases(const CTranslate2File& file, TransformerConfig* config, Weights* weights) {
  const auto origin = [&](const std::string& name) {
    const auto alias = file.aliases.find(name);
    return alias == file.aliases.end() ? name : alias->second;
  };
  config->shared_embeddings = origin(kSource) == origin(kTarget);
  config->tied_head = origin(kOutput) == origin(kTarget);
  const auto is_dropped = [&](const std::string& name) {
    return (name == kSource && config->shared_embeddings) || (name == kOutput && config->tied_head);
  };
  for (const auto& [alias, name] : file.aliases) {
    if (is_dropped(alias)) continue;
    const Tensor* const tensor = weights->Find(name);
    if (tensor == nullptr) return InvalidArgument("'", alias, "' is '", name, "', which is missing");
    const Tensor from = *tensor;
    WEFT_ASSIGN_OR_RETURN(const Tensor copy, weights->Add(alias, from.type));
    std::memcpy(copy.data, from.data, from.type.bytes());
  }
  std::vector<Weights::Rule> dropped;
  for (const char* const name : {kSource, kOutput}) {
    if (is_dropped(name)) dropped.push_back({name, {}});
  }
  return weights->Apply(dropped);
}

// Sets the kind of positions by the tables of position embeddings. Without tables, CTranslate2 computes sinusoids in
// halves from position 1 on.
absl::Status ReadPositions(TransformerConfig* config, Weights* weights) {
  config->positions = Positions::kSinusoidalHalves;
  config->first_position = 1;
  const Tensor* const source = weights->Find(kSourcePositions);
  const Tensor* const target = weights->Find(kTargetPositions);
  if (source == nullptr && target == nullptr) return absl::OkStatus();
  if (source == nullptr || target == nullptr || source->type != target->type || source->type.shape.rank() != 2) {
    return InvalidArgument("encoder and decoder have no tables of positions of one shape");
  }
  config->context = source->type.shape.dim(0);
  for (const auto& [positions, layout] : {std::pair{Positions::kSinusoidal, SinusoidLayout::kInterleaved},
                                          {Positions::kSinusoidalHalves, SinusoidLayout::kHalves}}) {
    for (const int64_t first : {0, 1}) {
      const auto sinusoid = [&, layout = layout](int64_t row, int64_t feature) {
        return Sinusoid(row + first, feature, source->type.shape.dim(1), layout);
      };
      if (!HasValues(*source, sinusoid) || !HasValues(*target, sinusoid)) continue;
      config->positions = positions;
      config->first_position = first;
      return weights->Apply({{kSourcePositions, {}}, {kTargetPositions, {}}});
    }
  }
  config->positions = Positions::kLearned;
  config->first_position = 0;
  return weights->Apply(
      {{kSourcePositions, {"encoder.embed_positions.weight"}}, {kTargetPositions, {"decoder.embed_positions.weight"}}});
}

// Sets the sizes that shapes tell, and which parts the model has.
absl::Status ReadSizes(const Weights& weights, TransformerConfig* config) {
  const Tensor* const target = weights.Find(kTarget);
  const Tensor* const source = config->shared_embeddings ? target : weights.Find(kSource);
  const Tensor* const hidden = weights.Find("encoder/layer_0/ffn/linear_0/weight");
  for (const Tensor* const tensor : {source, target, hidden}) {
    if (tensor == nullptr || tensor->type.shape.rank() != 2) return InvalidArgument("the file has no token tables");
  }
  config->source_vocabulary = source->type.shape.dim(0);
  config->target_vocabulary = target->type.shape.dim(0);
  config->width = target->type.shape.dim(1);
  config->feed_forward = hidden->type.shape.dim(0);
  config->bias = weights.Has("encoder/layer_0/ffn/linear_0/bias");
  if (!weights.Has("encoder/layer_0/ffn/layer_norm/beta")) config->norm.kind = NormKind::kRmsNorm;
  config->head_bias = weights.Has("decoder/projection/bias");
  for (config->encoder_layers = 0; weights.Has(absl::StrCat("encoder/layer_", config->encoder_layers, "/"));) {
    ++config->encoder_layers;
  }
  for (config->decoder_layers = 0; weights.Has(absl::StrCat("decoder/layer_", config->decoder_layers, "/"));) {
    ++config->decoder_layers;
  }
  return absl::OkStatus();
}

absl::Status Interpret(const CTranslate2File& file, TransformerConfig* config, Weights* weights) {
  WEFT_RETURN_IF_ERROR(ReadNumbers(file, config));
  WEFT_RETURN_IF_ERROR(ResolveAliases(file, config, weights));
  WEFT_RETURN_IF_ERROR(ReadSizes(*weights, config));
  WEFT_RETURN_IF_ERROR(ReadPositions(config, weights));
  return weights->Apply(
      {{kSource, {"encoder/embeddings/weight"}}, {kTarget, {config->shared_embeddings ? "shared.weight" : kTarget}}});
}

}  // namespace

absl::Status WriteModelBin(const std::string& path, const TransformerConfig& config, Weights weights) {
  CTranslate2File file;
  WEFT_RETURN_IF_ERROR(weights.Apply({{"encoder/embeddings/weight", {kSource}}, {"shared.weight", {kTarget}}}));
  if (config.shared_embeddings) file.aliases[kSource] = kTarget;
  if (config.tied_head) file.aliases[kOutput] = kTarget;
  WEFT_RETURN_IF_ERROR(AddPositions(config, &weights, &file));
  for (const char* const side : kSides) {
    for (const auto& number : kSideNumbers) {
      file.numbers.push_back({absl::StrCat(side, "/", number.name), number.bytes, number.get(config)});
    }
  }
  for (const auto& feature : kFeatures) file.numbers.push_back({feature.name, feature.bytes, feature.value});
  file.tensors.assign(weights.tensors().begin(), weights.tensors().end());
  return WriteCTranslate2File(path, file);
}

absl::StatusOr<Weights> ReadModelBin(const std::string& path, TransformerConfig* config) {
  Weights weights;
  WEFT_ASSIGN_OR_RETURN(const CTranslate2File file, ReadCTranslate2File(path, &weights));
  WEFT_RETURN_IF_ERROR(Annotate(Interpret(file, config, &weights), path));
  return weights;
}

}  // namespace weft
