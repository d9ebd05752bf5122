"""Writes pytorch_lstm.safetensors: what PyTorch's LSTM, in both directions, gives in f64 for texts of several lengths.

    python3 pytorch_lstm.py pytorch_lstm.safetensors

Inputs and parameters are numbers that the test can make again: element i of array k is 0.5 * sin(1 + 0.9 k + 0.61 i),
where x is array 0 and the parameters of a direction follow in PyTorch's order. Stored for each direction: the output,
with zeros at padding, the last hidden state and cell, and the gradients of the sum of their squares by x and by each
parameter. x is [3, 5, 4], the width is 6, and the lengths are 5, 2 and 4.
"""
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LENGTHS = (5, 2, 4)


def array(k, shape):
    n = int(np.prod(shape))
    return torch.tensor(0.5 * np.sin(1 + 0.9 * k + 0.61 * np.arange(n)), dtype=torch.float64).reshape(shape)


def run():
    layer = torch.nn.LSTM(4, 6, batch_first=True, bidirectional=True, dtype=torch.float64)
    with torch.no_grad():
        for k, p in enumerate(layer.parameters()):
            p.copy_(array(1 + k % 4, p.shape))
    x = array(0, (3, 5, 4)).requires_grad_()
    packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    y, (hidden, cell) = layer(packed)
    y, _ = pad_packed_sequence(y, batch_first=True)
    out = {}
    for direction, suffix in enumerate(("", "_reverse")):
        part = y[:, :, 6 * direction:6 * direction + 6]
        loss = (part**2).sum() + (hidden[direction]**2).sum() + (cell[direction]**2).sum()
        names = [name + "_l0" + suffix for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        of = [x] + [getattr(layer, name) for name in names]
        gradients = torch.autograd.grad(loss, of, retain_graph=True)
        prefix = "reverse." if direction else "forward."
        out[prefix + "output"] = part
        out[prefix + "hidden"] = hidden[direction]
        out[prefix + "cell"] = cell[direction]
        for name, gradient in zip(("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh"), gradients):
            out[prefix + "d_" + name] = gradient
    return {name: np.ascontiguousarray(value.detach().numpy()) for name, value in out.items()}


if __name__ == "__main__":
    save_file(run(), sys.argv[1])
