// Defines the losses that are composed of other ops.
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/attributes.h"
#include "weft/ops/loss/cross_entropy.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Var Reduce(Var losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? Sum(losses) : Mean(losses);
}

absl::Status CheckOneType(const char* op, const char* names, Var a, Var b) {
  if (a.type() == b.type()) return absl::OkStatus();
  return ShapeError(op, absl::StrCat(names, " must have one type"), {a.type(), b.type()});
}

// Returns `weights`, after checking their type, or ones if `weights` is empty.
absl::StatusOr<Var> WeightsOf(const char* op, Var x, Var weights) {
  const TensorType wanted = {x.dtype(), {x.dim(-1)}};
  if (!weights) return Fill(x.tape, wanted, 1);
  if (weights.type() == wanted) return weights;
  return ShapeError(op, absl::StrCat("weights must be ", ToString(wanted)), {x.type(), weights.type()});
}

}  // namespace

Var BinaryCrossEntropy(Var logits, Var targets, Reduction reduction) {
  return Composite("binary_cross_entropy", {logits, targets}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckOneType("binary_cross_entropy", "logits and targets", logits, targets));
    return Reduce(Softplus(logits) - logits * targets, reduction);
  });
}

Var MeanSquaredError(Var x, Var y, Reduction reduction) {
  return Composite("mean_squared_error", {x, y}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckOneType("mean_squared_error", "the inputs", x, y));
    return Reduce(Square(x - y), reduction);
  });
}

// Where p is 0, the term p · (log p - log_q) is 0. Masks before the logarithm and after the product keep the
// logarithm's infinite slope out of gradients.
Var KlDivergence(Var log_q, Var p, Reduction reduction) {
  return Composite("kl_divergence", {log_q, p}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckOneType("kl_divergence", "log_q and p", log_q, p));
    const Var zero = Equal(p, FillLike(p, 0));
    const Var log_p = Log(MaskFill(p, zero, 1));
    return Reduce(Sum(MaskFill(p * (log_p - log_q), zero, 0), -1), reduction);
  });
}

Var NegativeLogLikelihood(Var log_p, Var targets, const CrossEntropyOptions& options) {
  const char* const op = "negative_log_likelihood";
  return Composite(op, {log_p, targets}, [&]() -> absl::StatusOr<Var> {
    const Shape shape = log_p.shape();
    if (options.label_smoothing != 0) {
      return ShapeError(op, "label_smoothing must be 0; only cross_entropy has it", {log_p.type()});
    }
    if (targets.dtype() != kI32 || shape.rank() < 1 || targets.shape() != Shape(shape.dims().first(shape.rank() - 1))) {
      return ShapeError(op, "wanted log_p [..., V] and targets i32 [...]", {log_p.type(), targets.type()});
    }
    WEFT_ASSIGN_OR_RETURN(const Var weights, WeightsOf(op, log_p, options.weights));
    RequireBounds(op, targets, log_p.dim(-1), "classes", options.ignore_index);
    // An ignored target becomes -1. This is no class, so the target's loss and weight are 0.
    const Var ignored = Equal(targets, Number(targets, options.ignore_index));
    const Var others = Not(OneHot(MaskFill(targets, ignored, -1), log_p.dim(-1), kBool));
    const Var weight = Sum(MaskFill(BroadcastTo(weights, shape), others, 0), -1);
    const Var losses = -Sum(MaskFill(log_p * weights, others, 0), -1);
    return options.reduction == Reduction::kMean ? Sum(losses) / Sum(weight) : Reduce(losses, options.reduction);
  });
}

// Let s be label_smoothing, and q = (1 - s) · target + s / V, where `target` is a distribution over V classes. The loss
// -Σ_v w_v · q_v · log p_v is then (1 - s) times the loss of the target, plus s times the mean loss over all classes.
absl::StatusOr<Var> SpeltCrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options) {
  const char* const op = "cross_entropy";
  const Shape shape = logits.shape();
  const bool soft = IsFloat(targets.dtype());
  const double s = options.label_smoothing;
  if (!(s >= 0 && s <= 1)) {
    return ShapeError(op, absl::StrCat("label_smoothing = ", s, ", wanted in [0, 1]"), {logits.type()});
  }
  if (soft && targets.type() != logits.type()) {
    return ShapeError(op, "soft targets must have the logits' type", {logits.type(), targets.type()});
  }
  WEFT_ASSIGN_OR_RETURN(const Var weights, WeightsOf(op, logits, options.weights));
  const Var log_p = LogSoftmax(logits), weighted = log_p * weights;
  // If s is 0, `all` is the constant 0, not 0 times the mean loss: 0 times a log p of -inf would be NaN.
  const Var all =
      s == 0 ? FillLike(Sum(log_p, -1), 0) : Scale(-Sum(weighted, -1), s / static_cast<double>(shape.dim(-1)));
  if (soft) {
    const Var unused = Equal(targets, FillLike(targets, 0));  // their log p may be -inf
    return Reduce(Scale(-Sum(MaskFill(targets * weighted, unused, 0), -1), 1 - s) + all, options.reduction);
  }
  CrossEntropyOptions each = options;
  each.reduction = Reduction::kNone;
  each.label_smoothing = 0;
  const Var no_class =
      Or(Less(targets, Number(targets, 0)), GreaterEqual(targets, Number(targets, static_cast<double>(shape.dim(-1)))));
  const Var ignored = Or(no_class, Equal(targets, Number(targets, static_cast<double>(options.ignore_index))));
  const Var losses = Scale(NegativeLogLikelihood(log_p, targets, each), 1 - s) + MaskFill(all, ignored, 0);
  if (options.reduction != Reduction::kMean) return Reduce(losses, options.reduction);
  const Var one = FillLike(log_p, -1);  // with log p = -1, the loss is the target's weight
  return Sum(losses) / Sum(NegativeLogLikelihood(one, targets, each));
}

}  // namespace weft
