#!/usr/bin/env python3
"""Draws random cases of ops, and whole models, and writes PyTorch 2.15's results for them, in f64.

    pip install torch==2.15.0 numpy
    tests/pytorch/draw.py tests/pytorch/cases.bin.gz

tests/cases/pack.py describes the file. A case's outputs are the op's output and, unless it has the attribute
no_gradient, the gradients of sum(output * weights) by every float input, where weight i is sin(1 + 0.61 i). Cases of the
op "model" are whole models, which model_cases.py describes.
"""
import json
import math
import pathlib
import sys
import zlib

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from pack import Data, write  # noqa: E402
from drawing import CASES, Draw, case  # noqa: E402
import model_cases  # noqa: E402
import training_cases  # noqa: E402, F401

EACH = 8  # cases of an op


def unary(name, f, low=-2.0, high=2.0):
    CASES[name] = lambda d: ([d.floats(d.shape(), low, high)], {}, f)


for name, f, low, high in [("neg", torch.neg, -2, 2), ("abs", torch.abs, -2, 2), ("rsqrt", torch.rsqrt, 0.3, 3),
                           ("erf", torch.erf, -3, 3), ("softplus", F.softplus, -9, 9), ("exp", torch.exp, -2, 2),
                           ("log", torch.log, 0.1, 4), ("sqrt", torch.sqrt, 0.1, 4), ("tanh", torch.tanh, -3, 3),
                           ("sigmoid", torch.sigmoid, -6, 6), ("relu", F.relu, -2, 2), ("silu", F.silu, -5, 5),
                           ("gelu", F.gelu, -4, 4), ("square", torch.square, -2, 2),
                           ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), -4, 4),
                           ("softmax", lambda x: F.softmax(x, -1), -4, 4),
                           ("log_softmax", lambda x: F.log_softmax(x, -1), -4, 4)]:
    unary(name, f, low, high)


def binary(name, f, low=-2.0, high=2.0):
    def draw(d):
        a, b = d.broadcast()
        return [d.floats(a, low, high), d.floats(b, low, high)], {}, f
    CASES[name] = draw


for name, f, low, high in [("add", torch.add, -2, 2), ("sub", torch.sub, -2, 2), ("mul", torch.mul, -2, 2),
                           ("div", torch.div, 0.3, 2), ("minimum", torch.minimum, -2, 2),
                           ("maximum", torch.maximum, -2, 2), ("pow", torch.pow, 0.3, 2)]:
    binary(name, f, low, high)


@case
def clamp(d):
    low = d.r.uniform(-1.5, 0)
    high = d.r.uniform(0, 1.5)
    return [d.floats(d.shape())], {"low": low, "high": high}, lambda x: torch.clamp(x, low, high)


@case
def power(d):
    exponent = d.r.choice([2.0, 3.0, 0.5, -1.0, 1.7, -0.3])
    return [d.floats(d.shape(), 0.3, 3)], {"exponent": exponent}, lambda x: x ** exponent


@case
def where(d):
    a, b = d.broadcast()
    mask = d.bools(list(torch.broadcast_shapes(tuple(a), tuple(b))))
    return [mask, d.floats(a), d.floats(b)], {}, torch.where


def reduction(name, f, **options):
    def draw(d):
        shape = d.shape()
        axes = d.axes(len(shape))
        keep = d.r.random() < 0.5
        extra = {k: d.r.choice(v) for k, v in options.items()}
        return [d.floats(shape)], {"axes": axes, "keep": int(keep), **extra}, lambda x: f(x, axes, keep, **extra)
    CASES[name] = draw


def prod(x, axes, keep):
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


reduction("sum", lambda x, axes, keep: x.sum(axes, keepdim=keep))
reduction("mean", lambda x, axes, keep: x.mean(axes, keepdim=keep))
reduction("variance", lambda x, axes, keep, correction: torch.var(x, axes, correction=correction, keepdim=keep),
          correction=[0])
