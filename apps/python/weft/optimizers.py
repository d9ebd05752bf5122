"""Optimizers by name: adamw(weight_decay=0.1, clip=1.0).minimize(loss, rate).

The settings are the options of `weft train` for the optimizer, such as momentum, beta1, beta2, epsilon and
weight_decay. clip is the maximum norm of all gradients together, clip_value the maximum absolute value of an element,
and groups the settings of some weights, as in "*.bias:decay=0".
"""
from typing import Any

from weft._weft._optimizers import Minimized, Optimizer
from weft.options import texts


def adamw(**settings: Any) -> Optimizer:
    """AdamW (Loshchilov and Hutter, 2019). Weight decay applies to tensors of rank 2 and more."""
    return Optimizer("adamw", texts(settings))


def adam(**settings: Any) -> Optimizer:
    """Adam (Kingma and Ba, 2015). Weight decay applies to all weights."""
    return Optimizer("adam", texts(settings))


def sgd(**settings: Any) -> Optimizer:
    """SGD with momentum, and Nesterov's variant."""
    return Optimizer("sgd", texts(settings))


def adagrad(**settings: Any) -> Optimizer:
    """Adagrad (Duchi et al., 2011)."""
    return Optimizer("adagrad", texts(settings))


def lion(**settings: Any) -> Optimizer:
    """Lion (Chen et al., 2023)."""
    return Optimizer("lion", texts(settings))


def muon(**settings: Any) -> Optimizer:
    """Muon (Jordan et al., 2024) for matrices, and AdamW for embeddings, output layers and vectors. Products of Muon
    are in f32, also if weft.compile has precision="bf16"."""
    return Optimizer("muon", texts(settings))


def adafactor(**settings: Any) -> Optimizer:
    """Adafactor (Shazeer and Stern, 2018) without momentum."""
    return Optimizer("adafactor", texts(settings))
