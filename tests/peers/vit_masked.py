"""Writes vit_masked.safetensors: what Hugging Face's ViTForMaskedImageModeling gives in f64 for a small picture.

    python3 vit_masked.py vit_masked.safetensors

Stored: the images, the mask, the weights under their published names, the predicted pixels, the loss, and the
gradients of the loss by every weight. Numbers come from the function `array` of pytorch_blocks.py. Attention is sdpa,
because the eager one computes its softmax in f32. Hugging Face divides the loss by the number of masked pixels + 1e-5,
a sum in f32; the stored loss and gradients are multiplied by the quotient that this changes.
"""
import re
import sys

import torch
from transformers import ViTConfig, ViTForMaskedImageModeling

from pytorch_blocks import array, save


# From the names in transformers 5 to those of published checkpoints.
NAMES = ((r"vit\.layers\.", "vit.encoder.layer."), (r"attention\.q_proj", "attention.attention.query"),
         (r"attention\.k_proj", "attention.attention.key"), (r"attention\.v_proj", "attention.attention.value"),
         (r"attention\.o_proj", "attention.output.dense"), (r"mlp\.fc1", "intermediate.dense"),
         (r"mlp\.fc2", "output.dense"))


def published(name):
    for old, new in NAMES:
        name = re.sub(old, new, name)
    return name


def run():
    config = ViTConfig(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=6,
                       patch_size=2, num_channels=2, encoder_stride=2, hidden_dropout_prob=0.0,
                       attention_probs_dropout_prob=0.0, attn_implementation="sdpa")
    model = ViTForMaskedImageModeling(config).double().eval()
    named = list(model.named_parameters())
    with torch.no_grad():
        for k, (name, p) in enumerate(named):
            p.copy_(array(k + 2, p.shape, 0.4, 1.0 if "norm" in name and name.endswith("weight") else 0.0))
    images = array(0, (3, 6, 6, 2), 1.0)  # height, width, channels
    mask = torch.tensor([[1, 0, 0, 1, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 1, 1, 1, 1]])
    mask = mask.double()
    out = model(images.permute(0, 3, 1, 2), bool_masked_pos=mask.bool())
    pixels = mask.bool().sum() * 4  # as Hugging Face counts them, without channels
    loss = out.loss * ((pixels + 1e-5).double() / pixels)
    loss.backward()
    yield from (("images", images), ("mask", mask), ("loss", loss.detach().reshape(1)))
    yield "pixels", out.reconstruction.detach().permute(0, 2, 3, 1).contiguous()
    yield from ((published(name), p.detach()) for name, p in named)
    yield from ((f"gradient.{published(name)}", p.grad) for name, p in named)


if __name__ == "__main__":
    save(sys.argv[1], run())
