"""``--gpu local``: what the vendors' tools print becomes the name of a known card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.knowledge.cards import Run, local_gpu
from advisor.reading.cards import find_gpu

APPLE = {"machdep.cpu.brand_string": "Apple M4 Pro\n", "hw.memsize": f"{48 * 2**30}\n"}


def printing(answers: Mapping[str, str]) -> Run:
    def run(command: Sequence[str]) -> str:
        return next((text for key, text in answers.items() if key in command), "")

    return run


@pytest.mark.parametrize(
    ("answers", "system", "card", "gib"),
    [
        ({"nvidia-smi": "NVIDIA GeForce RTX 4090, 24564\n"}, "linux", "GeForce RTX 4090", 24),
        ({"nvidia-smi": "NVIDIA GeForce RTX 3060, 12288\n"}, "linux", "GeForce RTX 3060 12 GB", 12),
        (
            {"nvidia-smi": "NVIDIA H100 80GB HBM3, 81559\n" * 2},
            "linux",
            None,
            80,
        ),
        (APPLE, "darwin", "Apple M4 Pro", 48),
    ],
)
def test_known_cards(answers: Mapping[str, str], system: str, card: str | None, gib: int) -> None:
    text = local_gpu(printing(answers), system)
    assert text.endswith(f":{gib}GB")
    if card:
        found = find_gpu(load_knowledge(), text)
        assert found.name == card
        assert found.vram_bytes == gib * 2**30


def test_amd_tools_name_the_card() -> None:
    printed = "device,Card Series,VRAM Total Memory (B)\ncard0,Radeon RX 7900 XTX,25753026560\n"
    assert local_gpu(printing({"rocm-smi": printed}), "linux") == "Radeon RX 7900 XTX"


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_no_card_is_one_clear_sentence(system: str) -> None:
    with pytest.raises(RequestError, match="no GPU was found"):
        local_gpu(printing({}), system)
