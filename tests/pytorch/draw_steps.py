#!/usr/bin/env python3
"""Runs PyTorch 2.15's optimizers and schedules for 50 steps, in f64, and writes their weights and learning rates.

    pip install torch==2.15.0 numpy
    tests/pytorch/draw_steps.py tests/pytorch/steps.bin.gz

tests/cases/pack.py describes the file. A case of the op "optimizer" has two weights, a matrix and a vector: its inputs
are the weights before the first step and their gradients in every step. Its outputs are the weights after every tenth
step, and their exponential moving averages after the last. A case of the op "schedule" has the rates of all steps. A case
of the op "plateau" has a metric and the rate after each observation. Rates of optimizers are numbers of f32, because
Weft's updates read rates of this type.
"""
import inspect
import math
import pathlib
import sys

import numpy as np
import torch
from torch.optim import _muon, lr_scheduler as lr, swa_utils

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from pack import Data, write  # noqa: E402

STEPS, EACH = 50, 10
RATE = float(np.float32(0.02))
AVERAGE = 0.9


class Lion(torch.optim.Optimizer):
    """Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2. PyTorch has no Lion."""

    def __init__(self, groups, lr, betas, weight_decay=0.0):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = b1 * m + (1 - b1) * p.grad
                p -= group["lr"] * (torch.sign(c) + group["weight_decay"] * p)
                self.state[p]["m"] = b2 * m + (1 - b2) * p.grad


# PyTorch computes Muon's products in bf16. All cases but one have them in f64.
IN_BF16 = _muon._zeropower_via_newtonschulz
SOURCE = inspect.getsource(IN_BF16)
assert "torch.bfloat16" in SOURCE
exec(SOURCE.replace("torch.bfloat16", "torch.float64"), _muon.__dict__)
IN_F64 = _muon._zeropower_via_newtonschulz


class MuonAndAdamW:
    """Muon for the matrix and AdamW for the vector."""

    def __init__(self, groups, lr, weight_decay, nesterov=True, orthogonalize=IN_F64):
        self.orthogonalize = orthogonalize
        self.both = [torch.optim.Muon([groups[0]], lr=lr, weight_decay=weight_decay, nesterov=nesterov),
                     torch.optim.AdamW([groups[1]], lr=lr * 0.5, betas=(0.9, 0.95), weight_decay=0)]

    def step(self):
        _muon._zeropower_via_newtonschulz = self.orthogonalize
        for optimizer in self.both:
            optimizer.step()


# Name of the case, the class, its arguments, Weft's settings, and whether the vector decays, too.
OPTIMIZERS = [
    ("adamw", torch.optim.AdamW, {"betas": (0.9, 0.99), "weight_decay": 0.1}, {"beta2": 0.99, "weight_decay": 0.1},
     False),
    ("adam", torch.optim.Adam, {"weight_decay": 0.1}, {"weight_decay": 0.1}, True),
    ("sgd", torch.optim.SGD, {}, {}, True),
    ("sgd", torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "weight_decay": 0.1}, True),
    ("sgd", torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "nesterov": 1}, True),
    ("adagrad", torch.optim.Adagrad, {"lr_decay": 0.01, "weight_decay": 0.1}, {"rate_decay": 0.01, "weight_decay": 0.1},
     True),
    ("lion", Lion, {"betas": (0.9, 0.99), "weight_decay": 0.1}, {"weight_decay": 0.1}, False),
    ("muon", MuonAndAdamW, {"weight_decay": 0.1}, {"weight_decay": 0.1, "adamw_rate": 0.5}, False),
    ("muon", MuonAndAdamW, {"weight_decay": 0.0, "nesterov": False},
     {"weight_decay": 0.0, "adamw_rate": 0.5, "nesterov": 0}, False),
    ("adafactor", torch.optim.Adafactor, {}, {}, False),
    ("adafactor", torch.optim.Adafactor, {"beta2_decay": -0.6, "weight_decay": 0.1},
     {"beta2_decay": 0.6, "weight_decay": 0.1}, False),
    ("muon", MuonAndAdamW, {"weight_decay": 0.1, "orthogonalize": IN_BF16}, {"weight_decay": 0.1, "adamw_rate": 0.5},
     False),
]


