"""Makes the numbers of tests/gpt_training_test.cc with PyTorch in f64: python3 tests/gpt_reference.py (needs torch).

A GPT of 2 layers, 2 heads, width 16, context 8, vocabulary 11 whose weights are sines, trained for ten steps of AdamW
(0.9, 0.99, weight decay 0.1 on matrices, clip 1.0, rate 1e-2) on one batch of 3.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
V, T, L, H, C, B = 11, 8, 2, 2, 16, 3


def gpt(p, tokens, pre_norm, tied):
    norm = lambda name, x: F.layer_norm(x, (C,), p[name + ".weight"], p[name + ".bias"])
    linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def attention(name, x):
        q, k, v = (z.view(B, T, H, C // H).transpose(1, 2) for z in linear(name + ".c_attn", x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return linear(name + ".c_proj", y.transpose(1, 2).reshape(B, T, C))

    def feed_forward(name, x):
        return linear(name + ".c_proj", F.gelu(linear(name + ".c_fc", x), approximate="tanh"))

    x = p["wte.weight"][tokens] + p["wpe.weight"]
    for i in range(L):
        h = f"h.{i}."
        if pre_norm:
            x = x + attention(h + "attn", norm(h + "ln_1", x))
            x = x + feed_forward(h + "mlp", norm(h + "ln_2", x))
        else:
            x = norm(h + "ln_1", x + attention(h + "attn", x))
            x = norm(h + "ln_2", x + feed_forward(h + "mlp", x))
    if pre_norm:
        x = norm("ln_f", x)
    return F.linear(x, p["wte.weight" if tied else "lm_head.weight"])


def shapes(pre_norm, tied):
    result = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    for i in range(L):
        for name, shape in {"ln_1.weight": (C,), "ln_1.bias": (C,), "attn.c_attn.weight": (3 * C, C),
                            "attn.c_attn.bias": (3 * C,), "attn.c_proj.weight": (C, C), "attn.c_proj.bias": (C,),
                            "ln_2.weight": (C,), "ln_2.bias": (C,), "mlp.c_fc.weight": (4 * C, C),
                            "mlp.c_fc.bias": (4 * C,), "mlp.c_proj.weight": (C, 4 * C),
                            "mlp.c_proj.bias": (C,)}.items():
            result[f"h.{i}.{name}"] = shape
    if pre_norm:
        result["ln_f.weight"] = result["ln_f.bias"] = (C,)
    if not tied:
        result["lm_head.weight"] = (V, C)
    return result


for pre_norm, tied in ((True, True), (False, False)):
    p = {}
    for k, (name, shape) in enumerate(sorted(shapes(pre_norm, tied).items())):
        n = torch.arange(torch.Size(shape).numel())
        p[name] = nn.Parameter((0.3 * torch.sin(0.7 * n + k) + (1.0 if "ln_" in name and "weight" in name else 0.0))
                               .reshape(shape))
    tokens = (torch.arange(B * T) ** 2 % V).reshape(B, T)
    targets = ((torch.arange(B * T) + 1) ** 2 % V).reshape(B, T)
    groups = [{"params": [v for v in p.values() if v.dim() >= 2], "weight_decay": 0.1},
              {"params": [v for v in p.values() if v.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.99))
    print("pre_norm", pre_norm, "tied", tied)
    for step in range(10):
        loss = F.cross_entropy(gpt(p, tokens, pre_norm, tied).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        print(f"    {{{loss.item():.9f}, {norm.item():.9f}}},")
