"""Runs what //bench:generate_bench measures in PyTorch, with the same sizes and random weights, and prints JSON.

    python3 bench/peers/pytorch_generate.py --mode=decode --precision=bf16 --length=128
"""
import argparse
import json
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 50257, 1024, 12, 12, 768  # gpt2
PROMPT = 16  # tokens of a prompt in mode decode


class Block(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.packed, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.keys, self.values = (torch.zeros(batch, HEADS, CONTEXT, WIDTH // HEADS) for _ in range(2))

    def forward(self, x, first):
        last = first + x.shape[1]
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                             for part in self.packed(self.norms[0](x)).chunk(3, dim=-1))
        self.keys[:, :, first:last], self.values[:, :, first:last] = key, value
        attended = functional.scaled_dot_product_attention(query, self.keys[:, :, :last], self.values[:, :, :last],
                                                           is_causal=first == 0 and last > 1)
        x = x + self.project(attended.transpose(1, 2).flatten(-2))
        return x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(batch) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, first):
        """Returns the most likely token after the last of `tokens` [B, T], which are at `first` and later."""
        x = self.tokens(tokens) + self.positions.weight[first:first + tokens.shape[1]]
        for block in self.blocks:
            x = block(x, first)
        return functional.linear(self.norm(x[:, -1:]), self.tokens.weight).argmax(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("decode", "prefill"), default="decode")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(0)
    dtype = torch.float32 if flags.precision == "f32" else torch.bfloat16
    model = Gpt(flags.batch).eval().to(dtype)
    for block in model.blocks:
        block.keys, block.values = block.keys.to(dtype), block.values.to(dtype)
    size = PROMPT if flags.mode == "decode" else flags.length
    prompt, speeds = torch.randint(0, VOCABULARY, (flags.batch, size)), []
    with torch.inference_mode():
        for repeat in range(flags.repeats + 1):
            start = time.perf_counter()
            token = model(prompt, 0)
            if flags.mode == "decode":
                start = time.perf_counter()
                for i in range(flags.length - 1):
                    token = model(token, size + i)
            tokens = flags.length - 1 if flags.mode == "decode" else flags.length
            if repeat > 0:
                speeds.append(flags.batch * tokens / (time.perf_counter() - start))
    print(json.dumps({"tokens_per_second": statistics.median(speeds),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
