from __future__ import annotations

import pytest

from advisor.estimator.calibration.fits import Fitted, Material, fit_all, material_of
from advisor.knowledge import load_knowledge


@pytest.fixture(scope="session")
def material() -> Material:
    return material_of(load_knowledge())


@pytest.fixture(scope="session")
def fitted(material: Material) -> Fitted:
    return fit_all(material)
