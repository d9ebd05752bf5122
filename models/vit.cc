// A reshape and a permutation cut images into patches, so that the projection of all patches is one matrix product.
#include "weft/models/vit.h"

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/models/block.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr Initializer kInitializer = Gaussian(0.02f);

BlockOptions BlockOf(const VitConfig& config, int64_t layer) {
  const BlockOptions names = {
      .attention = {.packed = nullptr,
                    .query = "attention.query",
                    .key = "attention.key",
                    .value = "attention.value",
                    .output = "output.dense"},
      .feed_forward = {.up = "intermediate.dense", .gate = "intermediate.gate", .down = "output.dense"},
      .attention_name = "attention",
      .attention_norm = "layernorm_before",
      .feed_forward_name = "",
      .feed_forward_norm = "layernorm_after"};
  return WithStack(names, config, layer, kInitializer);
}

// Unless the configuration is valid and `images` are f32 or f64 in the configured size, fails the tape.
void Check(const VitConfig& config, Var images) {
  if (absl::Status valid = Validate(config); !valid.ok()) return void(images.tape->Fail(Annotate(valid, "vit")));
  const Shape wanted = {images.dim(0), config.image_height, config.image_width, config.channels};
  if ((images.dtype() == kF32 || images.dtype() == kF64) && images.shape() == wanted) return;
  images.tape->Fail(ShapeError("vit",
                               absl::StrCat("images must be f32 or f64 [B,", config.image_height, ",",
                                            config.image_width, ",", config.channels, "]: height, width, channels"),
                               {images.type()}));
}

// Cuts images [B, height, width, Ch] into patches [B, N, Ch·P·P]. The values of a patch have the order of a
// convolution's weight: channel, row, column.
Var Patches(Var images, const VitConfig& config) {
  const int64_t patch = config.patch_size, channels = config.channels;
  const Var cut =
      Reshape(images, {images.dim(0), config.image_height / patch, patch, config.image_width / patch, patch, channels});
  return Reshape(Permute(cut, {0, 1, 3, 5, 2, 4}), {images.dim(0), config.patches(), channels * patch * patch});
}

// Records a linear layer of x [..., in] with a weight in `shape`, that of a convolution: [out, ...]. Returns [...,
// out].
Var Convolution(const char* name, Var x, const Shape& shape) {
  const Scope scope(x.tape, name);
  const Var weight = x.tape->Parameter("weight", {x.dtype(), shape}, LeCunGaussian());
  const Var bias = x.tape->Parameter("bias", {x.dtype(), {shape.dim(0)}}, Zeros());
  return MatMul(x, Reshape(weight, {shape.dim(0), -1}), {.transpose_b = true}) + bias;
}

// Replaces each of `patches` [B, N, C] for which `mask` [B, N] is 1 by the mask token.
Var Hide(Var patches, Var mask) {
  Tape* const tape = patches.tape;
  const Shape wanted = {patches.dim(0), patches.dim(1)};
  if (mask.dtype() != patches.dtype() || mask.shape() != wanted) {
    return tape->Fail(ShapeError("vit", "the mask must be [B,N] of the images' dtype", {patches.type(), mask.type()}));
  }
  const Var token = tape->Parameter("mask_token", {patches.dtype(), {1, 1, patches.dim(2)}}, Zeros());
  const Var hidden = Reshape(mask, {wanted.dim(0), wanted.dim(1), 1});
  return patches * (1 - hidden) + token * hidden;
}

