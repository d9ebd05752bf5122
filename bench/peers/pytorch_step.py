"""Runs the step of //bench:train_bench in PyTorch, with the same models, sizes, flags and output.

    python3 bench/peers/pytorch_step.py --model=gpt2 --precision=bf16 --mode=compile --steps=10
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional

# vocabulary, context, layers, heads, width, batch, length
MODELS = {
    "gpt2": (50257, 1024, 12, 12, 768, 4, 64),
    "bert": (30522, 512, 12, 12, 768, 8, 128),
    "babygpt": (65, 256, 6, 6, 384, 8, 256),
    "charcpu": (65, 64, 4, 4, 128, 12, 64),
    "minilm-forward": (30522, 512, 6, 12, 384, 32, 128),
}


def attend(query, key, value, heads, causal):
    """[B, T, C] each -> [B, T, C]."""
    split = [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (query, key, value)]  # [B, H, T, D]
    return functional.scaled_dot_product_attention(*split, is_causal=causal).transpose(1, 2).flatten(-2)


class PreNormBlock(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.packed, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        query, key, value = self.packed(self.attention_norm(x)).chunk(3, dim=-1)
        x = x + self.project(attend(query, key, value, self.heads, self.causal))
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    """The loss of a GPT, or of the same model without the mask; the head is the token table."""

    def __init__(self, vocabulary, context, layers, heads, width, causal):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(PreNormBlock(width, heads, causal) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        logits = functional.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class PostNormBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.project = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention_norm, self.feed_forward_norm = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))

    def forward(self, x):
        attended = attend(self.query(x), self.key(x), self.value(x), self.heads, causal=False)
        x = self.attention_norm(x + self.project(attended))
        return self.feed_forward_norm(x + self.down(functional.gelu(self.up(x))))


class Encoder(nn.Module):
    """What a BERT's last layer gives."""

    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.segments, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.Sequential(*(PostNormBlock(width, heads) for _ in range(layers)))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]] + self.segments.weight[0]
        return self.blocks(self.norm(x))


def initialize(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


def compiled(network, mode):
    """Returns the network for the mode. max-autotune measures kernels; in inference it also freezes the weights."""
    if mode == "eager":
        return network
    if mode == "compile":
        return torch.compile(network)
    torch._inductor.config.freezing = True
    return torch.compile(network, mode="max-autotune")


def make_step(model, batch, length, mode, precision):
    """Returns a function that does a step, and what it is to count: weights times operations on each."""
    vocabulary, context, layers, heads, width, _, _ = MODELS[model]
    context = max(context, length)
    tokens, targets = (torch.randint(0, vocabulary, (batch, length)) for _ in range(2))
    autocast = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()

    if model == "minilm-forward":
        encoder = Encoder(vocabulary, context, layers, heads, width).eval().apply(initialize)
        run = compiled(encoder, mode)

        def forward():
            with torch.inference_mode(), autocast:
                return run(tokens)[0, 0, 0].item()

        return forward, 2 * sum(p.numel() for p in encoder.blocks.parameters())

    network = LanguageModel(vocabulary, context, layers, heads, width, causal=model != "bert").apply(initialize)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, fused=True)
    run = compiled(network, mode)

    def train():
        with autocast:
            loss = run(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return train, 6 * sum(p.numel() for p in network.parameters())


def restart_with_intel_kernels():
    """Starts this script again, so that MKL takes its kernels for Intel CPUs also on CPUs of other makers.

    MKL asks a function of its own for the maker. A library that is loaded before MKL replaces this function.
    """
    variable = "WEFT_PYTORCH_INTEL_KERNELS"
    if variable in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "libintel.so"
        source = "int mkl_serv_intel_cpu_true(void) { return 1; }"
        subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=source, text=True, check=True)
        preload = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
        environment = {**os.environ, "LD_PRELOAD": preload, variable: "1"}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="charcpu")
    parser.add_argument("--batch", type=int, default=0, help="0: the model's own")
    parser.add_argument("--length", type=int, default=0, help="0: the model's own")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="bf16: autocast")
    parser.add_argument("--mode", choices=("eager", "compile", "max-autotune"), default="eager")
    parser.add_argument("--threads", type=int, default=0, help="0: what PyTorch takes")
    parser.add_argument("--steps", type=int, default=10, help="the first two don't count")
    parser.add_argument("--mkl", choices=("default", "intel"), default="default",
                        help="intel: MKL's kernels for Intel CPUs on any CPU, which are faster on CPUs of AMD")
    flags = parser.parse_args()
    if flags.steps < 3:
        parser.error("--steps: at least 3")
    if flags.mkl == "intel":
        restart_with_intel_kernels()
    batch, length = flags.batch or MODELS[flags.model][-2], flags.length or MODELS[flags.model][-1]
    if flags.threads:
        torch.set_num_threads(flags.threads)
    torch.manual_seed(0)

    step, operations = make_step(flags.model, batch, length, flags.mode, flags.precision)
    seconds = []
    for _ in range(flags.steps):
        start = time.perf_counter()
        result = step()
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds[2:])
    print(json.dumps({
        "model": flags.model, "batch": batch, "length": length, "precision": flags.precision, "mode": flags.mode,
        "threads": torch.get_num_threads(), "median_ms": median * 1e3, "best_ms": min(seconds[1:]) * 1e3,
        "first_step_ms": seconds[0] * 1e3, "tokens_per_second": batch * length / median,
        "gflops": operations * batch * length / median * 1e-9,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "result" if flags.model == "minilm-forward" else "loss": result}))


if __name__ == "__main__":
    main()
