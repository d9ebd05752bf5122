// ops/loss/losses.cc: losses that are spelt in other ops.
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/index/index_bounds.h"
#include "weft/ops/loss/cross_entropy.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Var Reduce(Var losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? Sum(losses) : Mean(losses);
}

bool SameTypes(const char* op, const char* names, Var a, Var b) {
  if (a.type() == b.type()) return true;
  a.tape->Fail(ShapeError(op, absl::StrCat(names, " must have one type"), {a.type(), b.type()}));
  return false;
}

// Class weights, or ones.
absl::StatusOr<Var> WeightsOf(const char* op, Var x, Var weights) {
  const TensorType wanted = {x.dtype(), {x.dim(-1)}};
  if (!weights) return Fill(x.tape, wanted, 1);
  if (weights.type() == wanted) return weights;
  return ShapeError(op, absl::StrCat("weights must be ", ToString(wanted)), {x.type(), weights.type()});
}

}  // namespace

Var BinaryCrossEntropy(Var logits, Var targets, Reduction reduction) {
  const FunctionScope calling("binary_cross_entropy", {logits, targets});
  if (!SameTypes("binary_cross_entropy", "logits and targets", logits, targets)) return logits;
  return Reduce(Softplus(logits) - logits * targets, reduction);
}

Var MeanSquaredError(Var x, Var y, Reduction reduction) {
  const FunctionScope calling("mean_squared_error", {x, y});
  if (!SameTypes("mean_squared_error", "the inputs", x, y)) return x;
  return Reduce(Square(x - y), reduction);
}

// p · log p is 0 at 0, where its slope is not asked for.
Var KlDivergence(Var log_q, Var p, Reduction reduction) {
  const FunctionScope calling("kl_divergence", {log_q, p});
  if (!calling.ok()) return log_q;
  if (!SameTypes("kl_divergence", "log_q and p", log_q, p)) return p;
  const Var zero = Equal(p, FillLike(p, 0));
  const Var log_p = Log(MaskFill(p, zero, 1));
  return Reduce(Sum(MaskFill(p * (log_p - log_q), zero, 0), -1), reduction);
}

Var NegativeLogLikelihood(Var log_p, Var targets, const CrossEntropyOptions& options) {
  const char* const op = "negative_log_likelihood";
  const FunctionScope calling(op, {log_p, targets});
  if (!calling.ok()) return log_p;
  if (options.label_smoothing != 0) {
    log_p.tape->Fail(ShapeError(op, "label_smoothing is of cross_entropy alone", {log_p.type()}));
  }
  if (targets.dtype() != kI32 || log_p.shape().rank() < 1 ||
      targets.shape() != Shape(log_p.shape().dims().first(log_p.shape().rank() - 1))) {
    log_p.tape->Fail(ShapeError(op, "wanted log_p [..., V] and targets i32 [...]", {log_p.type(), targets.type()}));
    return log_p;
  }
  const absl::StatusOr<Var> weights = WeightsOf(op, log_p, options.weights);
  log_p.tape->Fail(weights.status());
  if (!log_p.tape->status().ok()) return log_p;
  RequireBounds(op, targets, log_p.dim(-1), "classes", options.ignore_index);
  // An ignored target is no class at all; its losses and its weight are 0.
  const Var ignored = Equal(targets, Number(targets, options.ignore_index));
  const Var others = Not(OneHot(MaskFill(targets, ignored, -1), log_p.dim(-1), kBool));
  const Var weight = Sum(MaskFill(BroadcastTo(*weights, log_p.shape()), others, 0), -1);
  const Var losses = -Sum(MaskFill(log_p * *weights, others, 0), -1);
  return options.reduction == Reduction::kMean ? Sum(losses) / Sum(weight) : Reduce(losses, options.reduction);
}

// With q = (1 - s) · target + s / V, -Σ_v w_v · q_v · log p_v is a mixture of the target's loss and of all classes'.
Var SpeltCrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options) {
  const char* const op = "cross_entropy";
  const Shape shape = logits.shape();
  const bool soft = IsFloat(targets.dtype());
  const double s = options.label_smoothing;
  if (!(s >= 0 && s <= 1)) {
    logits.tape->Fail(ShapeError(op, absl::StrCat("label_smoothing = ", s, ", wanted in [0, 1]"), {logits.type()}));
  }
  if (soft && targets.type() != logits.type()) {
    logits.tape->Fail(ShapeError(op, "soft targets must have the logits' type", {logits.type(), targets.type()}));
  }
  const absl::StatusOr<Var> weights = WeightsOf(op, logits, options.weights);
  logits.tape->Fail(weights.status());
  if (!logits.tape->status().ok()) return logits;
  const Var log_p = LogSoftmax(logits), weighted = log_p * *weights;
  // Without smoothing not 0 · log p, which may be -inf.
  const Var all =
      s == 0 ? FillLike(Sum(log_p, -1), 0) : Scale(-Sum(weighted, -1), s / static_cast<double>(shape.dim(-1)));
  if (soft) {
    const Var unused = Equal(targets, FillLike(targets, 0));  // times log_p = -inf
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
  const Var one = FillLike(log_p, -1);  // whose loss is the target's weight
  return Sum(losses) / Sum(NegativeLogLikelihood(one, targets, each));
}

}  // namespace weft
