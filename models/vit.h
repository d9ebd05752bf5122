// A Vit records the Vision Transformer (Dosovitskiy et al., "An image is worth 16x16 words", 2021). It cuts an image
// into patches and makes a token of each patch. A stack of pre-norm blocks then reads a class token and the patches.
//
//   Vit vit({.image_height = 28, .image_width = 28, .channels = 1, .patch_size = 4, .classes = 10});
//   Var logits = vit.Logits(images);   // images f32 [B, 28, 28, 1] → [B, 10]
#ifndef WEFT_MODELS_VIT_H_
#define WEFT_MODELS_VIT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

// DeiT (Touvron et al., "Training data-efficient image transformers & distillation through attention", 2021) adds a
// distillation token after the class token.
enum class Distillation : uint8_t {
  kNone,   // no distillation token: a ViT
  kToken,  // the token is an input, but the classifier reads the class token only
  kHead,   // a second classifier reads the distillation token; the logits are the mean of both classifiers
};

struct VitConfig {
  int64_t image_height = 224, image_width = 224;  // in pixels, multiples of patch_size
  int64_t channels = 3;
  int64_t patch_size = 16;  // the height and width of a patch
  int64_t classes = 1000;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;       // C, a multiple of heads
  int64_t feed_forward = 0;  // F; 0: 4·C
  // Probability of dropout after positions are added, each attention's output layer, and each feed-forward layer.
  double dropout = 0;
  // Unset, the probability for attention weights is 0, and that between the feed-forward layers is `dropout`.
  std::optional<double> attention_dropout, activation_dropout;
  NormOptions norm = {.epsilon = 1e-12};
  Activation activation = Activation::kGelu;
  bool pre_norm = true;  // false: norms come after the residual connections
  bool bias = true;      // true: the blocks' linear layers have biases
  bool gated = false;    // true: feed-forward layers have a gate
  AttentionVariant attention;
  PositionKind positions = PositionKind::kAuto;
  std::optional<Initializer> initializer;  // of linear layers in blocks; unset: Gaussian(0.02)
  bool zero_output = false;                // true: layers whose results are added to x begin with zeros
  Ablation ablation;                       // for study only: parts that are left out
  Distillation distillation = Distillation::kNone;

  int64_t patches() const { return (image_height / patch_size) * (image_width / patch_size); }
  // The number of tokens before those of the patches.
  int64_t first_patch() const { return distillation == Distillation::kNone ? 1 : 2; }
};

// A VitTask is what a Vision Transformer learns from pictures. Only kClassify needs labels.
enum class VitTask : uint8_t {
  kClassify,  // the class of a picture
  kMasked,    // the pixels of patches that a mask hides
  kOrder,     // the place from which each shuffled patch comes
};

inline constexpr std::pair<const char*, VitTask> kVitTaskNames[] = {
    {"classify", VitTask::kClassify}, {"masked", VitTask::kMasked}, {"order", VitTask::kOrder}};

struct VitInputs {
  Var mask;            // [B, N] of the images' dtype: 1 for a patch that is hidden, else 0; null: none is hidden
  bool places = true;  // false: patches get no table of positions, so that they do not tell their places
};

// Returns InvalidArgument if `config` does not describe a model that Vit can record.
absl::Status Validate(const VitConfig& config);

// Records a Vision Transformer of N patches of P·P pixels with Ch channels. Parameters have the names and shapes of
// Hugging Face's ViTForImageClassification:
// vit.embeddings.cls_token [1, 1, C], vit.embeddings.position_embeddings [1, N + 1, C],
// vit.embeddings.patch_embeddings.projection.weight [C, Ch, P, P],
// vit.encoder.layer.0.attention.attention.query.weight, ..., vit.layernorm.weight, classifier.weight. Hugging Face
// computes the projection as a convolution, Vit as a product with the weight as a matrix [C, Ch·P·P]. The names for the
// task kMasked are those of ViTForMaskedImageModeling: vit.embeddings.mask_token [1, 1, C] and decoder.0.weight
// [Ch·P·P, C, 1, 1]. The head for kOrder is places.weight [N, C]. With a distillation, the names are those of
// DeiTForImageClassification or, for kHead, DeiTForImageClassificationWithTeacher: deit.embeddings.distillation_token,
// cls_classifier.weight, distillation_classifier.weight.
class Vit {
 public:
  explicit Vit(const VitConfig& config) : config_(config) {}

  // Returns the hidden states [B, N + 1, C] of the class token and then of the N = patches() patches, row by row. With
  // a distillation, they are [B, N + 2, C]. `images`: f32 or f64 [B, height, width, channels], rows from the top. A
  // token that is learnt replaces hidden patches.
  Var Encode(Var images, const VitInputs& inputs = {}) const;
  Var Classify(Var hidden) const;  // logits [B, classes] of Encode's hidden states, from the tokens before the patches
  Var Logits(Var images) const { return Classify(Encode(images)); }
  // Returns predicted pixels [B, N, Ch·P·P] of the patches, by one linear layer. A patch has the order of a
  // convolution's weight: channel, row, column.
  Var Reconstruct(Var hidden) const;
  // Returns the mean of |predicted - pixel| over the pixels of the hidden patches, as SimMIM (Xie et al. 2022) and
  // ViTForMaskedImageModeling do. `mask`: as in VitInputs, with at least one 1.
  Var ReconstructionLoss(Var predicted, Var images, Var mask) const;
  // Returns logits [B, N, N] of the place of each patch. MP3 (Zhai et al., "Position prediction as an effective
  // pretraining strategy", 2022) trains so, with VitInputs::places false.
  Var Places(Var hidden) const;
  // Returns the prediction of `task`. For kMasked, records the input "mask" [B, N].
  Var Predict(VitTask task, Var images) const;

 private:
  VitConfig config_;
};

}  // namespace weft

#endif  // WEFT_MODELS_VIT_H_
