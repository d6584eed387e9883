"""What vLLM does on which card, read by running its own attention backends' answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runtime_sources import (
    FP8_UNITS,
    OLDEST,
    Module,
    Row,
    Stand,
    compiled_for,
    smallest_cards,
    without,
)

CARDS = (7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, 12.0, 12.1)
"""Compute capabilities that are asked about."""
CACHE = ("fp8", "fp8_e4m3", "fp8_e5m2")
USUAL_HEADS = (64, 128, 256, 512)


class Capability(NamedTuple):
    """A compute capability as vLLM compares it."""

    major: int
    minor: int

    def to_int(self) -> int:
        """Give 89 for 8.9."""
        return 10 * self.major + self.minor


class Platform:
    """Answers what vLLM asks of the card."""

    def __init__(self, card: float) -> None:
        """Be a card of this compute capability."""
        self.card = Capability(int(card), round(card * 10) % 10)
        self.is_xpu = self.is_rocm = lambda: False

    def get_device_capability(self) -> Capability:
        """Give it."""
        return self.card

    def is_device_capability(self, number: int) -> bool:
        """Whether it is just this one."""
        return self.card.to_int() == number

    def is_device_capability_family(self, number: int) -> bool:
        """Whether it is of this generation."""
        return self.card.major == number // 10

    def has_device_capability(self, number: int) -> bool:
        """Whether it is this one or a later one."""
        return self.card.to_int() >= number


_SPARSE_FILE = "mla/flashinfer_mla_sparse.py"
_BACKENDS = {
    "FLASH_ATTN": ("flash_attn.py", "FlashAttentionBackend"),
    "FLASHINFER": ("flashinfer.py", "FlashInferBackend"),
    "TRITON_ATTN": ("triton_attn.py", "TritonAttentionBackend"),
    "FLASHMLA": ("mla/flashmla.py", "FlashMLABackend"),
    "FLASHINFER_MLA": ("mla/flashinfer_mla.py", "FlashInferMLABackend"),
    "CUTLASS_MLA": ("mla/cutlass_mla.py", "CutlassMLABackend"),
    "TRITON_MLA": ("mla/triton_mla.py", "TritonMLABackend"),
    "FLASHMLA_SPARSE": ("mla/flashmla_sparse.py", "FlashMLASparseBackend"),
    "FLASHINFER_MLA_SPARSE": (_SPARSE_FILE, "FlashInferMLASparseTRTLLMBackend"),
    "FLASHINFER_MLA_SPARSE_SM120": (_SPARSE_FILE, "FlashInferMLASparseSM120Backend"),
    "FLASHINFER_MLA_SPARSE_SM90": (
        "mla/flashinfer_mla_sparse_sm90.py",
        "FlashInferMLASparseSM90Backend",
    ),
    "FLASH_ATTN_MLA_SPARSE": ("mla/flashattn_mla_sparse.py", "FlashAttnMLASparseBackend"),
}
"""Attention backends of a card from NVIDIA that matter for the type of the cache."""
_FOLDER = "vllm/v1/attention/backends/"
SINKS = ("gpt_oss", "mimo_v2_flash", "laguna")
"""Architectures whose attention has sinks: files of vllm/model_executor/models that name them."""
SPARSE = ("deepseek_v32", "glm_moe_dsa")
"""Architectures with sparse latent attention."""


class _Own:
    """Names of backends: each is its own value."""

    def __getattr__(self, name: str) -> str:
        return name


def _backend(root: Path, name: str, platform: Platform) -> tuple[object, Module]:
    """Make one backend's class as it is on this card."""
    path, cls = _BACKENDS[name]
    module = Module(root, _FOLDER + path)
    version = {9: 3, 10: 4}.get(platform.card.major, 2)  # fa_utils.py, get_flash_attn_version
    given: dict[str, object] = {
        "current_platform": platform,
        "DeviceCapability": Capability,
        "get_flash_attn_version": lambda **_: version,
        "is_quantized_kv_cache": lambda kind: kind.startswith("fp8"),
    }
    shared = Module(root, _FOLDER + "fa_utils.py").run(given, "flash_attn_supports_kv_cache_dtype")
    given["flash_attn_supports_kv_cache_dtype"] = shared["flash_attn_supports_kv_cache_dtype"]
    base = Module(root, "vllm/v1/attention/backend.py").run(given, "AttentionBackend")
    for parent in ("AttentionBackend", "MLACommonBackend", "_FlashInferMLASparseBackendBase"):
        given[parent] = base["AttentionBackend"]
    return module.run(given, cls)[cls], module


class Question(NamedTuple):
    """A card, a type of cache and a kind of attention."""

    card: float
    kind: str
    attention: str
    """heads, other heads, sinks, mla or sparse."""

    @property
    def latent(self) -> bool:
        """Whether the cache is one latent vector."""
        return self.attention in {"mla", "sparse"}


def _takes(root: Path, name: str, asked: Question) -> bool:
    """Whether this backend can be taken."""
    if name not in _BACKENDS or (asked.attention == "sparse") != ("SPARSE" in name):
        return False
    platform = Platform(asked.card)
    cls, module = _backend(root, name, platform)
    known: Any = cls
    head = 96 if asked.attention == "other heads" else 128
    needs_fp8 = "native FP8" in module.text and asked.kind.startswith("fp8")
    if needs_fp8 and asked.card < FP8_UNITS:  # raised when the layer is built
        return False
    if not known.supports_compute_capability(platform.card):
        return False
    if not known.supports_kv_cache_dtype(asked.kind):
        return False
    if not asked.latent and not known.supports_head_size(head):
        return False
    sinks = asked.attention == "sinks"
    if name == "FLASH_ATTN":
        given = (head, Stand, asked.kind, 16, False, sinks, False, False, platform.card)
        return not known.supports_combination(*given)
    return not (sinks and name == "FLASHINFER")  # its kernel for sinks is a download of its own


