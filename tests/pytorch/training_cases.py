"""Draws cases of losses and of optimizer steps."""
import torch
import torch.nn.functional as F

from drawing import CASES, case


def class_loss(name, f):
    def draw(d):
        rows, classes = d.r.randint(1, 6), d.r.randint(2, 6)
        ignore = d.r.choice([-100, 0])
        targets = d.ints([rows], classes)
        targets[d.r.randrange(rows)] = ignore if rows > 1 and d.r.random() < 0.5 else 1
        if bool((targets == ignore).all()):
            targets[0] = 1
        smoothing = d.r.choice([0.0, 0.1])
        reduction = d.r.choice(["mean", "sum", "none"])
        inputs = [d.floats([rows, classes]), targets]
        if d.r.random() < 0.6:
            inputs.append(d.floats([classes], 0.2, 2))
        options = {"ignore_index": ignore, "reduction": reduction, "label_smoothing": smoothing}
        return inputs, {**options, "no_weight_gradient": 1}, lambda x, t, w=None: f(x, t, None if w is None else w.detach(), **options)
    CASES[name] = draw


class_loss("cross_entropy", lambda x, t, w, **o: F.cross_entropy(x, t, w, **o))


def nll(x, t, w, label_smoothing, **o):
    return F.nll_loss(F.log_softmax(x, -1), t, w, **o)


class_loss("nll", nll)


@case
def soft_cross_entropy(d):
    shape = [d.r.randint(1, 5), d.r.randint(2, 6)]
    targets = F.softmax(d.floats(shape), -1)
    smoothing, reduction = d.r.choice([0.0, 0.2]), d.r.choice(["mean", "sum", "none"])
    return ([d.floats(shape), targets], {"label_smoothing": smoothing, "reduction": reduction},
            lambda x, t: F.cross_entropy(x, t, label_smoothing=smoothing, reduction=reduction))


@case
def binary_cross_entropy(d):
    shape, reduction = d.shape(), d.r.choice(["mean", "sum", "none"])
    return ([d.floats(shape, -5, 5), d.floats(shape, 0, 1)], {"reduction": reduction},
            lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction))


@case
def mean_squared_error(d):
    shape, reduction = d.shape(), d.r.choice(["mean", "sum", "none"])
    return [d.floats(shape), d.floats(shape)], {"reduction": reduction}, lambda x, y: F.mse_loss(x, y, reduction=reduction)


@case
def kl_divergence(d):
    shape, reduction = [d.r.randint(1, 5), d.r.randint(2, 6)], d.r.choice(["batchmean", "sum"])
    q, p = F.log_softmax(d.floats(shape), -1), F.softmax(d.floats(shape), -1)
    return ([q, p], {"reduction": "mean" if reduction == "batchmean" else "sum"},
            lambda a, b: F.kl_div(a, b, reduction=reduction))


STEPS = 3


def optimizer(name, make, **options):
    def draw(d):
        shape = d.shape(1, 2)
        chosen = {k: d.r.choice(v) for k, v in options.items()}
        gradients = [d.floats(shape) for _ in range(STEPS)]

        def f(w, *gradients):
            w = w.detach().clone().requires_grad_()
            step = make([w], lr=0.1, **{k: bool(v) if k == "nesterov" else v for k, v in chosen.items()})
            for g in gradients:
                w.grad = g.detach().clone()
                step.step()
            return w.detach()
        return [d.floats(shape)] + gradients, {**chosen, "no_gradient": 1}, f
    CASES[name] = draw


optimizer("sgd", torch.optim.SGD, momentum=[0.9, 0.5], weight_decay=[0.0, 0.1], nesterov=[0, 1])
optimizer("adam", torch.optim.Adam, weight_decay=[0.0, 0.1])
optimizer("adamw", torch.optim.AdamW, weight_decay=[0.0, 0.1])
optimizer("adagrad", torch.optim.Adagrad, weight_decay=[0.0, 0.1], lr_decay=[0.0, 0.2])
