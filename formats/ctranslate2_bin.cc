// model.bin, the file of weights of the program CTranslate2, has version 6 of CTranslate2's binary format and revision
// 7 of its TransformerSpec. After the header come the variables in the order of their names: name, rank, sizes, type
// and bytes. The aliases follow, such as those of tables that are one in this project. A variable is a weight, or a
// number for a property of the model that no shape tells. All integers are little-endian. Each text has its length,
// which includes a final zero, in 2 bytes.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/dtype.h"
#include "weft/formats/published.h"
#include "weft/formats/translators.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

constexpr uint32_t kBinaryVersion = 6, kRevision = 7;
constexpr char kSpec[] = "TransformerSpec", kScale[] = "_scale";
enum Type : uint32_t { kFloat32, kInt8, kInt16, kInt32, kFloat16, kBFloat16 };  // CTranslate2's types
constexpr size_t kTypeBytes[] = {4, 1, 2, 4, 2, 2};                             // by type

void Put(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

void PutText(absl::string_view text, std::string* to) {
  Put(text.size() + 1, 2, to);
  to->append(text.data(), text.size());
  to->push_back('\0');
}

// Takes numbers and texts from the front of `rest`. Where too few bytes are left, `ok` becomes false.
struct Bytes {
  absl::string_view rest;
  bool ok = true;

  absl::string_view Take(size_t count) {
    ok = ok && count <= rest.size();
    const absl::string_view taken = rest.substr(0, ok ? count : 0);
    rest.remove_prefix(taken.size());
    return taken;
  }
  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    const absl::string_view taken = Take(bytes);
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  std::string Text() { return std::string(absl::StripSuffix(Take(Number(2)), absl::string_view("\0", 1))); }
};

// A variable of the file, with the bytes of its value.
struct Variable {
  Shape sizes;
  Type type = kFloat32;
  absl::string_view bytes;

  size_t elements() const { return bytes.size() / kTypeBytes[type]; }
  bool is_integer() const { return type == kInt8 || type == kInt16 || type == kInt32; }
  bool is_number() const { return sizes.rank() == 0 && is_integer(); }  // a setting, such as the number of heads
  int64_t Integer(size_t i) const {
    const int unused = 64 - 8 * static_cast<int>(kTypeBytes[type]);
    const uint64_t bits = Bytes{bytes.substr(i * kTypeBytes[type])}.Number(kTypeBytes[type]);
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  float Float(size_t i) const {
    if (is_integer()) return static_cast<float>(Integer(i));
    const auto bits = static_cast<uint32_t>(Bytes{bytes.substr(i * kTypeBytes[type])}.Number(kTypeBytes[type]));
    if (type == kFloat16) return FromHalfBits(static_cast<uint16_t>(bits));
    return absl::bit_cast<float>(type == kBFloat16 ? bits << 16 : bits);
  }
};

struct ModelBin {
  std::map<std::string, Variable> variables;
  std::map<std::string, std::string> aliases;  // a second name of a tensor, and its first name
  std::deque<std::string> numbers;             // the bytes of variables that AddNumber has added
};

// Adds a signed integer of 1 or 2 bytes.
void AddNumber(const std::string& name, int bytes, int value, ModelBin* file) {
  std::string& number = file->numbers.emplace_back();
  Put(static_cast<uint64_t>(value), bytes, &number);
  file->variables[name] = {.type = bytes == 1 ? kInt8 : kInt16, .bytes = number};
}

absl::Status Write(const std::string& path, const ModelBin& file) {
  std::string head, aliases;
  Put(kBinaryVersion, 4, &head);
  PutText(kSpec, &head);
  Put(kRevision, 4, &head);
  Put(file.variables.size(), 4, &head);
  std::vector<absl::string_view> parts = {head};
  std::deque<std::string> headers;  // the bytes of each variable before its value
  for (const auto& [name, variable] : file.variables) {
    std::string& header = headers.emplace_back();
    PutText(name, &header);
    Put(static_cast<uint64_t>(variable.sizes.rank()), 1, &header);
    for (const int64_t size : variable.sizes.dims()) Put(static_cast<uint64_t>(size), 4, &header);
    Put(variable.type, 1, &header);
    Put(variable.bytes.size(), 4, &header);
    parts.insert(parts.end(), {header, variable.bytes});
  }
  Put(file.aliases.size(), 4, &aliases);
  for (const auto& [alias, name] : file.aliases) {
    PutText(alias, &aliases);
    PutText(name, &aliases);
  }
  parts.emplace_back(aliases);
  return WriteFile(path, parts);
}

absl::StatusOr<Variable> TakeVariable(const std::string& name, Bytes* from) {
  constexpr size_t kMaxRank = 4;
  Variable variable;
  uint64_t elements = 1;
  const size_t rank = from->Number(1);
  for (size_t i = 0; i < rank && rank <= kMaxRank; ++i) {
    const uint64_t size = from->Number(4);
    variable.sizes.Append(static_cast<int64_t>(size));
    elements = std::min<uint64_t>(elements, from->rest.size() + 1) * size;
  }
  const uint64_t type = from->Number(1), bytes = from->Number(4);
  const bool known = rank <= kMaxRank && type < std::size(kTypeBytes);
  if (!known || elements * kTypeBytes[type] != bytes) {
    return InvalidArgument("'", name, "' has rank ", rank, ", type ", type, " and ", bytes,
                           " bytes, which do not fit each other");
  }
  variable.type = static_cast<Type>(type);
  variable.bytes = from->Take(bytes);
  return variable;
}

// Adds the value of `variable`, divided by `scales`: one scale, or one for each row.
absl::Status AddTensor(const std::string& name, const Variable& variable, const Variable* scales, Weights* weights) {
  const size_t elements = variable.elements(), rows = scales == nullptr ? 1 : scales->elements();
  if (variable.sizes.rank() == 0) return InvalidArgument("'", name, "' is a fraction, wanted a whole number");
  const bool fits =
      scales == nullptr ? !variable.is_integer() : rows == 1 || static_cast<int64_t>(rows) == variable.sizes.dim(0);
  if (!fits) return InvalidArgument("'", name, "' has no scales that fit it");
  WEFT_ASSIGN_OR_RETURN(const Tensor tensor, weights->Add(name, {kF32, variable.sizes}));
  for (size_t i = 0; i < elements; ++i) {
    const float scale = scales == nullptr ? 1 : scales->Float(i / (elements / rows));
    tensor.as<float>()[i] = variable.Float(i) / scale;
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelBin> Parse(absl::string_view contents) {
  Bytes bytes{contents};
  ModelBin file;
  if (const uint64_t version = bytes.Number(4); version != kBinaryVersion) {
    return InvalidArgument("version ", version, " of CTranslate2's files, wanted ", kBinaryVersion,
                           "; a converter of CTranslate2 4 writes it");
  }
  const std::string spec = bytes.Text();
  if (const uint64_t revision = bytes.Number(4); spec != kSpec || revision != kRevision) {
    return InvalidArgument("the model is '", spec, "', revision ", revision, "; wanted ", kSpec, ", revision ",
                           kRevision);
  }
  for (uint64_t count = bytes.Number(4); count > 0 && bytes.ok; --count) {
    const std::string name = bytes.Text();
    WEFT_ASSIGN_OR_RETURN(file.variables[name], TakeVariable(name, &bytes));
  }
  for (uint64_t count = bytes.Number(4); count > 0 && bytes.ok; --count) {
    const std::string alias = bytes.Text(), name = bytes.Text();
    if (!absl::EndsWith(alias, kScale)) file.aliases[alias] = name;
  }
  if (!bytes.ok) return InvalidArgument("the file ends too early, at byte ", contents.size());
  return file;
}

constexpr char kSource[] = "encoder/embeddings_0/weight", kTarget[] = "decoder/embeddings/weight",
               kOutput[] = "decoder/projection/weight";
constexpr char kSourcePositions[] = "encoder/position_encodings/encodings",
               kTargetPositions[] = "decoder/position_encodings/encodings";
constexpr const char* kSides[] = {"encoder", "decoder"};

// CTranslate2's ActivationType.
constexpr Activation kActivationNumbers[] = {Activation::kRelu, Activation::kGeluTanh, Activation::kSilu,
                                             Activation::kGelu};

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
       return static_cast<int>(absl::c_find(kActivationNumbers, config.activation) - kActivationNumbers);
     },
     [](int value, TransformerConfig* config) {
       const bool known = 0 <= value && value < static_cast<int>(std::size(kActivationNumbers));
       if (known) config->activation = kActivationNumbers[value];
       return known;
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

// Sets what the file's numbers tell.
absl::Status ReadNumbers(const ModelBin& file, TransformerConfig* config) {
  TransformerConfig sides[] = {*config, *config};
  for (const auto& [name, variable] : file.variables) {
    if (absl::EndsWith(name, kScale) || !variable.is_number()) continue;
    const auto value = static_cast<int>(variable.Integer(0));
    bool fits = absl::c_any_of(kFeatures, [&, &name = name](const auto& feature) {
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
absl::Status ResolveAliases(const ModelBin& file, TransformerConfig* config, Weights* weights) {
  const auto origin = [&](const std::string& name) {
    const auto alias = file.aliases.find(name);
    return alias == file.aliases.end() ? name : alias->second;
  };
  config->shared_embeddings = origin(kSource) == origin(kTarget);
  config->tied_head = origin(kOutput) == origin(kTarget);
  std::set<std::string> dropped;
  if (config->shared_embeddings) dropped.insert(kSource);
  if (config->tied_head) dropped.insert(kOutput);
  for (const auto& [alias, name] : file.aliases) {
    if (dropped.contains(alias)) continue;
    const Tensor* const tensor = weights->Find(name);
    if (tensor == nullptr) return InvalidArgument("'", alias, "' is '", name, "', which is missing");
    WEFT_RETURN_IF_ERROR(weights->AddCopy(alias, *tensor));
  }
  for (const std::string& name : dropped) WEFT_RETURN_IF_ERROR(weights->Apply({{name, {}}}));
  return absl::OkStatus();
}

// Sets the kind of positions by the tables of position embeddings. Without tables, CTranslate2 computes sinusoids in
// halves from position 1 on.
absl::Status ReadPositions(TransformerConfig* config, Weights* weights) {
  config->positions = PositionKind::kSinusoidalHalves;
  config->first_position = 1;
  const Tensor *const source = weights->Find(kSourcePositions), *const target = weights->Find(kTargetPositions);
  if (source == nullptr && target == nullptr) return absl::OkStatus();
  if (source == nullptr || target == nullptr || source->type != target->type || source->type.shape.rank() != 2) {
    return InvalidArgument("encoder and decoder have no tables of positions of one shape");
  }
  config->context = source->type.shape.dim(0);
  for (const auto& [positions, layout] : {std::pair{PositionKind::kSinusoidal, SinusoidLayout::kInterleaved},
                                          {PositionKind::kSinusoidalHalves, SinusoidLayout::kHalves}}) {
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
  config->positions = PositionKind::kLearned;
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
  for (const auto& [side, layers] :
       {std::pair{"encoder", &config->encoder_layers}, {"decoder", &config->decoder_layers}}) {
    for (*layers = 0; weights.Has(absl::StrCat(side, "/layer_", *layers, "/"));) ++*layers;
  }
  return absl::OkStatus();
}

absl::Status Read(absl::string_view contents, TransformerConfig* config, Weights* weights) {
  WEFT_ASSIGN_OR_RETURN(const ModelBin file, Parse(contents));
  for (const auto& [name, variable] : file.variables) {
    if (absl::EndsWith(name, kScale) || variable.is_number()) continue;
    const auto scales = file.variables.find(name + kScale);
    const Variable* const own = scales == file.variables.end() ? nullptr : &scales->second;
    WEFT_RETURN_IF_ERROR(AddTensor(name, variable, own, weights));
  }
  WEFT_RETURN_IF_ERROR(ReadNumbers(file, config));
  WEFT_RETURN_IF_ERROR(ResolveAliases(file, config, weights));
  WEFT_RETURN_IF_ERROR(ReadSizes(*weights, config));
  WEFT_RETURN_IF_ERROR(ReadPositions(config, weights));
  return weights->Apply(
      {{kSource, {"encoder/embeddings/weight"}}, {kTarget, {config->shared_embeddings ? "shared.weight" : kTarget}}});
}

}  // namespace

absl::Status WriteModelBin(const std::string& path, const TransformerConfig& config, Weights weights) {
  ModelBin file;
  WEFT_RETURN_IF_ERROR(weights.Apply({{"encoder/embeddings/weight", {kSource}}, {"shared.weight", {kTarget}}}));
  if (config.shared_embeddings) file.aliases[kSource] = kTarget;
  if (config.tied_head) file.aliases[kOutput] = kTarget;
  if (config.positions == PositionKind::kLearned) {
    WEFT_RETURN_IF_ERROR(weights.Apply({{"encoder.embed_positions.weight", {kSourcePositions}},
                                        {"decoder.embed_positions.weight", {kTargetPositions}}}));
  } else {
    // CTranslate2 fails beyond the last row, and translates to up to 256 tokens unless its caller asks for less.
    const int64_t rows = std::max<int64_t>(config.context, 512);
    file.aliases[kSourcePositions] = kTargetPositions;
    WEFT_RETURN_IF_ERROR(AddSinusoids(kTargetPositions, rows, config, &weights));
  }
  for (const auto& [name, tensor] : weights.tensors()) {
    if (name.size() >= std::numeric_limits<uint16_t>::max()) {
      return InvalidArgument("a tensor's name has ", name.size(), " bytes, wanted less than 65535");
    }
    const size_t bytes = tensor.type.bytes();
    if (tensor.type.dtype != kF32 || bytes > std::numeric_limits<uint32_t>::max()) {
      return InvalidArgument("'", name, "' is ", ToString(tensor.type), ", wanted f32 of at most 4 GiB");
    }
    file.variables[name] = {tensor.type.shape, kFloat32, {tensor.as<const char>(), bytes}};
  }
  for (const char* const side : kSides) {
    for (const auto& number : kSideNumbers) {
      AddNumber(absl::StrCat(side, "/", number.name), number.bytes, number.get(config), &file);
    }
  }
  for (const auto& feature : kFeatures) AddNumber(feature.name, feature.bytes, feature.value, &file);
  return Write(path, file);
}

absl::StatusOr<Weights> ReadModelBin(const std::string& path, TransformerConfig* config) {
  WEFT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  Weights weights;
  WEFT_RETURN_IF_ERROR(Annotate(Read(file.bytes(), config, &weights), path));
  return weights;
}

}  // namespace weft
