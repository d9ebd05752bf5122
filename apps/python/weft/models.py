"""Layers, and the model families.

A layer records its parameters and its computation: linear("fc", x, 128) has the weights fc.weight and fc.bias. Axes: B
batch, T target length, S source length, C model width, V vocabulary.
"""
import json
from typing import Any, Dict, Optional, Tuple

from weft import _weft
from weft._weft import Var
from weft._weft._models import *  # noqa: F403
from weft.options import texts


def embedding(name: str, ids: Var, vocabulary: int, width: int, **options: Any) -> Var:
    """Returns rows [..., width] of a table NAME.weight for ids, i32 [...]. Options are those of embedding_table."""
    return _weft.embedding(_weft._models.embedding_table(name, ids.tape, vocabulary, width, **options), ids)


def multi_head_attention(name: str, x: Var, heads: int, *, causal: bool = False, dropout: float = 0, bias: bool = True,
                         memory: Optional[Var] = None, mask: Optional[Var] = None, **options: Any) -> Var:
    """Returns attention [B, T, C] of x [B, T, C] to itself or to `memory`, [B, S, C'].

    mask: bool, broadcasts to [B, heads, T, S]; true hides a source from a target. Options are those of attention of
    `weft train`: key_value_heads=2, rotary="halves", window=64, ...
    """
    options.update(heads=heads, causal=causal, dropout=dropout, bias=bias)
    return _weft._models._multi_head_attention(name, x, memory, mask, texts(options))


def block(name: str, x: Var, heads: int, *, causal: bool = False, dropout: float = 0, bias: bool = True,
          mask: Optional[Var] = None, pre_norm: bool = True, feed_forward: int = 0, **options: Any) -> Var:
    """Returns a block of a Transformer for x [B, T, C]: attention and a feed-forward layer, each with a norm and added.

    feed_forward: its width; 0: 4·C. Options are those of multi_head_attention.
    """
    options.update(heads=heads, causal=causal, dropout=dropout, bias=bias)
    return _weft._models._block(name, x, mask, pre_norm, feed_forward, texts(options))


class _Family:
    """Options are those of `weft train`: layers=4, heads=4, width=128, context=64, ... and the sizes of vocabularies.

    With model_type, they are the keys of a published config.json.
    """

    _vocabularies: Tuple[str, ...] = ("vocabulary",)

    def __init__(self, **options: Any):
        sizes = [options.pop(name, -1) for name in self._vocabularies]
        super().__init__(json.dumps(options), sizes)  # type: ignore[call-arg]

    @property
    def config(self) -> Dict[str, Any]:
        """The configuration, in the keys of published models."""
        return json.loads(super().config)  # type: ignore[misc]


class Gpt(_Family, _weft._models._Gpt):
    """A GPT-style decoder. Its parameters have the published names."""


class Bert(_Family, _weft._models._Bert):
    """A BERT-style encoder. Its parameters have the published names."""


class Transformer(_Family, _weft._models._Transformer):
    """An encoder-decoder Transformer, with a source_vocabulary and a target_vocabulary."""

    _vocabularies = ("source_vocabulary", "target_vocabulary")
