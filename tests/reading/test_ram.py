"""System RAM and processors by what people type."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest

from advisor.errors import RequestError, UserError
from advisor.knowledge import load_knowledge
from advisor.reading.ram import RamKind, cpus, find_cpu, ram_types, read_ram
from advisor.reading.sentences import read_sentence
from advisor.scenario.host import ram_pace
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWLEDGE = load_knowledge()


@pytest.mark.parametrize(
    ("text", "size", "kind"),
    [
        ("64GB DDR5-6000 x2", 64, RamKind("DDR5", 6000, 2)),
        ("64gb ddr5 6000", 64, RamKind("DDR5", 6000)),
        ("64GBs of RAM", 64, None),
        ("32 Ram", 32, None),
        ("350 GB of available system memory", 350, None),
        ("31.5 GiB unified memory available (shared system RAM)", 31.5, None),
        ("64GB Corsair Vengeance DDR5-6000 CL30", 64, RamKind("DDR5", 6000)),
        ("12 * 96 GB DDR5 MRDIMM-8800", 1152, RamKind("DDR5", 8800, None, 12)),
        ("1TB DDR5 RDIMM-4800", 1024, RamKind("DDR5", 4800)),
        ("512GB DDR4 ECC RDIMM 3200", 512, RamKind("DDR4", 3200)),
        ("2x32GB DDR4-3200", 64, RamKind("DDR4", 3200, None, 2)),
        ("32GB x2 DDR5 5600MHz", 64, RamKind("DDR5", 5600, None, 2)),
        ("64 GB DDR5 6000 MT/s quad channel", 64, RamKind("DDR5", 6000, 4)),
        ("64GB 6000MHz DDR5", 64, RamKind("DDR5", 6000)),
        ("128GB LPDDR5X-8533", 128, RamKind("LPDDR5X", 8533)),
        ("512GB (8x64GB) DDR4-3200 ECC RDIMM 8-channel", 512, RamKind("DDR4", 3200, 8, 8)),
        ("PC4-25600 2x16GB", 32, RamKind("DDR4", 3200, None, 2)),
        ("PC5-44800", None, RamKind("DDR5", 5600)),
        ("PC3-12800", None, RamKind("DDR3", 1600)),
        ("16 GB DDR3L-1600 SO-DIMM", 16, RamKind("DDR3", 1600)),
        ("DDR5 @ 6400", None, RamKind("DDR5", 6400)),
        ("4x16GB DDR4-3600 CL18", 64, RamKind("DDR4", 3600, None, 4)),
        ("1TB DDR5 12 channel", 1024, RamKind("DDR5", None, 12)),
        ("96GB of DDR5 memory", 96, RamKind("DDR5")),
        ("31,5 GB", 31.5, None),
        ("64", 64, None),
        ("64GB", 64, None),
    ],
)
def test_memory_is_read_as_it_is_written_on_the_box(
    text: str, size: float | None, kind: RamKind | None
) -> None:
    assert read_ram(text) == (size, kind)
    if kind:
        assert read_ram(str(kind)) == (None, kind), "what is kept of it is read again"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DDR4-6000", "1,600 to 5,333"),
        ("64GB DDR6-9000", "Did you mean 'DDR5'"),
        ("64GB foo9", "'foo9' in '64GB foo9' is not understood"),
        ("DDR5 foo", "'foo' in 'DDR5 foo' is not understood"),
        ("24GB VRAM", "'VRAM' in '24GB VRAM' is not understood"),
        ("32GB each", "'each' in '32GB each' is not understood"),
        ("less than 64GB", "'less than' in 'less than 64GB' is not understood"),
        ("64GB quad chanel", "is not understood"),
        ("32 Ram 64GB", "two sizes"),
        ("64GB DDR5 32GB", "two sizes"),
        ("64GB DDR5 x99", "names 99 channels"),
    ],
)
def test_what_no_memory_is_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=re.escape(why)):
        read_ram(text)


def test_random_texts_are_refused_or_read_never_worse() -> None:
    rng = random.Random(7)
    parts = ("64GB", "2x", "DDR5", "-6000", "x2", "ch", "lp", "MT/s", "0", "9" * 40, "@", "é", " ")
    for _ in range(2000):
        text = "".join(rng.choices(parts, k=rng.randint(1, 6)))
        with suppress(UserError, ValueError):
            read_ram(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ryzen 7950X", "Ryzen 9 7950X"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "Ryzen 9 7950X"),
        ("13th Gen Intel(R) Core(TM) i9-13900K", "Core i9-13900K"),
        ("i9 13900k", "Core i9-13900K"),
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "Xeon E5-2680 v4"),
        ("xeon e5-2680v4", "Xeon E5-2680 v4"),
        ("E5-2680", "Xeon E5-2680"),
        ("2x EPYC 7742", "EPYC 7742"),
        ("TR PRO 5975WX", "Ryzen Threadripper PRO 5975WX"),
        ("Ultra 9 285K", "Core Ultra 9 285K"),
        ("w9-3495X", "Xeon w9-3495X"),
        ("AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", "Ryzen 7 7840HS"),
        ("AMD FX-8350 Eight-Core Processor", "FX-8350"),
    ],
)
def test_processors_are_read_as_people_and_systems_name_them(text: str, name: str) -> None:
    assert find_cpu(text)[0].name == name


@pytest.mark.parametrize(
    "text", ["Ryzen 7 7950X", "Ryzen 9", "i7", "EPYC 77", "7950X Ti", "M2 Max"]
)
def test_never_another_processor(text: str) -> None:
    with pytest.raises(RequestError, match="unknown processor"):
        find_cpu(text)


def test_every_processor_is_found_by_its_own_name() -> None:
    types = set(ram_types())
    for name, cpu in cpus().items():
        found = find_cpu(name)[0]
        assert (found.channels, found.memory) == (cpu.channels, cpu.memory), name
        assert (0.5 if cpu.kind == "board" else 1) <= cpu.channels <= 12
        assert set(cpu.memory) <= types
        for type_, rate in cpu.memory.items():
            assert rate <= ram_types()[type_].fastest or type_.startswith("LP"), name


@pytest.mark.parametrize(
    ("request_", "low", "high"),
    [
        (Request(ram_type="DDR5-6000 x2"), 96, 96),
        (Request(ram_type="DDR4-3200 4 sticks"), 51.2, 51.2),
        (Request(ram_type="DDR4-3200 1 stick"), 25.6, 25.6),
        (Request(ram_type="DDR4-3200 8 sticks"), 204.8, 204.8),
        (Request(ram_type="LPDDR5X-8533"), 136.528, 136.528),
        (Request(ram_type="DDR5"), 76.8, 102.4),
        (Request(cpu="EPYC 7742", ram_type="DDR4-3200"), 204.8, 204.8),
        (Request(cpu="EPYC 7742", ram_type="DDR4-3200 4 sticks"), 102.4, 102.4),
        (Request(cpu="EPYC 9654", ram_type="DDR5-6400"), 460.8, 460.8),
        (Request(cpu="Ryzen 7950X", ram_type="DDR5-6400"), 102.4, 102.4),
        (Request(cpu="Ryzen 7950X"), 76.8, 102.4),
        (Request(cpu="dual EPYC 7742", ram_type="DDR4-3200"), 204.8, 409.6),
        (Request(cpu="i9-13900K"), 42.656, 102.4),
        (Request(ram_type="DDR5-6000 x2", ram_bandwidth_gb_s=80), 80, 80),
    ],
)
def test_bandwidth_is_transfers_times_eight_bytes_times_channels(
    request_: Request, low: float, high: float
) -> None:
    pace = ram_pace(request_, KNOWLEDGE.gpus["GeForce RTX 4090"], KNOWLEDGE)
    assert pace
    assert (pace.bandwidth.least / 1e9, pace.bandwidth.most / 1e9) == pytest.approx((low, high))
    assert pace.bandwidth.least <= pace.bandwidth.middle <= pace.bandwidth.most


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Request(cpu="Ryzen 5800X", ram_type="DDR5-6000"), "takes DDR4, not DDR5"),
        (Request(cpu="Ryzen 7950X", ram_type="DDR5-6000 x4"), "has 2 channels, not 4"),
    ],
)
def test_memory_that_a_processor_does_not_take_is_refused(request_: Request, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        ram_pace(request_, None, KNOWLEDGE)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (
            "llama 3.3 70b q4 on a 4090 with 64gb ddr5 6000",
            {"precision": "INT4", "ram": "64gb ddr5 6000", "gpu": "4090", "model": "llama 3.3 70b"},
        ),
        (
            "gpt-oss 120b on 3090 and ryzen 9 7950x with 128gb ddr5",
            {"cpu": "ryzen 9 7950x", "ram": "128gb ddr5", "gpu": "3090", "model": "gpt-oss 120b"},
        ),
        (
            "rtx 3060 12gb 13900k qwen3 30b a3b",
            {"cpu": "13900k", "gpu": "rtx 3060 12gb", "model": "qwen3 30b a3b"},
        ),
        (
            "qwen3 235b on 3090, epyc 7742, 512GB ddr4-3200 8 channel",
            {
                "cpu": "epyc 7742", "ram": "512GB ddr4-3200 8 channel", "gpu": "3090",
                "model": "qwen3 235b",
            },
        ),
        (
            "64gb ddr4 3090 llama 3.3 70b",
            {"ram": "64gb ddr4", "gpu": "3090", "model": "llama 3.3 70b"},
        ),
        (
            "llama 3.1 8b on a ryzen ai max+ 395",
            {"gpu": "ryzen ai max+ 395", "model": "llama 3.1 8b"},
        ),
    ],
)  # fmt: skip
def test_questions_name_ram_and_processor(text: str, settings: dict[str, object]) -> None:
    assert read_sentence(text, KNOWLEDGE).settings == settings


@pytest.mark.parametrize(
    ("backend", "vendor"), [("ROCm", "AMD"), ("CUDA", "NVIDIA"), (None, "NVIDIA")]
)
def test_memory_alone_is_that_of_a_card_of_its_back_end(backend: str | None, vendor: str) -> None:
    found = resolve(Request(gpu="16GB", model="qwen3-8b", backend=backend), KNOWLEDGE)
    assert found.gpu is not None
    assert found.gpu.vendor == vendor


def test_graphics_for_which_the_processor_stands_keep_no_back_end_of_theirs() -> None:
    asked = Request(gpu="RADV RENOIR", model="qwen3-8b", backend="Vulkan")
    assert resolve(asked, KNOWLEDGE).backend == "CPU"
    with pytest.raises(UserError, match="Vulkan does not run on processor"):
        resolve(Request(gpu="cpu", model="qwen3-8b", backend="Vulkan"), KNOWLEDGE)