Var Embed(Var images, const VitInputs& inputs, const VitConfig& config) {
  Tape* const tape = images.tape;
  const Scope scope(tape, "embeddings");
  const Shape projection = {config.width, config.channels, config.patch_size, config.patch_size};
  Var patches = Convolution("patch_embeddings.projection", Patches(images, config), projection);  // [B, N, C]
  if (inputs.mask) patches = Hide(patches, inputs.mask);
  const auto token = [&](const char* name) {  // [B, 1, C]
    const Var row = tape->Parameter(name, {images.dtype(), {1, 1, config.width}}, kInitializer);
    return BroadcastTo(row, {images.dim(0), 1, config.width});
  };
  VarList tokens = {token("cls_token")};
  if (config.distillation != Distillation::kNone) tokens.push_back(token("distillation_token"));
  tokens.push_back(patches);
  Var x = Concat(tokens, 1);
  const PositionKind kind = Resolve(config.positions, config.attention);
  if (!inputs.places) return Dropout(x, config.dropout);
  if (kind == PositionKind::kLearned) {
    x = x + tape->Parameter("position_embeddings", {x.dtype(), {1, x.dim(1), config.width}}, kInitializer);
  } else {
    x = AddPositions(x, {.kind = kind});
  }
  return Dropout(x, config.dropout);
}

}  // namespace

absl::Status Validate(const VitConfig& config) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"image_height", config.image_height, 1, kMaxFeatures},
                                   {"image_width", config.image_width, 1, kMaxFeatures},
                                   {"channels", config.channels, 1, kMaxFeatures},
                                   {"patch_size", config.patch_size, 1, kMaxFeatures},
                                   {"classes", config.classes, 1, kMaxTokens},
                                   {"layers", config.layers, 1, kMaxLayers}}));
  if (config.image_height % config.patch_size != 0 || config.image_width % config.patch_size != 0) {
    return InvalidArgument("an image of height ", config.image_height, " and width ", config.image_width,
                           " can't be cut into patches of patch_size ", config.patch_size,
                           ": both must be multiples of it");
  }
  if (config.patches() > kMaxPositions) {
    return InvalidArgument("an image of ", config.patches(), " patches, but there may be ", kMaxPositions, " at most");
  }
  return ValidateStack(config, {}, config.patches() + config.first_patch(), config.positions);
}

Var Vit::Encode(Var images, const VitInputs& inputs) const {
  Tape* const tape = images.tape;
  const Scope scope(tape, config_.distillation == Distillation::kNone ? "vit" : "deit");
  Check(config_, images);
  if (!tape->status().ok()) return tape->Poison();
  Var x = Embed(images, inputs, config_);
  for (int64_t i = 0; i < config_.layers; ++i) x = Block(absl::StrCat("encoder.layer.", i), x, BlockOf(config_, i));
  return Norm("layernorm", x, config_.norm, config_.ablation);
}

Var Vit::Classify(Var hidden) const {
  if (!hidden.tape->status().ok()) return hidden.tape->Poison();
  const auto logits = [&](const char* name, int64_t token) {
    return Linear(name, Reshape(Slice(hidden, 1, token, token + 1), {hidden.dim(0), config_.width}), config_.classes);
  };
  if (config_.distillation != Distillation::kHead) return logits("classifier", 0);
  const Var own = logits("cls_classifier", 0);
  return (own + logits("distillation_classifier", 1)) * 0.5f;
}

Var Vit::Reconstruct(Var hidden) const {
  if (!hidden.tape->status().ok()) return hidden.tape->Poison();
  const int64_t pixels = config_.channels * config_.patch_size * config_.patch_size;
  const Var patches = Slice(hidden, 1, config_.first_patch(), hidden.dim(1));
  return Convolution("decoder.0", patches, {pixels, config_.width, 1, 1});
}

Var Vit::ReconstructionLoss(Var predicted, Var images, Var mask) const {
  if (!images.tape->status().ok()) return images.tape->Poison();
  const Var errors = Mean(Abs(predicted - Patches(images, config_)), 2);  // [B, N]
  return Sum(errors * mask) / Sum(mask);
}

Var Vit::Places(Var hidden) const {
  if (!hidden.tape->status().ok()) return hidden.tape->Poison();
  return Linear("places", Slice(hidden, 1, config_.first_patch(), hidden.dim(1)), config_.patches());
}

Var Vit::Predict(VitTask task, Var images) const {
  if (task == VitTask::kClassify) return Logits(images);
  if (task == VitTask::kOrder) return Places(Encode(images, {.places = false}));
  const Var mask = images.tape->Input("mask", {images.dtype(), {images.dim(0), config_.patches()}});
  return Reconstruct(Encode(images, {.mask = mask}));
}

}  // namespace weft
