"""``advisor site``: what is written, where, and what every page must be."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.bulk.audit.pages import read_page
from advisor.bulk.batch.manifest import document_of, open_batch
from advisor.bulk.batch.store import MOST_PAGE_BYTES
from advisor.bulk.site import Asked, _index_pages
from advisor.bulk.site.catalogue import Catalogue, Setup, Shown, Subject, best_of, read_catalogue
from advisor.bulk.site.page import Site
from advisor.bulk.site.pairs import Making, Pair, pair_files
from advisor.units import rate
from tests.batch.plans import contents, index
from tests.cli.running import Outcome, run
from tests.site.conftest import BASE

Capture = pytest.CaptureFixture[str]
PAIR = "pair/meta-llama-3-8b/geforce-rtx-4090.html"


def make(capsys: Capture, batch: Path, out: Path, *more: str) -> Outcome:
    return run(capsys, "site", str(batch), "--output", str(out), "--workers", "1", *more)


def pages(site: Path) -> dict[str, str]:
    return {name: text.decode() for name, text in contents(site).items() if name.endswith(".html")}


def test_there_is_a_page_for_every_card_model_pair_and_report(site: Path, batch: Path) -> None:
    found = set(pages(site))
    cards = {"geforce-rtx-4090", "geforce-rtx-3060-12-gb", "radeon-rx-7900-xtx"}
    models = {"meta-llama-3-8b", "gemma-2-27b", "llama-3.1-70b"}
    assert {f"card/{card}.html" for card in cards} <= found
    assert {f"model/{model}.html" for model in models} <= found
    assert {f"pair/{model}/{card}.html" for model in models for card in cards} <= found
    assert {f"report/{entry['id']}.html" for entry in index(batch)} <= found
    assert len([name for name in found if name.startswith("compare/")]) == 3


def test_the_audit_of_a_site_is_clean_and_finds_damage(
    capsys: Capture, site: Path, tmp_path: Path
) -> None:
    assert run(capsys, "audit", str(site)).out.endswith("nothing is wrong\n")
    copy = Path(shutil.copytree(site, tmp_path / "copy"))
    page = copy / PAIR
    page.write_text(page.read_text().replace("geforce-rtx-4090_q8-0", "gone"))
    (copy / "models.html").unlink()
    (copy / "stray.html").write_text("x")
    outcome = run(capsys, "audit", str(copy), "--format", "json")
    said = json.loads(outcome.out)
    kinds = {(one["kind"], one["where"]) for one in said["findings"]}
    assert outcome.code == 1
    assert {("damaged", PAIR), ("link", PAIR), ("missing", "models.html")} <= kinds
    assert ("foreign", "stray.html") in kinds


def test_the_same_batch_gives_the_same_bytes(capsys: Capture, batch: Path, tmp_path: Path) -> None:
    for workers in ("1", "2"):
        out = tmp_path / workers
        done = run(capsys, "site", str(batch), "--output", str(out), "--workers", workers)
        assert done.code == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    text = b"".join(contents(tmp_path / "1").values())
    assert str(tmp_path).encode() not in text


def test_every_page_has_its_metadata_and_needs_nothing_from_elsewhere(site: Path) -> None:
    titles = set()
    for name, text in pages(site).items():
        page = read_page(text)
        assert page.language == "en"
        assert page.title.strip()
        assert page.title not in titles, name
        titles.add(page.title)
        described = re.search(r'<meta name="description" content="([^"]+)">', text)
        assert described, name
        assert 20 <= len(described[1]) <= 400
        address = BASE if name == "index.html" else f"{BASE}{name}"
        assert f'<link rel="canonical" href="{address}">' in text
        assert f'<meta property="og:url" content="{address}">' in text
        assert not re.search(r'(src|href)="(https?:)?//(?!example\.org/gpus/)', text), name
        assert text.count("<h1") == 1, name
        assert text.count("<main") == 1


def test_headings_go_down_one_step_at_a_time_and_tables_have_heads(site: Path) -> None:
    for name, text in pages(site).items():
        levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
        assert all(b - a <= 1 for a, b in pairwise(levels)), name
        for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
            assert 'scope="col"' in table, name
        for picture in re.findall(r"<svg[^>]*>", text):
            assert "aria-hidden" in picture or "role" in picture or "legend" in text, name


def test_the_sitemap_lists_every_page_once(site: Path) -> None:
    tree = ET.parse(site / "sitemap.xml")  # noqa: S314  our own file
    found = [node.text for node in tree.iter() if node.tag.endswith("}loc")]
    expected = {BASE if name == "index.html" else f"{BASE}{name}" for name in pages(site)}
    assert len(found) == len(expected)
    assert set(found) == expected


def test_without_an_address_there_is_no_sitemap_and_other_rules_are_told(
    capsys: Capture, batch: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "rules" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text("[]")
    made = make(capsys, batch, tmp_path / "out", "--rules", str(mine.parent))
    assert made.code == 0
    assert "made from other files (own/rules/mine.yaml added) and stay as they are" in made.err
    assert not (tmp_path / "out" / "sitemap.xml").exists()
    assert "canonical" not in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize("address", ["example.org", "ftp://x/", "https://x/?a=1", "https://x/<y>"])
def test_an_address_that_is_none_is_refused(
    capsys: Capture, batch: Path, tmp_path: Path, address: str
) -> None:
    outcome = make(capsys, batch, tmp_path / "out", "--base-url", address)
    assert outcome.code == 1
    assert "is not the address of a folder" in outcome.err
    assert not (tmp_path / "out").exists()


def test_figures_of_the_pages_are_those_of_the_documents(site: Path, batch: Path) -> None:
    from advisor.report import figures as f  # noqa: PLC0415

    text = read_page((site / PAIR).read_text()).text
    for entry in index(batch):
        if entry["gpu"] == "GeForce RTX 4090" and entry["model"] == "Meta-Llama-3-8B":
            doc = document_of(batch, entry)
            assert f.amount(doc.memory.required_bytes) in text
            assert f"{f.amount(doc.memory.headroom_bytes)} free" in text
            assert doc.speed
            assert rate(doc.speed.decode_tok_s.estimate) in text


def test_a_site_inside_its_batch_is_part_of_its_audit_and_survives_resume(
    capsys: Capture, batch: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(batch, tmp_path / "batch"))
    made = run(capsys, "site", str(own), "--workers", "1")
    assert json.loads(made.out)["out"] == str(own / "site")
    (own / "site" / "index.html").write_text("cut")
    said = run(capsys, "audit", str(own), "--sample", "1", "--format", "json", "--workers", "1")
    kinds = {(one["kind"], one["where"]) for one in json.loads(said.out)["findings"]}
    assert ("damaged", "site/index.html") in kinds


def test_made_again_a_site_loses_what_is_no_longer_part_of_it(
    capsys: Capture, batch: Path, site: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(site, tmp_path / "out"))
    (out / "card" / "old-card.html").write_text("old")
    (out / "pair" / "old").mkdir()
    (out / "pair" / "old" / "x.html").write_text("old")
    assert make(capsys, batch, out, "--base-url", BASE).code == 0
    assert contents(out) == contents(site)
    assert not (out / "pair" / "old").exists()


def test_folders_that_hold_something_else_are_refused(
    capsys: Capture, batch: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("x")
    (tmp_path / "linked" / ".work").mkdir(parents=True)
    (tmp_path / "linked" / "card").symlink_to(tmp_path / "mine")
    for out, words in (
        (tmp_path / "mine", "is not empty and holds no site (letter.txt)"),
        (tmp_path / "file", "is not a folder"),
        (batch, "is the folder of the batch itself"),
        (tmp_path / "linked", "holds a link, 'card'"),
    ):
        outcome = make(capsys, batch, out)
        assert outcome.code == 1
        assert words in outcome.err
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_site_inside_its_batch_stands_in_its_own_folder_only(
    capsys: Capture, batch: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(batch, tmp_path / "batch"))
    for out in (own / "sub", own / "jsonl" / "site", own / "site" / "sub"):
        outcome = make(capsys, own, out)
        assert outcome.code == 1
        assert "is inside the batch" in outcome.err
        assert not out.exists()
    assert make(capsys, own, own / "site").code == 0


def test_a_batch_that_cannot_be_used_is_one_clear_error(
    capsys: Capture, batch: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(batch, tmp_path / "batch"))
    text = (own / "index.jsonl").read_text()
    for damage, words in (
        (text.replace('"id":"meta', '"id":"../../meta', 1), "is no name of a report"),
        (text.replace('"state":"fits"', '"state":"<b>"', 1), "is no verdict"),
        ("{\n", "not a line of an index"),
        ("", "holds no report"),
    ):
        (own / "index.jsonl").write_text(damage)
        outcome = make(capsys, own, tmp_path / "out")
        assert outcome.code == 1
        assert words in outcome.err
    manifest = json.loads((own / "manifest.json").read_text()) | {"formats": ["markdown"]}
    (own / "manifest.json").write_text(json.dumps(manifest))
    assert "holds no result documents" in make(capsys, own, tmp_path / "out").err
    assert not (tmp_path / "out").exists()
    assert run(capsys, "site", str(own)).code == 1
    assert not (own / "site").exists()


def test_names_with_markup_are_shown_as_they_are(batch: Path) -> None:
    catalogue = many(read_catalogue(open_batch(batch)), cards=2, models=2, name="<b>&\"'|{{x}}")
    for file in _index_pages(shown_of(catalogue), Asked(Path(), "", 1)):
        text = file.content.decode()
        if file.path.endswith(".html"):
            assert "<b>&" not in text
            assert "&lt;b&gt;&amp;" in text
            read_page(text)
        assert ".." not in file.path


def test_no_page_of_a_large_site_is_larger_than_100_kilobytes(batch: Path) -> None:
    small = read_catalogue(open_batch(batch))
    catalogue = many(small, cards=90, models=45, name="A rather long name of a thing with a number")
    largest = 0
    for file in _index_pages(shown_of(catalogue), Asked(Path(), BASE, 1)):
        largest = max(largest, len(file.content))
        assert len(file.content) <= MOST_PAGE_BYTES, file.path
    assert largest > 0.5 * MOST_PAGE_BYTES


def test_a_pair_with_very_many_setups_is_cut_into_pages(batch: Path) -> None:
    catalogue = read_catalogue(open_batch(batch))
    (card, model), setups = next(iter(catalogue.pairs.items()))
    one = setups[0]
    settings = [(("context", 1024 * n), ("precision", "Q4_K_M")) for n in range(1, 121)]
    several = tuple(replace(one, id=f"a/b-{at}", setting=s) for at, s in enumerate(settings))
    cards, models = ({s.key: s for s in g} for g in (catalogue.cards, catalogue.models))
    making = Making(str(batch), BASE, "made", "standard")
    files = [*pair_files(making, Pair(cards[card], models[model], several))]
    pairs = [file for file in files if file.path.startswith("pair/")]
    assert len(pairs) > 1
    assert all(len(file.content) <= MOST_PAGE_BYTES for file in files)
    rows = sum(file.content.count(b'<tr><th scope="row"') for file in pairs)
    assert rows == 120


def test_a_matrix_shows_the_largest_format_that_fits(batch: Path) -> None:
    setups = read_catalogue(open_batch(batch)).pairs[("GeForce RTX 4090", "Meta-Llama-3-8B")]
    assert best_of(setups).precision == "Q8_0"
    spoilt = [replace(s, state="too_big") if s.precision == "Q8_0" else s for s in setups]
    assert best_of(spoilt).precision == "Q4_K_M"
    missed = [replace(s, state="needs_offload") for s in setups]
    assert best_of(missed).precision == "Q4_K_M"


def test_every_class_of_a_report_has_a_style(site: Path) -> None:
    styled = set(re.findall(r"\.([a-zA-Z_][\w-]*)", (site / "site.css").read_text()))
    unstyled = {"none", "js", "count", "sortable"}
    for name, text in pages(site).items():
        assert read_page(text).classes <= styled | unstyled, name


def test_colours_have_enough_contrast(site: Path) -> None:
    css = (site / "site.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    backs = ("page", "panel", "raised")
    pairs = [(ink, back) for ink in ("ink", "soft", "link") for back in backs]
    pairs += [(f"{s}-ink", f"{s}-back") for s in ("fits", "tight", "needs_offload", "too_big")]
    for block in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for ink, back in pairs:
            assert contrast(colours[ink], colours[back]) >= 4.5, (ink, back)
        for kind in ("weights", "kv", "compute", "overhead", "good", "bad"):
            assert contrast(colours[kind], colours["ground"]) >= 3, kind


def contrast(one: str, other: str) -> float:
    """The contrast of WCAG 2.2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def shown_of(catalogue: Catalogue) -> Shown:
    return Shown.of(Site.of(None, BASE, "made"), catalogue)


def many(small: Catalogue, *, cards: int, models: int, name: str) -> Catalogue:
    """A catalogue of so many cards and models, each pair with one setup."""
    card, model = small.cards[0], small.models[0]

    def copies(one: Subject, count: int) -> list[Subject]:
        return [
            replace(one, key=f"{name} {n}", name=f"{name} {n}", slug=f"thing-number-{n}",
                    group=f"Group {n % 5}", size=one.size + n)
            for n in range(count)
        ]  # fmt: skip

    first: Setup = next(iter(small.pairs.values()))[0]
    some, few = copies(card, cards), copies(model, models)
    pairs = {(c.key, m.key): [replace(first, card=c.key, model=m.key)] for c in some for m in few}
    best = {pair: setups[0] for pair, setups in pairs.items()}
    return Catalogue(some, few, pairs, small.settings, "standard", len(pairs), best)