reduction("max", lambda x, axes, keep: torch.amax(x, axes, keepdim=keep))
reduction("min", lambda x, axes, keep: torch.amin(x, axes, keepdim=keep))
reduction("prod", prod)
reduction("log_sum_exp", lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep))
reduction("norm", lambda x, axes, keep, order: torch.linalg.vector_norm(x, order, axes, keepdim=keep),
          order=[1.0, 2.0, 3.0, 2.5])
reduction("norm_inf", lambda x, axes, keep: torch.linalg.vector_norm(x, math.inf, axes, keepdim=keep))


@case
def unbiased_variance(d):
    return [d.floats([d.r.randint(2, 6), d.r.randint(2, 6)])], {}, lambda x: torch.var(x, [0, 1])


@case
def cumulative_sum(d):
    return [d.floats(d.shape())], {}, lambda x: torch.cumsum(x, -1)


@case
def squeeze(d):
    shape = d.shape(1, 3)
    axis = d.r.randint(0, len(shape))
    return [d.floats(shape[:axis] + [1] + shape[axis:])], {"axis": axis}, lambda x: x.squeeze(axis)


@case
def unsqueeze(d):
    shape = d.shape()
    axis = d.r.randint(-len(shape) - 1, len(shape))
    return [d.floats(shape)], {"axis": axis}, lambda x: x.unsqueeze(axis)


@case
def stack(d):
    shape = d.shape(1, 3)
    axis = d.r.randint(0, len(shape))
    return [d.floats(shape) for _ in range(d.r.randint(1, 4))], {"axis": axis}, lambda *x: torch.stack(x, axis)


@case
def concat(d):
    shape = d.shape(1, 3)
    axis = d.r.randrange(len(shape))
    parts = [d.floats(shape[:axis] + [d.r.randint(1, 4)] + shape[axis + 1:]) for _ in range(d.r.randint(1, 4))]
    return parts, {"axis": axis}, lambda *x: torch.cat(x, axis)


@case
def pad(d):
    before, after, value = d.r.randint(0, 3), d.r.randint(0, 3), d.r.uniform(-1, 1)
    return [d.floats(d.shape())], {"before": before, "after": after, "value": value}, lambda x: F.pad(x, (before, after), value=value)


def along_axis(name, f):
    def draw(d):
        shape = d.shape()
        axis = d.r.randrange(len(shape))
        return [d.floats(shape)], {"axis": axis}, lambda x: f(x, axis)
    CASES[name] = draw


along_axis("flip", lambda x, axis: x.flip(axis))


def triangle(name, f):
    def draw(d):
        diagonal = d.r.randint(-3, 3)
        return [d.floats(d.shape(2, 4))], {"diagonal": diagonal}, lambda x: f(x, diagonal)
    CASES[name] = draw


triangle("triu", torch.triu)
triangle("tril", torch.tril)


@case
def permute(d):
    shape = d.shape(1, 5, 3)
    order = d.r.sample(range(len(shape)), len(shape))
    return [d.floats(shape)], {"axes": order}, lambda x: x.permute(order)


@case
def broadcast_to(d):
    shape = d.shape(1, 3)
    wide = [d.r.randint(1, 3) for _ in range(d.r.randint(0, 2))] + shape
    x = [1 if d.r.random() < 0.4 else n for n in shape]
    return [d.floats(x)], {"shape": wide}, lambda v: v.expand(wide)


@case
def gather(d):
    shape = d.shape(1, 3)
    axis = d.r.randrange(len(shape))
    ids = d.ints([d.r.randint(1, 6)], shape[axis])
    return [d.floats(shape), ids], {"axis": axis}, lambda x, i: x.index_select(axis, i)


def elements_along(d):
    """Returns a shape, one of its axes, and the shape of ids that index this axis."""
    shape = d.shape(1, 3)
    axis = d.r.randrange(len(shape))
    at = [d.r.randint(1, n) for n in shape]
    at[axis] = d.r.randint(1, 6)
    return shape, axis, at


@case
def take_along(d):
    shape, axis, at = elements_along(d)
    return [d.floats(shape), d.ints(at, shape[axis])], {"axis": axis}, lambda x, i: x.gather(axis, i)


