"""The site in a real browser: headless Chromium, from the disk, without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(not BROWSER or not DRIVER, reason="needs chromium and chromium-driver"),
]
if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
PAGES = (
    "index.html", "matrix.html", "cards.html", "models.html", "compare.html",
    "card/geforce-rtx-4090.html", "model/gemma-2-27b.html",
    "pair/gemma-2-27b/geforce-rtx-3060-12-gb.html",
    "report/gemma-2-27b/geforce-rtx-3060-12-gb_q4-k-m_4096.html",
    "compare/geforce-rtx-3060-12-gb--geforce-rtx-4090.html",
)  # fmt: skip
CONTRAST = """
const lum = c => {
  const f = c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * f[0] + .7152 * f[1] + .0722 * f[2];
};
const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
const back = node => {
  for (; node; node = node.parentElement) {
    const c = rgb(getComputedStyle(node).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
};
const bad = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode.textContent.trim(), parent = walk.currentNode.parentElement;
  const hidden = !parent.getClientRects().length || parent.closest("svg, script, style");
  if (!text || hidden) continue;
  const one = lum(rgb(getComputedStyle(parent).color)), two = lum(back(parent));
  const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
  if (ratio < 4.5) bad.push(text.slice(0, 40) + " " + ratio.toFixed(2));
}
return [walk.root === document.body, bad];
"""


def opened(profile: Path, *, scripts: bool = True) -> Chrome:
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    os.environ["SE_OFFLINE"] = "true"
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        prefs = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", prefs)
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    driver = opened(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


class Browser:
    """Few words for what a reader does."""

    def __init__(self, driver: Chrome, site: Path) -> None:
        self.driver, self.site = driver, site
        self.size(1280, 900)
        self.colours("light")

    def size(self, width: int, height: int) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: str) -> None:
        self.driver.get(f"file://{self.site}/{page}")

    def all(self, selector: str) -> list[Any]:
        return [e for e in self.driver.find_elements("css selector", selector) if e.is_displayed()]

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def choose(self, name: str, value: str) -> None:
        options = self.one(f"select[name={name}]").find_elements("tag name", "option")
        next(one for one in options if one.get_attribute("value") == value).click()

    def type(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415

        ActionChains(self.driver).send_keys(*keys).perform()

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)


@pytest.fixture
def browser(chromium: Chrome, site: Path) -> Iterator[Browser]:
    chromium.get_log("browser")
    yield Browser(chromium, site)
    complaints = [entry["message"] for entry in chromium.get_log("browser")]
    assert complaints == []


def test_search_as_you_type_finds_cards_and_models_and_leads_to_them(browser: Browser) -> None:
    browser.open("index.html")
    browser.one("#q").send_keys("rtx40")
    assert browser.texts("#found [role=option] span") == ["GeForce RTX 4090"]
    browser.one("#q").clear()
    browser.one("#q").send_keys("llama 3")
    assert {"Meta-Llama-3-8B", "Llama-3.1-70B"} == set(browser.texts("#found [role=option] span"))
    browser.one("#q").clear()
    browser.one("#q").send_keys("zzz")
    assert browser.texts("#found li") == ["Nothing found. Try fewer letters."]
    browser.one("#q").clear()
    browser.one("#q").send_keys("gemma")
    browser.all("#found a")[0].click()
    assert browser.driver.current_url.endswith("/model/gemma-2-27b.html")


def test_the_search_works_with_the_keyboard_alone(browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    browser.open("index.html")
    browser.one("#q").send_keys("r")
    names = browser.texts("#found [role=option] span")
    assert len(names) > 2
    browser.type(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    chosen = browser.one("#found [aria-selected=true] span").text
    assert chosen == names[1]
    assert browser.one("#q").get_attribute("aria-activedescendant") == "found-1"
    browser.type(Keys.ESCAPE)
    assert browser.one("#q").get_attribute("aria-expanded") == "false"
    browser.one("#q").clear()
    browser.one("#q").send_keys("4090", Keys.ENTER)
    assert browser.driver.current_url.endswith("/card/geforce-rtx-4090.html")


def test_filters_keep_what_they_ask_for(browser: Browser) -> None:
    browser.open("index.html")
    cards = "#matrix tbody th a"
    assert len(browser.texts(cards)) == 3
    browser.choose("group", "AMD")
    assert browser.texts(cards) == ["Radeon RX 7900 XTX"]
    assert browser.texts(".count") == ["1 of 3 shown"]
    browser.choose("group", "")
    browser.choose("size", "16")
    assert set(browser.texts(cards)) == {"GeForce RTX 4090", "Radeon RX 7900 XTX"}
    browser.choose("size", "")
    browser.choose("family", "Gemma 2")
    assert browser.texts("#matrix thead th.turn a") == ["gemma-2-27b"]
    browser.choose("state", "needs_offload")
    assert browser.texts(cards) == ["GeForce RTX 3060 12 GB"]
    browser.one("button[type=reset]").click()
    browser.run("return new Promise(done => setTimeout(done, 50))")
    assert len(browser.texts(cards)) == 3
    assert len(browser.texts("#matrix thead th.turn a")) == 3


def test_lists_are_filtered_by_text_and_verdict(browser: Browser) -> None:
    browser.open("card/geforce-rtx-3060-12-gb.html")
    browser.one("input[name=text]").send_keys("llama")
    assert browser.texts("#list tbody th") == ["Meta-Llama-3-8B", "Llama-3.1-70B"]
    browser.choose("state", "fits")
    assert browser.texts("#list tbody th") == ["Meta-Llama-3-8B"]


def test_tables_sort_both_ways_and_say_so(browser: Browser) -> None:
    browser.open("card/geforce-rtx-4090.html")
    head = next(h for h in browser.all("#list thead th") if h.text.startswith("Needs"))
    head.find_element("tag name", "button").click()
    needs = [float(text.split()[0]) for text in browser.texts("#list tbody td:nth-child(4)")]
    assert needs == sorted(needs)
    assert head.get_attribute("aria-sort") == "ascending"
    head.find_element("tag name", "button").click()
    again = [float(text.split()[0]) for text in browser.texts("#list tbody td:nth-child(4)")]
    assert again == needs[::-1]
    assert head.get_attribute("aria-sort") == "descending"


def test_the_matrix_sorts_by_the_verdict_of_a_model(browser: Browser) -> None:
    browser.open("matrix.html")
    place = browser.texts("#matrix thead th.turn a").index("gemma-2-27b")
    browser.all("#matrix thead th.turn button")[place].click()
    cells = browser.all(f"#matrix tbody td:nth-child({place + 3})")
    ranks = ["fits", "tight", "needs_offload", "too_big"]
    found = [ranks.index(cell.get_attribute("class").split()[0]) for cell in cells]
    assert found == sorted(found)
    assert len(set(found)) > 1


def test_every_cell_is_marked_by_more_than_its_colour(browser: Browser) -> None:
    browser.open("matrix.html")
    symbols = {
        "fits": "✓",
        "tight": "!",
        "needs_offload": "½",
        "too_big": "\N{MULTIPLICATION SIGN}",
    }
    for cell in browser.all("#matrix tbody td:not(.size)"):
        state = cell.get_attribute("class").split()[0]
        assert cell.text.startswith(symbols.get(state, "\N{MULTIPLICATION SIGN}"))


def test_a_pair_page_leads_from_the_matrix_to_the_report(browser: Browser) -> None:
    browser.open("matrix.html")
    browser.all("#matrix tbody td.fits a")[0].click()
    assert "/pair/" in browser.driver.current_url
    assert len(browser.all(".bars")) >= 2
    assert all(svg.rect["height"] > 5 for svg in browser.all(".bars svg:not(.key svg)"))
    browser.all("#list tbody th a")[0].click()
    assert "/report/" in browser.driver.current_url
    assert browser.texts(".report h1")
    assert browser.texts(".report .verdict")


def test_the_bars_of_a_chart_share_one_scale(browser: Browser) -> None:
    for width in (1280, 390):
        browser.size(width, 900)
        browser.open("pair/gemma-2-27b/geforce-rtx-3060-12-gb.html")
        for chart in browser.all(".bars"):
            bars = chart.find_elements("css selector", "li svg")
            assert len({(bar.rect["x"], bar.rect["width"]) for bar in bars}) == 1


def test_any_two_cards_can_be_compared(browser: Browser) -> None:
    browser.open("compare.html#geforce-rtx-4090--radeon-rx-7900-xtx")
    browser.run("return new Promise(done => setTimeout(done, 200))")
    assert "GeForce RTX 4090 or Radeon RX 7900 XTX" in browser.texts("#compared h2")
    browser.choose("two", "geforce-rtx-3060-12-gb")
    browser.run("return new Promise(done => setTimeout(done, 200))")
    assert "GeForce RTX 4090 or GeForce RTX 3060 12 GB" in browser.texts("#compared h2")
    marks = browser.texts("#compared a.mark")
    assert {"✓ Fits", "½ Needs offload"} <= set(marks)


@pytest.mark.parametrize("page", PAGES)
def test_a_narrow_screen_never_scrolls_sideways(browser: Browser, page: str) -> None:
    for width in (320, 390, 768):
        browser.size(width, 700)
        browser.open(page)
        wide = browser.run("return document.scrollingElement.scrollWidth")
        assert wide <= width, (page, width)


@pytest.mark.parametrize("page", PAGES)
def test_every_text_has_enough_contrast_in_light_and_dark(browser: Browser, page: str) -> None:
    for scheme in ("light", "dark"):
        browser.colours(scheme)
        browser.open(page)
        assert browser.run(CONTRAST) == [True, []], scheme


def test_dark_is_dark(browser: Browser) -> None:
    browser.open("index.html")
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.colours("dark")
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert light == "rgb(251, 252, 253)"
    assert dark == "rgb(14, 19, 25)"


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    browser.open("index.html")
    browser.type(Keys.TAB)
    first = browser.driver.switch_to.active_element
    assert first.text == "Skip to the content"
    assert first.rect["x"] >= 0
    browser.type(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    seen = set()
    for _ in range(40):
        browser.type(Keys.TAB)
        active = browser.driver.switch_to.active_element
        if active.tag_name == "body":
            break
        seen.add(active.tag_name)
        style = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert style != "none", active.get_attribute("outerHTML")
    assert {"input", "select", "button", "a", "div"} <= seen


def test_without_scripts_everything_reads_and_nothing_dead_is_shown(
    site: Path, tmp_path: Path
) -> None:
    driver = opened(tmp_path / "profile", scripts=False)
    try:
        browser = Browser(driver, site)
        browser.open("index.html")
        assert browser.all("form") == []
        assert len(browser.all("#matrix tbody tr")) == 3
        browser.all("#matrix tbody td.fits a")[0].click()
        assert "/pair/" in driver.current_url
        assert browser.all("th button") == []
        browser.open("compare.html")
        assert browser.all("form") == []
        assert len(browser.all("ul.columns a")) == 3
    finally:
        driver.quit()
