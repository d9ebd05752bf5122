"""Returns lines that are hard for tokenizers: odd spacing, scripts, marks, emoji, controls, very long words."""
import random

PIECES = [
    " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2003", "\u200b", "\u180e", "\u0085", "\u2028", "\v", "\f",
    "the", "The", "THE", "don't", "DON'T", "I'M", "we'LL", "it\u2019s", "'s", "' s", "o'clock", "\u017fs", "'\u017f", "iPhone", "HTMLParser", "caf\u00e9",
    "cafe\u0301", "e\u0301\u0323\u0302", "\u0301", "na\u00efve", "\u00c9LAN", "\u0130stanbul", "\u1e9e\u00df", "\ufb01ne", "\u0149", "\u03a3\u03b1\u03c2", "\u01c5", "\u00aa\u00ba",
    "0", "12", "123", "1234", "1234567", "3.14", "1,000", "\u00bd", "\u00b2\u00b3", "\u0661\u0662\u0663", "\u2163", "\u2460", "\u4e00\u4e8c", "\uff11\uff12",
    ".", ",", "!", "?!", "...", "\u2026", "--", "\u2014", "(", ")", "[", "]", "{", "}", "<", ">", "<s>", "</s>", "<unk>", "[MASK]", "<|x|>", "\"", "``", "''",
    "$", "\u20ac", "#", "@user", "a_b", "_", "__init__", "/", "\\", "a/b", "http://x.y/z?q=1&r=2", "x=1;", "+", "^", "~", "|", "%", "\u00a7", "\u00b5",
    "\u4f60\u597d", "\u4e16\u754c", "\u65e5\u672c\u8a9e", "\u304b\u306a", "\u30ab\u30bf", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0995\u09cd\u09b7", "\u0ba8\u0bbf",
    "\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05bc\u05b8", "\u0645\u0631\u062d\u0628\u0627", "\u0645\u064e\u0631", "\u202babc\u202c", "\u200f", "\u200e", "\u043f\u0440\u0438\u0432\u0435\u0442", "\u039a\u03b1\u03bb", "\u10d0\u10d1", "\u13a0\uab70", "\u1c90",
    "\U0001f642", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001d400\U0001d4b3", "\U00020000", "\U0001f130", "\u24b6",
    "\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\x8f", "\x9f", "\u00ad", "\ufeff", "\ufffd", "\ue000", "\ufdd0", "\U000e0041", "\u2581", "\u2581\u2581", "\u0120", "\u0640", "\u06dd",
    "\uff21\uff22", "\uff76\uff9e", "\u3392", "\u2122", "\u212b", "\u1e69", "s\u0323\u0307", "\u0344", "\ufb2c", "\u2126", "\u3131", "\uffa1", "\u0f73", "\u1fb3",
]


def odd_lines(count=500, seed=7):
    draw = random.Random(seed)
    lines = ["", " ", "  ", "\n", "\t", "a" * 500, "ab" * 300 + " " + "c" * 200, " " * 300 + "x", "\u4e2d" * 200, "e" + "\u0301" * 100,
             "A" * 200 + "b", "1" * 300, "!" * 300, "\U0001f642" * 100, "\r\n" * 50 + " \n \n", "'" * 50 + "s" * 50]
    lines += [p for p in PIECES] + ["a" + p + "b" for p in PIECES]
    while len(lines) < count:
        lines.append("".join(draw.choice(PIECES) + draw.choice(["", "", " ", "a"]) for _ in range(draw.randint(2, 14))))
    return lines[:count]
