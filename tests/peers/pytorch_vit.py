"""Writes pytorch_vit.safetensors: what a Vision Transformer made of PyTorch 2.15's own layers gives in f64.

    python3 pytorch_vit.py pytorch_vit.safetensors

The patches are those of a convolution, the blocks those of nn.TransformerEncoder. Stored for each of two configurations:
the configuration, the images, the weights under the names of ViTForImageClassification, the hidden states and logits,
and the gradients of sum(logits * weights) by every one of them, where weights is the array 1 of pytorch_blocks.py.
"""
import sys

import torch
from torch import nn

from pytorch_blocks import array, save

CONFIGURATIONS = (
    dict(batch=2, height=4, image_width=6, channels=3, patch=2, classes=5, layers=2, heads=2, width=8, hidden=12),
    dict(batch=3, height=6, image_width=6, channels=1, patch=3, classes=3, layers=1, heads=1, width=4, hidden=7))


class Vit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patches = nn.Conv2d(c["channels"], c["width"], c["patch"], stride=c["patch"])
        self.token = nn.Parameter(torch.zeros(1, 1, c["width"]))
        n = c["height"] // c["patch"] * (c["image_width"] // c["patch"])
        self.positions = nn.Parameter(torch.zeros(1, n + 1, c["width"]))
        layer = nn.TransformerEncoderLayer(c["width"], c["heads"], c["hidden"], dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True, layer_norm_eps=1e-12)
        self.encoder = nn.TransformerEncoder(layer, c["layers"], norm=nn.LayerNorm(c["width"], eps=1e-12),
                                             enable_nested_tensor=False)
        self.head = nn.Linear(c["width"], c["classes"])

    def forward(self, images):  # [B, height, width, channels]
        x = self.patches(images.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        hidden = self.encoder(x)
        return hidden, self.head(hidden[:, 0])


def published(model, of):
    """The parameters, or what `of` gives for each, under their published names."""
    top = {"cls_token": model.token, "position_embeddings": model.positions,
           "patch_embeddings.projection.weight": model.patches.weight,
           "patch_embeddings.projection.bias": model.patches.bias}
    for name, p in top.items():
        yield f"vit.embeddings.{name}", of(p)
    for i, layer in enumerate(model.encoder.layers):
        at = f"vit.encoder.layer.{i}"
        for kind, p in (("weight", layer.self_attn.in_proj_weight), ("bias", layer.self_attn.in_proj_bias)):
            for name, part in zip(("query", "key", "value"), of(p).chunk(3)):
                yield f"{at}.attention.attention.{name}.{kind}", part
        for name, module in (("attention.output.dense", layer.self_attn.out_proj), ("intermediate.dense", layer.linear1),
                             ("output.dense", layer.linear2), ("layernorm_before", layer.norm1),
                             ("layernorm_after", layer.norm2)):
            for kind in ("weight", "bias"):
                yield f"{at}.{name}.{kind}", of(getattr(module, kind))
    for name, module in (("vit.layernorm", model.encoder.norm), ("classifier", model.head)):
        for kind in ("weight", "bias"):
            yield f"{name}.{kind}", of(getattr(module, kind))


def run(c):
    model = Vit(c).double()
    with torch.no_grad():
        for k, (name, p) in enumerate(model.named_parameters()):
            p.copy_(array(k + 2, p.shape, 0.4, 1.0 if "norm" in name and name.endswith("weight") else 0.0))
    images = array(0, (c["batch"], c["height"], c["image_width"], c["channels"]), 1.0).requires_grad_()
    hidden, logits = model(images)
    (logits * array(1, logits.shape, 1.0)).sum().backward()
    yield "config", torch.tensor(list(c.values()), dtype=torch.int32)
    yield from (("images", images.detach()), ("hidden", hidden.detach()), ("logits", logits.detach()))
    yield "gradient.images", images.grad
    yield from published(model, lambda p: p.detach())
    yield from ((f"gradient.{name}", p) for name, p in published(model, lambda p: p.grad))


if __name__ == "__main__":
    save(sys.argv[1], ((f"{i}.{name}", t) for i, c in enumerate(CONFIGURATIONS) for name, t in run(c)))
