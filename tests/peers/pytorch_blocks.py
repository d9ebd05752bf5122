"""Writes pytorch_blocks.safetensors: what PyTorch 2.15's TransformerEncoderLayer and TransformerDecoderLayer give in f64.

    python3 pytorch_blocks.py pytorch_blocks.safetensors

Twenty small random configurations. Inputs and parameters are numbers that the test can make again: element i of array k
is scale * sin(1 + 0.9 k + 0.61 i) (a norm's gain: 1 + that). Stored for each: the configuration, the output, and the
gradients of sum(output * weights) by the inputs and every parameter, where weights is one more such array.
"""
import json
import random
import struct
import sys

import numpy as np
import torch

KEYS = ("decoder", "pre_norm", "gelu", "causal", "padded", "batch", "target", "source", "heads", "width", "feed_forward")


def array(k, shape, scale, shift=0.0):
    n = int(np.prod(shape))
    return torch.tensor(shift + scale * np.sin(1 + 0.9 * k + 0.61 * np.arange(n)), dtype=torch.float64).reshape(shape)


def draw(i):
    r = random.Random(i)
    heads = r.choice((1, 2, 3))
    target = r.randint(1, 5)
    return dict(decoder=i % 2, pre_norm=i // 2 % 2, gelu=i // 4 % 2, causal=i % 2 or r.randint(0, 1), padded=r.randint(0, 1),
                batch=r.randint(1, 3), target=target, source=r.randint(2, 6) if i % 2 else target, heads=heads,
                width=heads * r.choice((2, 4)), feed_forward=r.randint(3, 9))


def run(c):
    kind = torch.nn.TransformerDecoderLayer if c["decoder"] else torch.nn.TransformerEncoderLayer
    layer = kind(c["width"], c["heads"], c["feed_forward"], dropout=0.0, activation="gelu" if c["gelu"] else "relu",
                 batch_first=True, norm_first=bool(c["pre_norm"]), dtype=torch.float64)
    with torch.no_grad():
        for k, (name, p) in enumerate(layer.named_parameters()):
            gain = "norm" in name and name.endswith("weight")
            p.copy_(array(k + 3, p.shape, 0.4, 1.0 if gain else 0.0))
    x = array(0, (c["batch"], c["target"], c["width"]), 1.0).requires_grad_()
    memory = array(1, (c["batch"], c["source"], c["width"]), 1.0).requires_grad_()
    length = max(c["source"] - 1, 1)
    padding = torch.zeros(c["batch"], c["source"], dtype=torch.bool)
    if c["padded"]:
        padding[0, length:] = True
    mask = torch.nn.Transformer.generate_square_subsequent_mask(c["target"], dtype=torch.float64) if c["causal"] else None
    if c["decoder"]:
        y = layer(x, memory, tgt_mask=mask, memory_key_padding_mask=padding)
    else:
        float_padding = torch.zeros(padding.shape, dtype=torch.float64).masked_fill(padding, float("-inf"))
        y = layer(x, src_mask=mask, src_key_padding_mask=float_padding)
    (y * array(2, y.shape, 1.0)).sum().backward()
    out = {"config": torch.tensor([int(c[k]) for k in KEYS], dtype=torch.int32), "y": y.detach(), "x": x.grad}
    if c["decoder"]:
        out["memory"] = memory.grad
    out.update({name: p.grad for name, p in layer.named_parameters()})
    return out


def save(path, tensors):
    header, parts, at = {}, [], 0
    for name, tensor in tensors:
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "I32" if tensor.dtype == torch.int32 else "F64", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


if __name__ == "__main__":
    save(sys.argv[1], ((f"{i}.{name}", tensor) for i in range(20) for name, tensor in run(draw(i)).items()))
