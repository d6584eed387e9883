"""Cards as people say them: what is taken, what is said of it, and that it is never another card.

``SPELLINGS`` were collected from public threads on running models (r/LocalLLaMA, issues of
llama.cpp, vLLM and Ollama, 2023 to 2026); ``THREADS`` name the thread each stands in.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.index import gpu_form, gpu_words
from advisor.knowledge.merit_scale import card_names
from advisor.reading import find_cards, find_gpu, requested_cards
from advisor.units import GIB

KNOWLEDGE = load_knowledge()
STRIX = "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)"
SPELLINGS = {
    "A6000 machine (48GB VRAM, 32GB RAM)": "RTX A6000",
    "RTX 3090 rig with 24GB VRAM and 64 GB DDR4": "GeForce RTX 3090",
    "nvidia-geforce-gtx-1650-with-max-q-design": "GeForce GTX 1650 Max-Q",
    "NVIDIA A10G, 24GB nominal": "A10G",
    "AMD Ryzen AI Max+ / Strix Halo system with 128GB unified memory": STRIX,
    "Strix Halo / Radeon 8060S": STRIX,
    "Strix Halo + Strix Halo": f"2x {STRIX}",
    "Radeon 780M / RTX 4060": "",
    "Intel Arc Graphics (iGPU) on Arrow Lake-P (Core Ultra 9 285H)": "Arc 140T Mobile",
    "Core Ultra 7 155H iGPU": "Arc Graphics 128EU Mobile",
    "Core Ultra 9 285H + RTX 4060": "GeForce RTX 4060",
    "RTX 3090 (20GB VRAM, 64GB RAM)": "",
    "GRID A100D-80C": "A100 PCIe 80 GB",
    "NVIDIA A10-24Q": "A10 PCIe",
    "H100XM-80C": "H100 SXM5 80 GB",
    "GRID V100DX-32Q": "Tesla V100 SXM2 32 GB",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "A100 MIG 1g.5gb",
    "H100 MIG 3g.40gb": "H100 MIG 3g.40gb",
    "M2 Utra": "Apple M2 Ultra",
    "RTX 4070 Supre": "GeForce RTX 4070 SUPER",
    "RTX 3070 Moblie": "GeForce RTX 3070 Mobile",
    "R9 390": "Radeon R9 390",
    "Fury X": "Radeon R9 Fury X",
    "Colab free tier": "Tesla T4",
    "n1-standard-8 + T4": "Tesla T4",
    "5090 2x3080 20GB": "3x GeForce RTX 5090 + 2x GeForce RTX 3080 20 GB",
    "ROG Ally X": "Radeon 780M",
    "MSI Claw 8 AI+": "Arc 140V Mobile",
    "MTL 155h 16G DDR5": "Arc Graphics 128EU Mobile",
    "Radeon 8060S 96GB VRAM dedicated from 128GB": STRIX,
    "rtx pro 6000": "RTX PRO 6000 Blackwell",
    "AMD Radeon RX 6600 M": "Radeon RX 6600M",
    "RX 6800M laptop 12GB": "Radeon RX 6800M",
    "Radeon Pro W5700X": "Radeon Pro W5700X",
    "P106-090": "P106-090",
    "Radeon 740M": "Radeon 740M",
    "Arc B390 32GB": "Arc B390 Mobile",
    "4080super 32G": "GeForce RTX 4080 SUPER 32 GB",
    "GB200 NVL4 (4 \u00d7 192 GB)": "4x GB200",
    "B300 288GB": "B300 SXM",
    "Tesla V100-DGXS-32GB": "Tesla V100 SXM2 32 GB",
    "Mac Studio with an M3 Ultra chip and 512GB": "Apple M3 Ultra",
    "gfx942": "Radeon Instinct MI300X",
    "2019 MacBook Pro with Radeon Pro 5500M 8GB": "Radeon Pro 5500M",
    "| 0 NVIDIA GeForce RTX 3090 Off | 00000000:01:00.0 On | N/A |": "GeForce RTX 3090",
    "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)": (
        "GeForce RTX 3090"
    ),
    "Device 0: NVIDIA GeForce RTX 4070, compute capability 8.9, VMM: yes": "GeForce RTX 4070",
    "Chipset Model: Apple M1 Max Type: GPU Memory: 64 GB": "Apple M1 Max",
    "rtx pro 6000 blackwell max-q": "RTX PRO 6000 Blackwell Max-Q",
    "mac studio m3 ultra 512": "Apple M3 Ultra",
    "m3 ultra 512gb": "Apple M3 Ultra",
    "macbook pro m4 max 64gb": "Apple M4 Max (40-core GPU)",
    "macbook air m4 16gb": "Apple M4",
    "mac mini m4 pro 64gb": "Apple M4 Pro",
    "gmktec evo-x2": STRIX,
    "dgx spark": "DGX Spark (GB10)",
    "gb10": "DGX Spark (GB10)",
    "nvidia spark": "DGX Spark (GB10)",
    "mi355x": "Radeon Instinct MI355X",
    "mi300x": "Radeon Instinct MI300X",
    "arc b60": "Arc Pro B60",
    "arc a770": "Arc A770",
    "dual 3090": "2x GeForce RTX 3090",
    "3090x2": "2x GeForce RTX 3090",
    "a100 40g": "A100 SXM4 40 GB",
    "a100": "A100 SXM4 80 GB",
    "h100": "H100 SXM5 80 GB",
    "h100 80gb": "H100 SXM5 80 GB",
    "b200": "B200 SXM",
    "b300": "B300 SXM",
    "gb200": "GB200",
    "gh200": "GH200 96 GB",
    "gh200 144gb": "GH200 144 GB",
    "NVIDIA GH200 480GB": "GH200 96 GB",
    "Tesla T10 16GB": "Tesla T10",
    "CMP 170HX 10GB": "CMP 170HX 10 GB",
    "MB m1 pro 32GB": "Apple M1 Pro",
    "Macbook Pro M1 32GB": "Apple M1 Pro",
    "MacBook Pro 16 2021 32GB": "Apple M1 Pro",
    "MacBook Air 2020 16GB": "Apple M1",
    "RTX4080S": "GeForce RTX 4080 SUPER",
    "5060ti16gb": "GeForce RTX 5060 Ti 16 GB",
    "Mac Studio M1 Max64GB": "Apple M1 Max",
    "RTX PRO6000": "RTX PRO 6000 Blackwell",
    "Arc770": "Arc A770",
    "RTX 4070 Ti 16GB": "GeForce RTX 4070 Ti SUPER",
    "RTX 2060 8GB": "GeForce RTX 2060 SUPER",
    "5070 16gb": "GeForce RTX 5070 Ti",
    "RX 6700 12GB": "Radeon RX 6700 XT",
    "Strix Halo 395+": STRIX,
    "two 3090 with nvlink": "2x GeForce RTX 3090",
    "no gpu, 64GB DDR4": "processor",
    "Apple M4 Max (Mac16,9), 64GB unified memory": "Apple M4 Max (40-core GPU)",
    "M4 Max 16-core CPU 40-core GPU 128GB": "Apple M4 Max (40-core GPU)",
    "Apple M3 Ultra, 28 cores (20P + 8E), 60 GPU cores, 96 GB unified memory": (
        "Apple M3 Ultra (60-core GPU)"
    ),
    "Minisforum MS-S1 Max 128 GB LPDDR5x-8000": STRIX,
    "AMD Ryzen AI 9 HX 470 with 96Gb RAM": "Radeon 890M",
    "Ryzen 7 AI 350 (Radeon 860M)": "Radeon 860M",
    "Ryzen 7 8845HS 32GB": "Radeon 780M",
    "RTX 4090 24G\u2716\ufe0f1": "GeForce RTX 4090",
    "RTX PRO 6000 Blackwell Workstation (sm_120, 96 GiB)": "RTX PRO 6000 Blackwell",
    "AMD Instinct MI300X (gfx942:sramecc+:xnack-)": "Radeon Instinct MI300X",
    "Thor T4000": "Jetson T4000",
    "Mac mini Mac14,12, Apple M2 Pro, 32 GB": "Apple M2 Pro",
    "Apple M2 Ultra, 24 cores (16P + 8E), 192 GB unified memory": "Apple M2 Ultra",
    "Apple M3 Ultra, 256 GB RAM, 28 CPU cores, 60 GPU cores": "Apple M3 Ultra (60-core GPU)",
    "M4 Pro 48.0 GB": "Apple M4 Pro",
    "24GB VRAM": "GeForce RTX 3090",
    "M2 Ultra with 192GB of memory and a 76-core GPU": "Apple M2 Ultra",
    "M3 Pro only has 36GB RAM": "Apple M3 Pro",
    "just a 3070": "GeForce RTX 3070",
    "RTX 3080 20GB modded": "GeForce RTX 3080 20 GB",
    "ml.p4de.24xlarge": "8x A100 SXM4 80 GB",
    "ml.g6.12xlarge node (4x L4 GPUs)": "4x L4",
    "p4d.24xlarge (8x A100 40GB)": "8x A100 SXM4 40 GB",
    "Battlemage 570": "Arc B570",
    "Alchemist 750": "Arc A750",
    "Radeon RX 570 Series (RADV POLARIS10)": "Radeon RX 570",
    "AMD Radeon Graphics (RADV GFX1151)": STRIX,
    "gfx1201": "Radeon RX 9070 XT",
    "Radeon VII (gfx906)": "Radeon VII",
    "Radeon 7600XT w/ 16GB": "Radeon RX 7600 XT",
    "l40s": "L40S",
    "a10g": "A10G",
    "t4": "Tesla T4",
    "v100 32gb": "Tesla V100 SXM2 32 GB",
    "jetson orin nano 8gb": "Jetson Orin Nano 8 GB",
    "3060 12gb": "GeForce RTX 3060 12 GB",
    "4060 ti 16gb": "GeForce RTX 4060 Ti 16 GB",
    "rtx 4000 ada": "RTX 4000 Ada Generation",
    "9070xt": "Radeon RX 9070 XT",
    "radeon vii": "Radeon VII",
    "4090d": "GeForce RTX 4090 D",
    "m1 max 64gb": "Apple M1 Max",
    "m2 ultra 192": "Apple M2 Ultra",
    "m5 max 128gb": "Apple M5 Max",
    "rtx 5080 super": "",  # announced by rumour, never sold
    "h800": "H800 SXM5",
    "a800": "A800 SXM4 80 GB",
}
THREADS = {
    "nvidia v100 16GB": "Tesla V100 SXM2 16 GB",
    "Quadro A4000": "RTX A4000",
    "RTX 3060 with 12 Gb": "GeForce RTX 3060 12 GB",
    "MacBook pro m1 pro 32Go": "Apple M1 Pro",
    "RTX 3070 (8GB VRAM)": "GeForce RTX 3070",
    "A100-80GB": "A100 SXM4 80 GB",
    "rtx 4050": "GeForce RTX 4050 Mobile",
    "RTX 2080 Ti 22GB": "GeForce RTX 2080 Ti 22 GB",
    "H20": "H20",
    "AMD Radeon Pro 5500M 4GB": "Radeon Pro 5500M",
    "rtx 4060 ti (16GB)": "GeForce RTX 4060 Ti 16 GB",
    "H800": "H800 SXM5",
    "GTX4060ti (16G)": "GeForce RTX 4060 Ti 16 GB",
    "RTX 1080 Ti": "GeForce GTX 1080 Ti",
    "NVIDIA L40s (48GB VRAM) x 2": "2x L40S",
    "AWS g6.xlarge (NVidia L4 GPU with 24gb vRAM)": "L4",
    "AMD Radeon AI PRO R9700 (gfx1201/RDNA4), 32GB VRAM": "Radeon AI PRO R9700",
    "AMD Ryzen 7 Pro 7840U with Radeon 780M": "Radeon 780M",
    "Ryzen 9 7950X, RTX 4090": "GeForce RTX 4090",
    "i9-13900K + 2x RTX 4090": "2x GeForce RTX 4090",
    "RTX 3090 + Ryzen 7950X + 64GB": "GeForce RTX 3090",
    "RTX 4090 (PCIe 4.0 x16)": "GeForce RTX 4090",
    "AIMAX395": STRIX,
    "DG2 [Arc A380] (rev 05)": "Arc A380",
    "NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)": "GeForce RTX 3090",
    "i9-14900HX/RTX 4090 Laptop": "GeForce RTX 4090 Mobile",
    "64GB M1 Mac": "Apple M1 Max",
    "32GB M2 Mac": "Apple M2 Pro",
    "780M": "Radeon 780M",
    "Beelink GTR9 Pro": STRIX,
    "HP Z2 Mini G1a": STRIX,
    "Dell Pro Max GB10": "DGX Spark (GB10)",
}


def read(text: str) -> Cards:
    return find_cards(KNOWLEDGE, text)


def named(text: str) -> str:
    try:
        cards = read(text)
    except UserError:
        return ""
    return f"{cards.count}x {cards.gpu.name}" if cards.count > 1 else cards.gpu.name


@pytest.mark.parametrize("text", [*SPELLINGS, *THREADS])
def test_spellings_of_public_threads_are_understood(text: str) -> None:
    assert named(text) == (SPELLINGS | THREADS)[text]


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("4x4090", 4, "GeForce RTX 4090"),
        ("two 4090s", 2, "GeForce RTX 4090"),
        ("8 x H100 80GB", 8, "H100 SXM5 80 GB"),
        ("8xH100", 8, "H100 SXM5 80 GB"),
        ("8*A100 40GB", 8, "A100 SXM4 40 GB"),
        ("RTX 3090 (2x24GB)", 2, "GeForce RTX 3090"),
        ("RTX 3090 x 4", 4, "GeForce RTX 3090"),
        ("a pair of 3090s", 2, "GeForce RTX 3090"),
        ("quad MI50 32GB", 4, "Radeon Instinct MI50 32 GB"),
        ("4 GPUs RTX A6000", 4, "RTX A6000"),
        ("2x L40S", 2, "L40S"),
        ("4 * Radeon RX 460", 4, "Radeon RX 460"),
        ("P40 (2 cards)", 2, "Tesla P40"),
        ("RTX 3090 (x2)", 2, "GeForce RTX 3090"),
        ("GTX 1650 *2", 2, "GeForce GTX 1650"),
        ("RTX 3090 x 2 GPUs", 2, "GeForce RTX 3090"),
        ("2x 4080s", 2, "GeForce RTX 4080"),
        ("4080s", 1, "GeForce RTX 4080 SUPER"),
        ("g5.12xlarge", 4, "A10G"),
        ("Standard_NC48ads_A100_v4", 2, "A100 PCIe 80 GB"),
        ("g6e.12xlarge", 4, "L40S"),
        ("3090 x 4", 4, "GeForce RTX 3090"),
        ("kaggle 2xT4", 2, "Tesla T4"),
        ("4 x 3090 (4x24GB)", 4, "GeForce RTX 3090"),
        ("2xA6000ada (2x48Gb vram)", 2, "RTX 6000 Ada Generation"),
        ("\u53cc4090", 2, "GeForce RTX 4090"),
        ("\u53cc\u5361 3090", 2, "GeForce RTX 3090"),
        ("\u5355\u53614090", 1, "GeForce RTX 4090"),
        ("4\u5f20rtx pro 6000", 4, "RTX PRO 6000 Blackwell"),
        ("8\u5361A100", 8, "A100 SXM4 80 GB"),
        ("RTX4090 24Gx2\u5f20", 2, "GeForce RTX 4090"),
        ("3* 4090GPU", 3, "GeForce RTX 4090"),
        ("A100 80G 8\u5361", 8, "A100 SXM4 80 GB"),
        ("4\u53612080ti\uff0c\u6bcf\u5f2022g", 4, "GeForce RTX 2080 Ti 22 GB"),
        ("v100 gpu * 4 \u603b64G", 4, "Tesla V100 SXM2 16 GB"),
        ("V100*4 64GB total", 4, "Tesla V100 SXM2 16 GB"),
        ("Strix Halo \u2014 Radeon 8060S iGPU", 1, "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)"),
        ("Jetson AGX Orin platform with 60Go of VRAM", 1, "Jetson AGX Orin 64 GB"),
        ("Jetson Orin 16GB", 1, "Jetson Orin NX 16 GB"),
    ],
)
def test_counts_are_read_in_any_form(text: str, count: int, name: str) -> None:
    cards = read(text)
    assert (cards.count, cards.gpu.name) == (count, name)


@pytest.mark.parametrize("text", ["\u5f203090\u5e8a", "\u6628\u65e53090", "3090\u53f0\u5f0f"])
def test_a_card_beside_a_word_of_another_script_is_no_card(text: str) -> None:
    assert named(text) == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("3x24 GB", "3x GeForce RTX 3090"),
        ("two 16GB cards", "2x GeForce RTX 4060 Ti 16 GB"),
        ("4 x 48GB", "4x RTX A6000"),
    ],
)
def test_memory_alone_may_be_counted_where_it_is_all_that_is_said(text: str, name: str) -> None:
    found = requested_cards(KNOWLEDGE, text)
    assert f"{found.count}x {found.gpu.name}" == name
    assert "names no card" in found.read_as[0]
    with pytest.raises(UserError):
        read(text)


@pytest.mark.parametrize("text", ["cpu", "none (EPYC 9V45)", "no gpu", "CPU-only"])
def test_no_card_is_the_processor_alone(text: str) -> None:
    assert (read(text).gpu.name, read(text).count) == ("processor", 1)


@pytest.mark.parametrize(
    ("text", "name", "cores"),
    [
        ("M1 Max 24 core", "Apple M1 Max", 32),
        ("32GB M1 Max (24 GPU cores)", "Apple M1 Max", 32),
        ("MacBook Pro M3 Pro 11-core 14 core GPU 18GB", "Apple M3 Pro", 18),
        ("M1 Max 32 core", "Apple M1 Max", 0),
    ],
)
def test_a_chip_with_cores_switched_off_is_sized_as_the_whole_one(
    text: str, name: str, cores: int
) -> None:
    cards, said = read(text), f"sized as the one with {cores} GPU cores"
    assert cards.gpu.name == name
    assert (said in " ".join(cards.read_as)) == (cores > 0)


def test_gigabytes_are_read_in_slang() -> None:
    assert find_gpu(KNOWLEDGE, "RTX 4060 8Giga").name == "GeForce RTX 4060"


def test_what_was_taken_for_what_was_typed_is_said() -> None:
    assert read("GTX 3090").read_as == ("'GTX 3090' is read as GeForce RTX 3090, which is no GTX.",)
    assert read("L40s (48GB VRAM) x 2").read_as == ("'L40s (48GB VRAM) x 2' is read as 2x L40S.",)
    assert "sold with 32, 64 or 96 GB too" in read("780M").read_as[0]


@pytest.mark.parametrize(
    ("text", "name", "right"),
    [
        ("GMKtek Evo-X2", STRIX, "gmktec for gmktek"),
        ("Nvida RTX 3090", "GeForce RTX 3090", "nvidia for nvida"),
        ("SAPHIRE NITRO RX480 8 GB", "Radeon RX 480", "sapphire for saphire"),
        ("GeForse RTX 4070", "GeForce RTX 4070", "geforce for geforse"),
        ("MacBok Pro M3 Max 64GB", "Apple M3 Max (40-core GPU)", "macbook for macbok"),
    ],
)
def test_a_slip_in_the_name_of_a_maker_or_machine_is_put_right_and_told(
    text: str, name: str, right: str
) -> None:
    cards = read(text)
    assert cards.gpu.name == name
    assert right in cards.read_as[0]


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("3 x RTX 3090 (72GB vram)", "GeForce RTX 3090", 3),
        ("2x 3090 48GB", "GeForce RTX 3090", 2),
        ("4x RTX 4090 96GB total", "GeForce RTX 4090", 4),
        ("2x 4090 48GB", "GeForce RTX 4090 48 GB", 2),
    ],
)
def test_memory_may_be_that_of_all_cards_where_one_has_no_such(
    text: str, name: str, count: int
) -> None:
    cards = read(text)
    assert (cards.gpu.name, cards.count) == (name, count)


def test_memory_that_is_neither_of_one_nor_of_all_is_refused() -> None:
    for text in ("2x 3090 40GB", "3x 3090 48GB", "2x 3090 0GB"):
        with pytest.raises(UserError, match=r"no such card|unknown|memory size"):
            read(text)


def test_a_slip_is_never_put_right_to_what_no_card_is_called() -> None:
    for text in ("RTX Titanic", "RTX 6000 Balckwell", "Intel Ark B580", "RTX 4090 Suber"):
        with pytest.raises(UserError):
            read(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("amd instinct mi 50", "Radeon Instinct MI50"),
        ("L 40 S", "L40S"),
        ("TeslaP40", "Tesla P40"),
        ("980Ti", "GeForce GTX 980 Ti"),
        ("gtx_1060_6gb", "GeForce GTX 1060 6 GB"),
        ("AMD's AI Pro R9700", "Radeon AI PRO R9700"),
        ("T4 15GB", "Tesla T4"),
        ("L40S (45 GB)", "L40S"),
        (
            "RTX PRO 6000 Blackwell Server (97 GB VRAM, capability sm_120)",
            "RTX PRO 6000 Blackwell Server",
        ),
        ("RTX PRO 6000 Blackwell (96 GB, ECC + more power)", "RTX PRO 6000 Blackwell"),
        ("RTX 3090 power limited to 250W", "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 3090/PCIe/SSE2", "GeForce RTX 3090"),
        ("M1 Max 24-core GPU 32GB", "Apple M1 Max"),
        ("M2 Air 24GB", "Apple M2"),
        ("RTX 3090 with 64GB system RAM", "GeForce RTX 3090"),
    ],
)
def test_a_name_is_cut_where_the_words_of_cards_are(text: str, name: str) -> None:
    cards = read(text)
    assert (cards.count, cards.gpu.name) == (1, name)


@pytest.mark.parametrize(
    ("text", "gigabytes"),
    [("M4 Pro and 48GB of RAM", 48), ("M4 Max, 128GB", 128), ("RTX 4090, 64GB RAM", 24)],
)
def test_memory_behind_a_machine_that_shares_it_is_its_own(text: str, gigabytes: int) -> None:
    assert find_cards(KNOWLEDGE, text).gpu.vram_bytes == gigabytes * GIB


@pytest.mark.parametrize(
    "text",
    [
        "VGA compatible controller: AMD [AMD/ATI] Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]",
        "MacBook Pro 2015",
    ],
)
def test_what_names_several_cards_or_none_is_not_guessed(text: str) -> None:
    with pytest.raises(UserError, match=r"one of several cards|processor of Intel"):
        find_cards(KNOWLEDGE, text)


@pytest.mark.parametrize(
    "text", ["A100 (MIG 5g.10gb)", "half a 3090", "RTX 4090 17GB", "Xavier NX 12GB"]
)
def test_a_part_of_a_card_is_never_the_card(text: str) -> None:
    with pytest.raises(UserError):
        read(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpu_8x_a100_80gb_sxm4", "8x A100 SXM4 80 GB"),
        ("GEX44", "1x RTX 4000 SFF Ada Generation"),
        ("DGX H100", "8x H100 SXM5 80 GB"),
        ("Tesla M10 32 GB", "4x Tesla M10"),
    ],
)
def test_a_system_has_as_many_cards_as_it_is_sold_with(text: str, name: str) -> None:
    cards = read(text)
    assert f"{cards.count}x {cards.gpu.name}" == name


def test_a_list_may_have_words_between_cards() -> None:
    assert [gpu.name for gpu in read("3090 and 3060 12gb").each] == [
        "GeForce RTX 3090",
        "GeForce RTX 3060 12 GB",
    ]


@pytest.mark.parametrize(
    ("text", "name", "gib"),
    [
        ("MacBook Pro 16 M3 Max 64GB", "Apple M3 Max (40-core GPU)", 64),
        ("M3 Max", "Apple M3 Max (30-core GPU)", 36),
        ("mac mini m4", "Apple M4", 16),
        ("Mac mini", "Apple M4", 16),
        ("Mac mini 16GB", "Apple M4", 16),
        ("mac mini 48 gb", "Apple M4 Pro", 48),
        ("Mac mini 8GB M1", "Apple M1", 8),
        ("M1 32G", "Apple M1 Pro", 32),
        ("RTX PRO 3000 Blackwell Laptop 12GB", "RTX PRO 3000 Blackwell Mobile", 12),
        ("AMD Ryzen AI 9 HX370 32GB", "Radeon 890M", 32),
        ("Arc 770", "Arc A770", 16),
        ("M1 128GB", "Apple M1 Ultra", 128),
        ("m2 64gb", "Apple M2 Max", 64),
        ("RTX 5060 Ti", "GeForce RTX 5060 Ti 16 GB", 16),
        ("5060 Ti 8GB", "GeForce RTX 5060 Ti 8 GB", 8),
        ("9060xt", "Radeon RX 9060 XT 16 GB", 16),
        ("NVIDIA DGX Spark (GB10, sm_121, 128 GB UMA)", "DGX Spark (GB10)", 128),
        ("iMac 24GB", "Apple M4", 24),
        ("NVIDIA GeForce RTX 4090, 24564MiB", "GeForce RTX 4090", 24),
        ("ASUS TUF Gaming RTX 4070 Ti Super OC 16GB", "GeForce RTX 4070 Ti SUPER", 16),
        ("MSI GeForce RTX 3060 Ventus 2X 12G", "GeForce RTX 3060 12 GB", 12),
        ("Sapphire Nitro+ RX 7900 XTX 24 Go", "Radeon RX 7900 XTX", 24),
        ("Framework Desktop 128GB", STRIX, 128),
        ("Jetson Thor", "Jetson T5000", 128),
        ("asus ascent gx10", "DGX Spark (GB10)", 128),
        ("radeon 780m 32gb", "Radeon 780M", 32),
        ("RTX 4O9O", "GeForce RTX 4090", 24),
        ("H100 PCIe", "H100 PCIe 80 GB", 80),
        ("RTX 4090M", "GeForce RTX 4090 Mobile", 16),
        ("2080Ti which has 22GB memory", "GeForce RTX 2080 Ti 22 GB", 22),
        ("RTX 3080 20 GB", "GeForce RTX 3080 20 GB", 20),
        ("3080 laptop 16gb", "GeForce RTX 3080 Mobile 16 GB", 16),
        ("NVIDIA Jetson AGX Thor devkit (T5000)", "Jetson T5000", 128),
        ("AMD Mi308", "Radeon Instinct MI308X", 192),
        ("W7800 48GB", "Radeon PRO W7800 48 GB", 48),
        ("Google Colab (Free Tier T4 GPU)", "Tesla T4", 16),
        ("AMD Ryzen AI 9 HX PRO 375 w/ Radeon 890M 64GB", "Radeon 890M", 64),
        ("AMD Phoenix APU (Radeon 780M iGPU 32GB)", "Radeon 780M", 32),
        ("NVIDIA GeForce GTX 750 Ti", "GeForce GTX 750 Ti", 2),
    ],
)
def test_memory_makers_and_machines_are_read(text: str, name: str, gib: int) -> None:
    cards = read(text)
    assert (cards.gpu.name, cards.gpu.vram_bytes) == (name, gib * GIB)


@pytest.mark.parametrize(
    "text",
    [
        "RTX 4090 Ti", "RTX 5080 Super", "RX 4090", "H200 PCIe", "V100 SXM5",
        "M40 16GB", "RTX 3070 20GB", "mac studio 40GB", "MacBook Air M4 Max",
        "Mac mini M3", "Mac mini 8GB",
    ],
)  # fmt: skip
def test_a_word_that_no_card_explains_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        read(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("RTX 4090 Ti", "GeForce RTX 4090"),
        ("RTX 4095", "GeForce RTX 4090"),
        ("RTX 5080 Super", "GeForce RTX 5080"),
        ("H200 PCIe", "H200 NVL"),
        ("RX 7900 XTXX", "Radeon RX 7900 XTX"),
        ("MI 300", "Radeon Instinct MI300X"),
        ("M4 Ultra", "Apple M4"),
        ("GTX 3060 Ti Super", "GeForce RTX 3060 Ti"),
        ("RTX A6001", "RTX A6000"),
    ],
)
def test_the_nearest_card_that_people_have_is_named(text: str, near: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)
    offered = re.findall(r"'([^']+)'", caught.value.hint)
    assert near in offered
    assert all(KNOWLEDGE.gpus[name].not_for_sale is None for name in offered)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("RTX 409", "GeForce RTX 4090"),
        ("RTX 4091", "GeForce RTX 4090"),
        ("RTX5O90 Ti", "GeForce RTX 5090"),
        ("RTX 6090", "GeForce RTX 5090"),
        ("RTX 3900", "GeForce RTX 3090"),
        ("RX 9700 XT", "Radeon RX 9070 XT"),
        ("H1000", "H100 SXM5 80 GB"),
        ("A101", "A100 SXM4 80 GB"),
        ("MI301X", "Radeon Instinct MI300X"),
        ("MI 300", "Radeon Instinct MI300X"),
        ("L41S", "L40S"),
        ("B100", "B200 SXM"),
        ("Arc A771", "Arc A770"),
    ],
)
def test_a_slip_in_a_number_names_first_the_card_that_was_meant(text: str, first: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)
    offered = re.findall(r"'([^']+)'", caught.value.hint)
    assert offered[0] == first
    assert "GeForce RTX 4010" not in offered


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("\u0410100 80GB", "A100 SXM4 80 GB", 1),
        ("\u04224", "Tesla T4", 1),
        ("\u0434\u0432\u0435 3090", "GeForce RTX 3090", 2),
        (
            "\u0420\u0422\u0425 3060 12 \u0433\u0431",
            "GeForce RTX 3060 12 GB",
            1,
        ),
        ("RTX 4090 24 Go de VRAM", "GeForce RTX 4090", 1),
        ("dos RTX 3090", "GeForce RTX 3090", 2),
        ("RTX 3060 mit 12 GB VRAM", "GeForce RTX 3060 12 GB", 1),
    ],
)
def test_cards_are_read_in_other_languages_and_letters(text: str, name: str, count: int) -> None:
    cards = read(text)
    assert (cards.gpu.name, cards.count) == (name, count)
    assert not cards.read_as or f"'{text}'" in cards.read_as[0]


@pytest.mark.parametrize(
    ("text", "name", "gib", "said"),
    [
        ("H100:64GB", "H100 SXM5 64 GB", 64, "made for one supercomputer. It could also be H100"),
        ("RTX 4080 12GB", "GeForce RTX 4080 Mobile", 12, "the card for desktops has 16 GB"),
        ("Jetson Orin Nano", "Jetson Orin Nano 8 GB", 8, "the usual one"),
        ("Jetson Orin", "Jetson AGX Orin 64 GB", 64, "the usual one"),
        ("M40", "Tesla M40 24 GB", 24, "the usual one. It could also be Tesla M40 12 GB"),
        ("Ryzen AI Max 385", "Radeon 8050S (Ryzen AI Max, Strix Halo)", 32, "with 32 GB; it is"),
        ("Ryzen AI Max+ 388", "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)", 32, "sold with 64"),
        (
            "Framework PC",
            "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)",
            128,
            "also be Radeon 8050S",
        ),
        ("AMD Ryzen AI 9 HX PRO 375", "Radeon 890M", 32, "with 32 GB; it is sold with 64"),
        ("MacBook Pro M5", "Apple M5", 16, "it is sold with 24 or 32 GB too"),
        ("XFX Merc 7900 XT 20GB", "Radeon RX 7900 XT", 20, "read as Radeon RX 7900 XT."),
        ("RX 580 4GB", "Radeon RX 580 4 GB", 4, ""),
        ("RX 5500 XT 8GB", "Radeon RX 5500 XT", 8, ""),
    ],
)
def test_the_board_that_people_have_is_taken_and_said(
    text: str, name: str, gib: int, said: str
) -> None:
    cards = read(text)
    assert (cards.gpu.name, cards.gpu.vram_bytes) == (name, gib * GIB)
    assert said in " ".join(cards.read_as)


@pytest.mark.parametrize(("text", "count"), [("DGX-A800-80G", 8), ("Arc B60 48GB", 2)])
def test_boards_and_machines_of_several_chips_are_counted(text: str, count: int) -> None:
    assert read(text).count == count


def test_a_size_that_no_board_has_names_those_that_are_sold() -> None:
    with pytest.raises(UserError, match="no such card has 48 GB") as caught:
        read("H100:48GB")
    assert "64 GB" not in str(caught.value)


def test_a_word_in_letters_that_no_card_has_is_not_passed_over() -> None:
    with pytest.raises(UserError):
        read("\u03b1\u03b2\u03b3 3090")


def test_what_was_taken_and_what_else_it_could_be_is_said() -> None:
    (line,) = read("h100 80gb").read_as
    assert line == (
        "'h100 80gb' is read as H100 SXM5 80 GB, the usual one. It could also be H100 PCIe 80 GB."
    )
    (line,) = read("RTX 6000").read_as
    assert "Quadro RTX 6000, the one of 2018" in line
    assert "RTX 6000 Ada Generation (48 GB)" in line
    assert not any("made for" in line for line in read("h100").read_as)


@pytest.mark.parametrize(
    "text", ["RTX 4090", "2x RTX 3090", "M4 Pro:48GB", "GeForce RTX 3060 12 GB"]
)
def test_of_a_known_name_nothing_is_said(text: str) -> None:
    assert read(text).read_as == ()


def test_words_that_mean_nothing_tell_no_cards_apart() -> None:
    noise = {
        words for phrase in card_names(KNOWLEDGE).words if len(words := gpu_words(phrase)) == 1
    }
    for card in KNOWLEDGE.gpus.values():
        for name in (card.name, *card.aliases):
            core = gpu_form(name, card.vendor, card.name).core
            assert not {(word,) for word in core} & noise, name


CHANGES = (
    str.upper,
    str.lower,
    lambda name: name.replace(" ", "-"),
    lambda name: name.replace(" ", "_"),
    lambda name: f"ASUS {name} OC Edition",
    lambda name: f"{name} graphics card",
    lambda name: " ".join(random.Random(name).sample(name.split(), len(name.split()))),
)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_names_mean_the_same_card_or_none(change: object) -> None:
    """A board of the same figures is the same card; a refusal is allowed."""
    assert callable(change)
    for card in list(KNOWLEDGE.gpus.values())[::5]:
        asked = change(card.name)
        try:
            found = read(asked)
        except UserError:
            continue
        same = {found.gpu.name, *(other.name for other in found.others)}
        assert card.name in same, (asked, found.gpu.name)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="RTX4090HM13 xs-:.+,&()\u0430\u00e9\x00gGbB2Ti", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for find in (find_cards, find_gpu):
        with suppress(UserError):
            assert find(KNOWLEDGE, text)


def test_a_slip_in_a_used_machines_chip_names_that_chip_first() -> None:
    with pytest.raises(UserError) as told:
        find_cards(KNOWLEDGE, "M2 Lutar")
    assert "Did you mean 'Apple M2 Ultra'" in str(told.value)


@pytest.mark.parametrize(
    ("text", "gib", "said"),
    [
        ("GRID A100-20C", 20, "with 20 GB of its memory"),
        ("A10-12Q", 12, "with 12 GB of its memory"),
        ("Mac Studio 192GB", 192, "M2 Ultra"),
    ],
)
def test_a_virtual_card_has_its_part_of_the_memory(text: str, gib: int, said: str) -> None:
    cards = read(text)
    assert (cards.gpu.vram_bytes, said in " ".join(cards.read_as)) == (gib * GIB, True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RTX 4090(non D variant)", "GeForce RTX 4090"),
        ("RTX 4070 (non-super)", "GeForce RTX 4070"),
        ("3080 not Ti", "GeForce RTX 3080"),
        ("RX 7900 XT (not XTX)", "Radeon RX 7900 XT"),
        ("24GB rocm", "Radeon RX 7900 XTX"),
        ("GPU (24GB)", "GeForce RTX 3090"),
        ("amd 16gb", "Radeon RX 7800 XT"),
        ("V100 + 32GB of VRAM", "Tesla V100 SXM2 32 GB"),
        ("AMD Instinct MI300 X", "Radeon Instinct MI300X"),
        ("Intel Arc A310 ECO", "Arc A310"),
        (
            "Framework Desktop: AMD Ryzen AI Max+ 395, 128GB",
            "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)",
        ),
    ],
)
def test_what_a_card_is_not_and_what_stands_around_it(text: str, name: str) -> None:
    assert read(text).gpu.name == name


@pytest.mark.parametrize(
    ("text", "count", "counted"),
    [
        ("H100\u7684\u4e24\u5f20\u663e\u5361\uff0c\u5171160G", 2, True),
        ("24G\u663e\u5b58\u7684RTX 3090", 1, False),
        ("NVIDIA A800 80GB PCIe, 2", 2, True),
        ("2x 3090 (x4x4)", 2, True),
        ("2x spark cluster", 2, True),
    ],
)
def test_a_count_is_told_where_one_stands(text: str, count: int, *, counted: bool) -> None:
    cards = read(text)
    assert (cards.count, cards.counted) == (count, counted)


@pytest.mark.parametrize(
    ("text", "gib"),
    [("RADV RENOIR", None), ("intel iris-xe-graphics", None), ("Vega 8 iGPU 32GB", 32)],
)
def test_graphics_without_figures_are_the_processor_that_reads_their_memory(
    text: str, gib: int | None
) -> None:
    cards = requested_cards(KNOWLEDGE, text)
    assert (cards.gpu.name, cards.gpu.vram_bytes) == ("processor", gib and gib * GIB)
    assert "has no figures here" in " ".join(cards.read_as)


@pytest.mark.parametrize("text", ["RTX 3060 + Iris Xe", "RTX 3060 with Vega 8", "MLU590"])
def test_a_card_beside_graphics_is_not_dropped_for_the_processor(text: str) -> None:
    with pytest.raises(UserError, match="is not sized"):
        requested_cards(KNOWLEDGE, text)


@pytest.mark.parametrize(
    ("text", "boards"),
    [
        ("Arc", ("Arc A770", "Arc Pro B50")),
        ("Intel Arc", ("Arc A770",)),
        ("Jetson", ("Jetson AGX Orin 64 GB", "Jetson Orin Nano 8 GB")),
        ("Instinct", ("Radeon Instinct MI300X",)),
    ],
)
def test_a_series_alone_is_asked_back_with_its_boards(text: str, boards: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"names \d+ cards") as refused:
        read(text)
    assert all(f"'{board}'" in refused.value.hint for board in boards)


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("BM.GPU.A10.4", "A10 PCIe", 4),
        ("vm.gpu.a10.1", "A10 PCIe", 1),
        ("HF Space A10G small", "A10G", 1),
        ("a10g-largex4", "A10G", 4),
        ("Mac Air M1 (16GB)", "Apple M1", 1),
        ("SM121", "DGX Spark (GB10)", 1),
        ("RADV GFX1103_R1", "Radeon 780M", 1),
        ("gfx1035", "Radeon 680M", 1),
    ],
)
def test_rented_machines_and_chips_by_what_they_are_called(
    text: str, name: str, count: int
) -> None:
    found = read(text)
    assert (found.gpu.name, found.count) == (name, count)
