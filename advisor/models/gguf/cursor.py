"""Reading the header of a GGUF file forward, in small chunks, within the file's bounds."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO, Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from advisor.models.architecture import Gguf
from advisor.models.architectures.tables import FAMILIES, ONLY_FILES
from advisor.models.config_keys import Keys
from advisor.models.recurrent import mamba2_state, mamba_state
from advisor.models.shape import Recurrent
from advisor.models.stored_tensors import fail

_CHUNK_BYTES: Final = 1 << 18
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")


class Budget(Struct):
    """What may still be read, over all files of one model."""

    strings: int = 4_000_000
    """Steps over the texts of arrays (a tokenizer's words and merges)."""
    entries: int = 100_000
    """Metadata entries."""
    values: int = 200_000
    """Elements of arrays that are kept."""
    tensors: int = 50_000


class Cursor:
    """A place in a header that only moves forward.

    Nothing beyond ``size`` bytes is ever asked for.
    """

    __slots__ = ("_at", "_base", "_buffer", "_file", "shown", "size")

    def __init__(self, file: BinaryIO, size: int, shown: str) -> None:
        self._file = file
        self._buffer = b""
        self._base = 0
        self._at = 0
        self.size = size
        self.shown = shown

    @property
    def position(self) -> int:
        """Bytes from the start of the file."""
        return self._base + self._at

    def take(self, count: int) -> bytes:
        """Read ``count`` bytes."""
        end = self._at + count
        if end > len(self._buffer):
            self._refill(count)
            end = count
        found = self._buffer[self._at : end]
        self._at = end
        return found

    def u32(self) -> int:
        """Read an unsigned 32-bit number."""
        value: int = _U32.unpack(self.take(4))[0]
        return value

    def u64(self) -> int:
        """Read an unsigned 64-bit number."""
        value: int = _U64.unpack(self.take(8))[0]
        return value

    def skip(self, count: int) -> None:
        """Step over ``count`` bytes without reading them."""
        if count > self.size - self.position:
            self.cut_off()
        self._at += count

    def skip_strings(self, count: int) -> None:
        """Step over ``count`` texts, each with its length before it."""
        while count:
            passed = self._skip_buffered(count)
            count -= passed
            if count and not passed:
                self._refill(_U64.size)
        if self.position > self.size:
            self.cut_off()

    def _skip_buffered(self, count: int) -> int:
        buffer, at, unpack = self._buffer, self._at, _U64.unpack_from
        last = len(buffer) - _U64.size
        passed = count
        for index in range(count):
            if at > last:
                passed = index
                break
            (length,) = unpack(buffer, at)
            at += 8 + length
        self._at = at
        return passed

    def _refill(self, least: int) -> None:
        position = self.position
        if position + least > self.size:
            self.cut_off()
        self._file.seek(position)
        self._buffer = self._read(max(least, _CHUNK_BYTES))
        self._base, self._at = position, 0
        if len(self._buffer) < least:
            self.cut_off()

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._file.read(count)
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def cut_off(self) -> NoReturn:
        """Refuse the file as incomplete."""
        fail(
            self.shown,
            "the file ends inside its header, so it is cut off or not a GGUF file.",
            hint="Download it again.",
        )

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        """Refuse the file for ``reason``."""
        fail(self.shown, reason, hint)


def gguf_families() -> Mapping[str, Gguf]:
    """Give every GGUF architecture that can be read, by name."""
    return {
        **{known.architecture: known for known in ONLY_FILES},
        **{
            known.architecture: replace(known, model_type=name)
            for name, family in FAMILIES.items()
            for known in family.gguf
            if known.reads
        },
    }


_STATE_WIDTHS: Final = ("ssm.state_size", "wkv.head_size", "kda.head_dim")
_USUAL_KERNEL: Final = 4


def recurrent_of(keys: Keys, family: Gguf, hidden: int, width: int) -> Recurrent | None:
    """Describe the state of a recurrent layer; None where nobody has described it.

    Sizes follow what transformers 5.23.0 keeps, as for a config.json, or what llama.cpp does.
    Of what nothing here describes the state is square for every head.

    Raises:
        SourceFileError: A figure is missing or impossible.
    """
    if not family.described:
        each = keys.maybe(*_STATE_WIDTHS, least=1) or width or 1
        return Recurrent("deltanet", hidden * _USUAL_KERNEL, hidden * each, inner=hidden)
    if family.recurrent == "conv":
        kernel = keys.whole("shortconv.l_cache")
        return Recurrent("conv", hidden * kernel, 0, inner=hidden, conv_kernel=kernel)
    if family.recurrent == "mamba":
        return mamba_state(*_sizes(keys), keys.whole("ssm.time_step_rank"))
    if family.recurrent == "mamba2":
        return _mamba2(keys)
    if family.recurrent in {"kda", "lightning"}:
        return _by_heads(keys, family, hidden)
    if family.recurrent == "wkv":
        shifts, width = keys.number("token_shift_count", 2), keys.whole("wkv.head_size")
        return Recurrent("deltanet", hidden * shifts, hidden * width, inner=hidden)
    return _deltanet(keys) if family.recurrent == "deltanet" else None


def _by_heads(keys: Keys, family: Gguf, hidden: int) -> Recurrent:
    """A square state for every head, and with it what was convolved of query, key and value."""
    heads = keys.whole("attention.head_count")
    if family.recurrent == "lightning":
        width = keys.maybe("attention.key_length", least=1) or hidden // heads
        return Recurrent("deltanet", 0, heads * width**2, inner=heads * width)
    kernel, width = keys.whole("ssm.conv_kernel"), keys.whole("kda.head_dim")
    inner = heads * width
    return Recurrent("deltanet", 3 * inner * kernel, inner * width, inner, conv_kernel=kernel)


def _mamba2(keys: Keys) -> Recurrent:
    inner, state, kernel = _sizes(keys)
    heads, groups = keys.whole("ssm.time_step_rank", most=inner), keys.whole("ssm.group_count")
    return mamba2_state(inner, state, kernel, heads, groups)


def _deltanet(keys: Keys) -> Recurrent:
    return replace(_mamba2(keys), kind="deltanet", dt_rank=0)


def _sizes(keys: Keys) -> tuple[int, int, int]:
    return keys.whole("ssm.inner_size"), keys.whole("ssm.state_size"), keys.whole("ssm.conv_kernel")