def vllm_cache(root: Path) -> Iterator[Row]:
    """Say where vLLM has no attention kernel for a cache."""
    platform_file = Module(root, "vllm/platforms/cuda.py")
    given = {"AttentionBackendEnum": _Own(), "cache": lambda made: made}
    order: Any = platform_file.run(given, "_get_backend_priorities")["_get_backend_priorities"]
    at = platform_file.line("def _get_backend_priorities")
    for attention in ("heads", "other heads", "sinks", "mla", "sparse"):
        for kind in ("auto", *CACHE):
            refused = []
            for card in CARDS:
                asked = Question(card, kind, attention)
                names = order(asked.latent, Platform(card).card, 128, kind)
                if not any(_takes(root, name, asked) for name in names):
                    refused.append(card)
            yield from _cache_rows(attention, kind, refused, at)


def _cache_rows(attention: str, kind: str, refused: Sequence[float], at: str) -> Iterator[Row]:
    for low, high in _runs([card for card in refused if card >= OLDEST]):
        row: Row = {"about": "kv_cache", "of": [kind], "answer": "refused"}
        row["why"] = "no attention kernel of vLLM reads FP8 there"
        if kind == "auto":
            row = {
                "about": "model",
                "answer": "refused",
                "why": "vLLM has no attention kernel for it",
            }
        yield row | _between(low, high) | _kind_of_attention(attention) | {"at": at}


def _kind_of_attention(attention: str) -> Row:
    kinds: Mapping[str, Row] = {
        "heads": {},
        "other heads": {"attention": ["heads"], "other_head_sizes": list(USUAL_HEADS)},
        "sinks": {"model_types": list(SINKS)},
        "mla": {"attention": ["mla"]},
        "sparse": {"model_types": list(SPARSE)},
    }
    return kinds[attention]


def _runs(cards: Sequence[float]) -> Iterator[tuple[float, float | None]]:
    """Give runs of neighbouring cards as the first of each and the first behind it."""
    places = [CARDS.index(card) for card in cards]
    for start in (place for place in places if place - 1 not in places):
        end = start
        while end in places:
            end += 1
        yield CARDS[start], CARDS[end] if end < len(CARDS) else None


def _between(low: float, high: float | None) -> Row:
    found: Row = {"vendors": ["NVIDIA"]}
    if low > OLDEST:
        found["from_capability"] = low
    if high:
        found["below_capability"] = high
    return found


def vllm(root: Path, wheel: Path, transformers: Path) -> Iterator[Row]:
    """Read vLLM."""
    library = "vllm/_C_stable_libtorch.abi3.so"
    cards = compiled_for(wheel, library)
    yield {
        "about": "card", "answer": "refused", "vendors": ["NVIDIA"], "below_capability": min(cards),
        "why": "its wheel, built with CUDA 13, holds machine code from compute capability"
        f" {min(cards):g} on; use llama.cpp, or from 7.0 on an older release that was built"
        " with CUDA 12",
        "at": library,
    }  # fmt: skip
    model = Module(root, "vllm/config/model.py")
    name = "_FLOAT16_NOT_SUPPORTED_MODELS"
    refused: Any = model.constant(name)
    yield {
        "about": "dtype", "of": ["float16"], "answer": "refused", "model_types": list(refused),
        "why": "vLLM refuses float16 for it: numerically unstable", "at": model.line(name),
    }  # fmt: skip
    cuda = Module(root, "vllm/platforms/cuda.py")
    yield {
        "about": "dtype", "of": ["bfloat16"], "answer": "refused", "vendors": ["NVIDIA"],
        "below_capability": 8.0, "why": "vLLM computes in bfloat16 from compute capability 8 on",
        "at": cuda.line("BF16 is not supported"),
    }  # fmt: skip
    yield from vllm_cache(root)
    yield from vllm_weights(root)
    yield {
        "about": "split", "of": ["layer"], "answer": "refused",
        "model_types": without(root / "vllm", transformers, lambda node: node.name == "SupportsPP"),
        "why": "vLLM has no pipeline for it",
        "at": model.line("`SupportsPP` interface"),
    }  # fmt: skip


_VLLM_WEIGHTS = {
    "AWQ 4-bit": ("auto_awq.py", "AutoAWQConfig"),
    "FP8": ("fp8.py", "Fp8Config"),
    "MXFP4": ("mxfp4.py", "Mxfp4Config"),
    "NVFP4": ("modelopt.py", "ModelOptNvFp4Config"),
    "INT8 W8A8": ("compressed_tensors/schemes/compressed_tensors_w8a8_int8.py", None),
}
"""Weight format -> file below quantization/ and class that says the smallest capability."""


def vllm_weights(root: Path) -> Iterator[Row]:
    """Say from which card on vLLM reads a weight format."""
    folder = "vllm/model_executor/layers/quantization/"
    yield from smallest_cards(root, folder, _VLLM_WEIGHTS)