def optimizer_case(i, name, make, arguments, settings, vector_decays, data):
    g = np.random.default_rng(i)
    shapes = [[(4, 3), (3,)], [(2, 5), (2,)]][i % 2]
    weights = [torch.tensor(g.normal(size=s)).requires_grad_() for s in shapes]
    before = [data.add(w.detach().numpy().copy()) for w in weights]
    gradients = [g.normal(size=(STEPS,) + s) * g.uniform(0.1, 2) for s in shapes]
    vector = {"params": weights[1]} if vector_decays or "weight_decay" not in arguments else {
        "params": weights[1], "weight_decay": 0.0}
    optimizer = make([{"params": weights[0]}, vector], lr=RATE, **arguments)
    average = swa_utils.AveragedModel(torch.nn.ParameterList(weights),
                                      multi_avg_fn=swa_utils.get_ema_multi_avg_fn(AVERAGE))
    after = [[], []]
    for step in range(STEPS):
        for w, all_steps in zip(weights, gradients):
            w.grad = torch.tensor(all_steps[step])
        optimizer.step()
        average.update_parameters(torch.nn.ParameterList(weights))
        for w, values in zip(weights, after) if step % EACH == EACH - 1 else []:
            values.append(w.detach().numpy().copy())
    return {"name": f"{name}.{i}", "op": "optimizer", "opset": 0,
            "attributes": {"optimizer": name, "rate": RATE, "settings": settings, "average_decay": AVERAGE,
                           "bf16": arguments.get("orthogonalize") is IN_BF16},
            "inputs": before + [data.add(x) for x in gradients],
            "outputs": [data.add(np.stack(x)) for x in after] + [data.add(x.detach().numpy()) for x in average.module]}


PEAK, FLOOR, WARMUP = 1e-3, 1e-4, 8


def warmed_up(optimizer, after, warmup=WARMUP):
    warm_up = lr.LinearLR(optimizer, 1 / (warmup + 1), 1.0, warmup)
    return lr.SequentialLR(optimizer, [warm_up] + [make(optimizer) for make, _ in after],
                           [warmup + before for _, before in after])


def line(steps):
    return lambda o: lr.LinearLR(o, 1.0, FLOOR / PEAK, steps)


def cosine(steps):
    return lambda o: lr.CosineAnnealingLR(o, steps, FLOOR)


def constant(o):
    return lr.ConstantLR(o, 1.0)


def noam(o):
    """Vaswani et al., "Attention Is All You Need", 2017, formula 3, whose steps count from 1."""
    top = WARMUP + 1
    return lr.LambdaLR(o, lambda s: min((s + 1) ** -0.5, (s + 1) * top ** -1.5) * math.sqrt(top))


REST = STEPS - WARMUP
SCHEDULES = {
    "constant": lambda o: warmed_up(o, [(constant, 0)]),
    "linear": lambda o: warmed_up(o, [(line(REST), 0)]),
    "cosine": lambda o: warmed_up(o, [(cosine(REST), 0)]),
    "inverse-sqrt": noam,
    "one-cycle": lambda o: lr.OneCycleLR(o, PEAK, STEPS, pct_start=(WARMUP + 1) / STEPS, div_factor=25,
                                         final_div_factor=PEAK / 25 / FLOOR),
    "wsd": lambda o: warmed_up(o, [(constant, 0), (line(10), REST - 10)]),
    "linear:20,constant:10,cosine": lambda o: warmed_up(
        o, [(line(20 - WARMUP), 0), (constant, 20 - WARMUP), (cosine(20), 30 - WARMUP)]),
    "warmup:8,cosine": lambda o: warmed_up(o, [(cosine(REST), 0)]),
}


def schedule_case(name, make, data):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    schedule, rates = make(optimizer), []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return {"name": name, "op": "schedule", "opset": 0,
            "attributes": {"peak": PEAK, "floor": FLOOR, "warmup": WARMUP, "steps": STEPS, "decay": 0.2},
            "inputs": [], "outputs": [data.add(np.array(rates))]}


def plateau_case(i, factor, patience, threshold, smallest, data):
    g = np.random.default_rng(100 + i)
    metrics = np.exp(-0.05 * np.minimum(np.arange(STEPS), 20 + 5 * i)) + 0.01 * g.normal(size=STEPS)
    metrics[5 + i] = math.nan
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    plateau = lr.ReduceLROnPlateau(optimizer, factor=factor, patience=patience, threshold=threshold, min_lr=smallest)
    scales = []
    for metric in metrics:
        plateau.step(metric)
        scales.append(optimizer.param_groups[0]["lr"])
    attributes = {"factor": factor, "patience": patience, "threshold": threshold, "min_scale": smallest}
    return {"name": f"plateau.{i}", "op": "plateau", "opset": 0, "attributes": attributes,
            "inputs": [data.add(metrics)], "outputs": [data.add(np.array(scales))]}


def main(out):
    data = Data()
    cases = [optimizer_case(i, *row, data) for i, row in enumerate(OPTIMIZERS)]
    cases += [schedule_case(name, make, data) for name, make in SCHEDULES.items()]
    cases += [plateau_case(i, *row, data) for i, row in enumerate(
        [(0.1, 10, 1e-4, 0.0), (0.5, 3, 1e-4, 0.0), (0.5, 2, 0.05, 0.1), (0.3, 0, 0.0, 0.0)])]
    write(out, f"PyTorch {torch.__version__}", cases, data)
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
