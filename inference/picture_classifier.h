// A PictureClassifier classifies pictures with a Vision Transformer.
//
//   WEFT_ASSIGN_OR_RETURN(const auto classifier, PictureClassifier::Open("runs/vit-1", {}));
//   WEFT_ASSIGN_OR_RETURN(const auto logits, classifier->Run(images));
#ifndef WEFT_INFERENCE_PICTURE_CLASSIFIER_H_
#define WEFT_INFERENCE_PICTURE_CLASSIFIER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/formats/images.h"
#include "weft/formats/weights.h"
#include "weft/inference/classifier.h"
#include "weft/inference/pixel_scale.h"
#include "weft/inference/runtime.h"
#include "weft/models/vit.h"

namespace weft {

class PictureClassifier final : public Classifier {
 public:
  // `path`: a model, as for ReadModel. Its preprocessor_config.json tells how pixels are scaled. A training run must
  // have that file; otherwise, without it, pixels from 0 to 255 become -1 to 1. Returns InvalidArgument if the model
  // has several channels, because Images have one.
  static absl::StatusOr<std::unique_ptr<PictureClassifier>> Open(const std::string& path,
                                                                 const ClassifierOptions& options);

  // Returns the logits of each picture's classes. Returns InvalidArgument if the pictures' size is not the model's.
  absl::StatusOr<std::vector<std::vector<float>>> Run(const Images& images);

  absl::string_view example() const override { return "picture"; }
  absl::Status Classify(const std::vector<std::string>& files, Take take) override;
  absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& labels) override;

 private:
  PictureClassifier(const PublishedVit& vit, int64_t batch);

  const VitConfig config_;
  const int64_t batch_;
  PixelScale scale_;
  Parameters parameters_{{.draw = false}};
  EvalGraph graph_;
  Var input_, logits_;  // f32 [B, height, width, 1], [B, classes]
};

}  // namespace weft

#endif  // WEFT_INFERENCE_PICTURE_CLASSIFIER_H_