@case
def scatter_add(d):
    shape, axis, at = elements_along(d)
    return ([d.floats(shape), d.ints(at, shape[axis]), d.floats(at)], {"axis": axis},
            lambda x, i, u: x.scatter_add(axis, i, u))


@case
def embedding(d):
    rows = d.r.randint(1, 6)
    return [d.floats([rows, d.r.randint(1, 4)]), d.ints(d.shape(0, 3), rows)], {}, lambda t, i: F.embedding(i, t)


@case
def matmul(d):
    m, k, n = (d.r.randint(1, 6) for _ in range(3))
    batch = d.shape(0, 2, 3)
    other = [1 if d.r.random() < 0.3 else b for b in batch][d.r.randint(0, len(batch)):]
    return [d.floats(batch + [m, k]), d.floats(other + [k, n])], {}, torch.matmul


@case
def layer_norm(d):
    shape = d.shape(1, 3)[:-1] + [d.r.randint(2, 7)]
    n = shape[-1:]
    return ([d.floats(shape), d.floats(n), d.floats(n)], {"epsilon": 1e-3},
            lambda x, g, b: F.layer_norm(x, n, g, b, 1e-3))


@case
def rms_norm(d):
    shape = d.shape(1, 3)[:-1] + [d.r.randint(2, 7)]
    return [d.floats(shape), d.floats(shape[-1:])], {"epsilon": 1e-3}, lambda x, g: F.rms_norm(x, shape[-1:], g, 1e-3)


@case
def batch_norm(d):
    n = d.r.randint(1, 5)
    x, gain, bias = d.floats([d.r.randint(2, 7), n]), d.floats([n]), d.floats([n])
    return [x, gain, bias], {"epsilon": 1e-3}, lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.1, 1e-3)


@case
def attention(d):
    groups = d.r.choice([1, 2])
    heads = groups * d.r.choice([1, 2])
    batch, targets, sources, width = d.r.randint(1, 3), d.r.randint(1, 5), d.r.randint(1, 6), d.r.randint(1, 4)
    causal = d.r.random() < 0.4 and targets == sources
    cap = d.r.choice([0.0, 0.0, 1.5, 4.0])
    inputs = [d.floats([batch, heads, targets, width]), d.floats([batch, groups, sources, width]),
              d.floats([batch, groups, sources, width])]
    if d.r.random() < 0.5:
        inputs.append(d.floats([d.r.choice([1, batch]), 1, targets, sources]))

    def f(q, k, v, bias=None):
        k, v = (x.repeat_interleave(heads // groups, 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width)
        if cap > 0:
            scores = cap * torch.tanh(scores / cap)
        if bias is not None:
            scores = scores + bias
        if causal:
            scores = scores.masked_fill(torch.ones(targets, sources, dtype=torch.bool).triu(1), -math.inf)
        return (F.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)
    return inputs, {"heads": heads, "groups": groups, "causal": int(causal), "soft_cap": cap}, f


def run(name, inputs, attributes, f, data):
    inputs = [x.detach().requires_grad_() if x.dtype == torch.float64 else x for x in inputs]
    y = f(*inputs)
    outputs = [y]
    if "no_gradient" not in attributes:
        weights = torch.sin(1 + 0.61 * torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape)
        (y * weights).sum().backward()
        outputs += [torch.zeros_like(x) if x.grad is None else x.grad for x in inputs if x.requires_grad]
    return {"name": name, "op": name.rsplit(".", 1)[0], "opset": 0, "attributes": attributes,
            "inputs": [data.add(x.detach().numpy()) for x in inputs],
            "outputs": [data.add(x.detach().numpy()) for x in outputs]}


def main(out):
    data, cases = Data(), []
    for name, draw in CASES.items():
        drawn = [run(f"{name}.{i}", *draw(Draw(zlib.crc32(f"{name}.{i}".encode()))), data) for i in range(EACH)]
        assert len({json.dumps([c["attributes"], c["inputs"]]) for c in drawn}) == EACH, name
        cases += drawn
    models = model_cases.cases(data)
    write(out, f"PyTorch {torch.__version__}", cases + models, data)
    print(f"{len(cases)} cases of {len(CASES)} ops, {len(models)} models")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
