"""Images of a prompt: the tokens that they take, and what the tower that reads them computes in.

Tokens follow from the model's own patch and merge sizes where its config states them, else from the
note on image tokens in ``knowledge/models``. The tower's tensors are sized as those of a layer are
(``advisor.runtimes.base``): four hidden states and three wide tensors for each patch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.units import UnitError, parse_whole

if TYPE_CHECKING:
    from advisor.models.stored_tensors import Model
    from advisor.models.vision_towers import Tower
    from advisor.scenario import Scenario
    from advisor.scenario.settings import Stated

_COUNT: Final = re.compile(r"\b(\d{2,6})\b")
_MOST_TOKENS: Final = 100_000
_USUAL_SIDE: Final = 1024
"""Pixels of an image whose size is not stated, where its tokens follow from it: a policy."""
_MOST_SIDE: Final = 65_536
_LINES: Final = {"720p": (1280, 720), "1080p": (1920, 1080), "4k": (3840, 2160)}
_SIDES: Final = r"(?i)(\d{1,5})(?:\s*[x\u00d7*]\s*(\d{1,5}))?\s*(?:px|pixels?)?"
_TOKENS: Final = r"(?i)(\S+)\s*tokens?"
_GRID: Final = r"\((?:H|image)/(\d+)\)"
_TILE: Final = r"(\d+) per (\d+)px (?:tile|view)(?:.*up to (\d+))?"
_PLAIN: Final = r"(?:up to )?(\d[\d,]*)(?:[^;,]*? to (\d[\d,]*))?"
_LARGEST: Final = r"max (\d+)px"
_HIDDEN_STATES, _WIDE_TENSORS = 4, 3


class ImageSize(Struct, frozen=True):
    """How large an image is: by its pixels, or by its tokens where those were stated."""

    width: int = _USUAL_SIDE
    height: int = _USUAL_SIDE
    tokens: int | None = None


def read_size(text: str | None) -> ImageSize:
    """Read ``1024x768``, ``1024``, ``1080p`` or ``1024 tokens``; None is the usual size.

    Raises:
        RequestError: It is none of these.
    """
    said = (text or f"{_USUAL_SIDE}").strip()
    if told := re.fullmatch(_TOKENS, said):
        try:
            return ImageSize(tokens=parse_whole(told[1]))
        except UnitError:
            pass
    sides = re.fullmatch(_SIDES, said)
    pixels = _LINES.get(said.casefold()) or (sides and (int(sides[1]), int(sides[2] or sides[1])))
    if not pixels or not 0 < min(pixels) <= max(pixels) <= _MOST_SIDE:
        raise RequestError(
            f"image_size is '{said[:40]}'", hint="Write 1024x768, 1080p or 1024 tokens."
        )
    return ImageSize(*pixels)


def tokens_of_image(model: Model, size: ImageSize) -> int | None:
    """Count the tokens that one image takes, at most; None where it is not known."""
    if size.tokens is not None:
        return size.tokens
    note = model.image_tokens or ""
    if side := _side(model, note):
        return _on_grid(model, note, side, size)
    if tile := re.match(_TILE, note):
        each, pixels, most = int(tile[1]), int(tile[2]), int(tile[3] or 0)
        tiles = -(-size.width // pixels) * -(-size.height // pixels)
        tiles = min(tiles, most) if most else tiles
        return each * (tiles + (tiles > 1))
    plain = re.match(_PLAIN, note)
    return int((plain[2] or plain[1]).replace(",", "")) if plain else None


def _side(model: Model, note: str) -> int | None:
    """Give the pixels of a token's side: patches of the config, merged as it says."""
    config = model.shape.vision_config or {}
    patch, merge = config.get("patch_size"), config.get("spatial_merge_size")
    if isinstance(patch, int) and isinstance(merge, int):
        return patch * merge
    grid = re.match(_GRID, note)
    return int(grid[1]) if grid else None


def _on_grid(model: Model, note: str, side: int, size: ImageSize) -> int:
    config = model.shape.vision_config or {}
    fixed = config.get("image_size")
    breaks, largest = "row breaks" in note, re.search(_LARGEST, note)
    most = int(largest[1]) if largest else fixed if breaks else None
    width, height = size.width, size.height
    if "image/" in note and isinstance(fixed, int):
        width = height = fixed
    if isinstance(most, int) and max(width, height) > most:
        share = most / max(width, height)
        width, height = round(width * share), round(height * share)
    columns, rows = max(round(width / side), 1), max(round(height / side), 1)
    return columns * rows + (rows if breaks else 0)


