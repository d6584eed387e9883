"""Qwen4: mixed residual streams, tables that are looked up by hashed n-grams, and a token index.

Source: ``modeling_qwen4_exp.py`` of transformers 5.23.0, checked on its meta device.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isqrt
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import Arch, Family
from advisor.models.architectures.hybrid import QWEN3_NEXT
from advisor.models.layer_patterns import all_experts

_PER_RESIDUAL: Final = 2
"""Of attention and of the experts."""
_LEAST_PRIMES: Final = 10**9
"""More than the largest table that a config may state; it bounds the search."""


def _streams(a: Arch) -> int:
    """The mixers before and after both parts of a layer."""
    wide = a.keys.whole("hc_count") * a.hidden
    return _PER_RESIDUAL * (_mixer(a) + wide * a.keys.whole("hc_count"))


def _mixer(a: Arch) -> int:
    wide = a.keys.whole("hc_count") * a.hidden
    return wide + 2 * wide * a.keys.whole("hc_lowrank")


def _index(a: Arch) -> int:
    """Keys and queries by which full attention picks tokens; 0 where the config has none."""
    width = a.keys.maybe("indexer_head_dim", least=1)
    if width is None:
        return 0
    heads = a.keys.whole("indexer_n_heads") + a.keys.whole("indexer_kv_heads")
    return a.hidden * heads * width + 2 * width


def _looking(a: Arch) -> tuple[int, ...]:
    """What layers that look up n-grams have besides their tables."""
    wide, held = a.keys.whole("hc_count") * a.hidden, _table_width(a)
    each = held * (wide + a.hidden) + wide * (3 + a.keys.whole("ple_conv_kernel_size"))
    numbers = a.keys.wholes("ple_layer_ids") or ()
    return tuple(each if layer + 1 in numbers else 0 for layer in range(a.layers))


def _tables(a: Arch) -> int:
    """Rows of all tables: for every hash a prime of its own, padded."""
    orders = a.keys.whole("ngram_size") - 1
    hashes = orders * a.keys.whole("heads_per_ngram")
    start, step = (
        a.keys.whole(k) for k in ("ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by")
    )
    layers = len(set(a.keys.wholes("ple_layer_ids") or ()))
    if layers * hashes > a.layers * a.hidden or start > _LEAST_PRIMES:
        raise a.keys.gap("its n-gram tables are too large to be counted.")
    sizes = _primes(start, layers * hashes)
    rows = (sum(sizes[n * hashes : (n + 1) * hashes]) for n in range(layers))
    return sum(-(-count // step) * step for count in rows) * (_table_width(a) // hashes)


def _table_width(a: Arch) -> int:
    return a.keys.maybe("ple_embed_dim", least=1) or a.hidden


@cache
def _primes(start: int, count: int) -> tuple[int, ...]:
    """The first primes from a number on."""
    found: list[int] = []
    number = max(start, 2)
    while len(found) < count:
        if all(number % divisor for divisor in range(2, isqrt(number) + 1)):
            found.append(number)
        number += 1
    return tuple(found)


def _cells(a: Arch) -> tuple[tuple[int, int], ...] | None:
    """Keys and values of full attention, and the key of its index, for every token."""
    index = a.keys.maybe("indexer_head_dim", least=1)
    if index is None:
        return None
    full = 2 * a.kv_heads * a.head_dim + index
    return tuple((full if kind == "F" else 0, 0) for kind in a.kinds)


HASHED: Final[Mapping[str, Family]] = {
    "qwen4_exp": replace(
        QWEN3_NEXT,
        attention=(*QWEN3_NEXT.attention, _index),
        norms=(_streams,),
        final=(_mixer,),
        irregular=_looking,
        lookups=(_tables,),
        cells=_cells,
        ffn_kinds=all_experts,
        defaults={
            **QWEN3_NEXT.defaults,
            "hc_count": 4,
            "hc_lowrank": 320,
            "ple_conv_kernel_size": 4,
            "ngram_size": 3,
            "heads_per_ngram": 8,
            "ngram_vocab_size_base": 20_000_000,
            "make_ngram_vocab_size_divisible_by": 128,
        },
        also=("qwen4_exp_text",),
    )
}
