#!/usr/bin/env python3
"""Draws docs/pictures/softmax_scale.png: the weights that a softmax gives sixteen keys, by rank, for q·k of unit Gaussians
of several widths, as they are and divided by the root of the width.

    pip install numpy pillow
    docs/tutorials/softmax_scale.py docs/pictures/softmax_scale.png
"""
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

KEYS, DRAWS, WIDTHS = 16, 2000, (1, 8, 64, 512)
COLORS = ("#4477aa", "#228833", "#cc8800", "#cc3311")
LEFT, TOP, WIDE, HIGH, GAP, SCALE = 50, 40, 330, 220, 60, 2


def weights(width, scaled, random):
    q = random.standard_normal((DRAWS, 1, width))
    k = random.standard_normal((DRAWS, KEYS, width))
    scores = (q * k).sum(-1) / (np.sqrt(width) if scaled else 1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.sort(e / e.sum(-1, keepdims=True), -1)[:, ::-1].mean(0)


def main(out):
    random = np.random.default_rng(1)
    size = (2 * WIDE + GAP + LEFT + 20, HIGH + TOP + 50)
    image = Image.new("RGB", (size[0] * SCALE, size[1] * SCALE), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=13 * SCALE)
    text = lambda x, y, s, fill="#333333", anchor="lm": draw.text((x * SCALE, y * SCALE), s, fill, font, anchor)
    line = lambda points, fill, width=1: draw.line([(x * SCALE, y * SCALE) for x, y in points], fill, width * SCALE)
    for panel, scaled in enumerate((False, True)):
        x0 = LEFT + panel * (WIDE + GAP)
        text(x0 + WIDE / 2, 18, "softmax(q·k / sqrt(d_k))" if scaled else "softmax(q·k)", anchor="mm")
        for tick in range(6):
            y = TOP + HIGH * (1 - tick / 5)
            line([(x0, y), (x0 + WIDE, y)], "#dddddd")
            text(x0 - 8, y, f"{tick / 5:.1f}", anchor="rm")
        at = lambda rank: x0 + WIDE * rank / (KEYS - 1)
        for rank in range(0, KEYS, 3):
            text(at(rank), TOP + HIGH + 14, str(rank + 1), anchor="mm")
        text(x0 + WIDE / 2, TOP + HIGH + 36, "key, by its weight", anchor="mm")
        for i, width in enumerate(WIDTHS):
            w = weights(width, scaled, random)
            line([(at(r), TOP + HIGH * (1 - v)) for r, v in enumerate(w)], COLORS[i], 2)
            y = TOP + 16 + 20 * i
            line([(x0 + WIDE - 110, y), (x0 + WIDE - 86, y)], COLORS[i], 2)
            text(x0 + WIDE - 80, y, f"d_k = {width}")
    image.quantize(32).save(out, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