def images_of(model: Model, stated: Stated) -> int:
    """Count the images of each prompt; a stated size alone is that of one."""
    if stated.text_only or not (model.vision_parameters or model.modality == "vision"):
        return 0
    return stated.images or (1 if stated.image_size else 0)


def prompt_tokens(model: Model, stated: Stated) -> int | None:
    """Count the tokens that the images of a prompt take; None where it is not known."""
    images = images_of(model, stated)
    each = tokens_of_image(model, read_size(stated.image_size)) if images else 0
    return None if each is None else each * images


def least_context(scenario: Scenario) -> int:
    """Give the fewest tokens of a context that hold what it is filled with, and one more."""
    return max(scenario.depth_tokens, prompt_tokens(scenario.model, scenario) or 0) + 1


def images_said(scenario: Scenario) -> Iterator[str]:
    """Say what the images of a prompt take of its context, or that they mean nothing here."""
    if not (scenario.images or scenario.image_size):
        return
    model, count = scenario.model, images_of(scenario.model, scenario)
    if not count or scenario.framework.vision is False:
        yield f"--images is for models that read them and changes nothing with {model.name} here."
        return
    tokens = prompt_tokens(model, scenario)
    size = scenario.image_size or f"{_USUAL_SIDE}x{_USUAL_SIDE}, as is assumed,"
    many = f"{count:,} images of {size} take" if count > 1 else f"One image of {size} takes"
    if tokens is None:
        yield f"How many tokens an image takes is not known for {model.name}: count them in."
    else:
        yield f"{many} {tokens:,} of the {scenario.context_tokens:,} tokens of context."
    if _tower(model) is None:
        yield f"What the image tower of {model.name} computes in is not known and not counted."


def image_limit(scenario: Scenario, *, sized: bool) -> str | None:
    """The images of a prompt as a server is told them, with the pixels where they are stated."""
    count, size = images_of(scenario.model, scenario), read_size(scenario.image_size)
    if not count:
        return None
    pixels = sized and scenario.image_size and size.tokens is None
    limit = {"count": count, "width": size.width, "height": size.height} if pixels else count
    return json.dumps({"image": limit})


def tower_bytes(model: Model, stated: Stated, images: int, element_bytes: int) -> int | None:
    """Size what the tower holds while it computes so many images; None where it is not known."""
    tower = _tower(model)
    if tower is None:
        return None
    patches = images * _patches(model, tower, read_size(stated.image_size))
    return patches * (_HIDDEN_STATES * tower.hidden + _WIDE_TENSORS * tower.width) * element_bytes


def _tower(model: Model) -> Tower | None:
    """Read what the model's config and its class say of the tower; None where that is not all."""
    config = model.shape.vision_config
    if not config:
        return None
    from advisor.models.architectures.tables import tower_of  # noqa: PLC0415  where images are
    from advisor.models.config_keys import Keys  # noqa: PLC0415  asked for
    from advisor.models.vision_towers import read_tower  # noqa: PLC0415

    family = tower_of(config.get("model_type"))
    try:
        return read_tower(Keys(config, "config.json", family.sizes if family else {}))
    except UserError:
        return None


def _patches(model: Model, tower: Tower, size: ImageSize) -> int:
    """Count the patches of one image: those behind its tokens, or those of its tiles."""
    note = model.image_tokens or ""
    tokens = tokens_of_image(model, size) or 0
    if side := _side(model, note):
        return tokens * max(side // tower.patch, 1) ** 2
    tile = re.match(_TILE, note)
    if tower.keys.uniform("image_size") is None:
        return tokens
    return (
        max(-(-tokens // int(tile[1]) if tile else -(-tokens // tower.patches)), 1) * tower.patches
    )


def most_image_tokens(model: Model) -> int | None:
    """The largest token count that the image-token note of a vision model names."""
    found = map(int, _COUNT.findall(model.image_tokens or ""))
    return max((n for n in found if n < _MOST_TOKENS), default=None)
