"""Programs that are built on another are sized as that, and what differs is said."""

from __future__ import annotations

import pytest

from tests.commands.test_shown import doc


@pytest.mark.parametrize("name", ["koboldcpp", "KoboldCpp", "ik_llama.cpp", "ik-llama.cpp"])
def test_a_variant_is_sized_as_what_it_is_built_on(name: str) -> None:
    asked = {"gpu": "RTX 3060 12GB", "model": "llama-3-8b", "precision": "Q4_K_M"}
    base = doc(**asked, framework="llama.cpp")
    found = doc(**asked, framework=name)
    assert found.memory == base.memory
    said = [line for line in found.warnings if "is built on llama.cpp" in line]
    assert len(said) == 1
    assert not [line for line in base.warnings if "is built on" in line]
