"""The page to ask from, in a real browser: ask, see, change and compare; a phone included."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from advisor.api.service.openapi import page_of, page_to_ask
from tests.service.asking import Service
from tests.site import test_browser as site

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = site.pytestmark
QUERY = "?gpu=RTX+4090&model=phi-3-medium&precision=fp16"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    config = uvicorn.Config(Service().app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    driver = site.opened(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


class Page(site.Browser):
    """Few words for what a visitor does."""

    def __init__(self, driver: Chrome, url: str) -> None:
        super().__init__(driver, Path())
        self.url = url

    def open(self, page: str) -> None:
        self.driver.get(self.url + page)

    def until(self, holds: Callable[[], Any]) -> None:
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end, self.driver.page_source
            time.sleep(0.02)

    def ask(self, **stated: str) -> None:
        for name, text in stated.items():
            field = self.one(f"[name={name}]")
            field.clear()
            field.send_keys(text)
        self.one("button.main").click()


@pytest.fixture
def page(chromium: Chrome, url: str) -> Iterator[Page]:
    chromium.get_log("browser")
    yield Page(chromium, url)
    complaints = [entry["message"] for entry in chromium.get_log("browser")]
    assert [one for one in complaints if "422" not in one and "favicon" not in one] == []


def test_ask_see_change_and_compare(page: Page) -> None:
    page.open("")
    page.ask(gpu="RTX 4090", model="phi-3-medium", precision="fp16")
    page.until(lambda: page.texts("#remedies button"))
    assert page.texts("#verdict") == ["½ Needs system RAM"]
    assert "does not fit on the GeForce RTX 4090" in page.texts("#sentence")[0]
    assert "Missing\n3.8 GiB" in page.texts("#figures div")
    assert page.driver.current_url == page.url + QUERY
    page.one("#keep").click()
    assert "Q8_0" in page.texts("#remedies h3")[0]
    page.all("#remedies button")[0].click()
    page.until(lambda: page.texts("#verdict") == ["✓ Fits"])
    assert "Free\n8.2 GiB" in page.texts("#figures div")
    assert "8.2 GiB" in page.texts("#sentence")[0]
    assert page.one("[name=precision]").get_attribute("value") == "Q8_0"
    page.one("#keep").click()
    assert page.texts("#compared tbody tr:first-child td") == ["½ Needs system RAM", "✓ Fits"]
    page.all("#compared thead button")[1].click()
    assert len(page.all("#compared tbody tr:first-child td")) == 1


def test_what_is_wrong_is_told_beside_the_form(page: Page) -> None:
    page.open("")
    page.ask(gpu="RTX 4091", model="phi-3-mediun<b>")
    page.until(lambda: page.texts(".wrong p"))
    assert any("GeForce RTX 4090" in text for text in page.texts(".wrong p"))
    assert not page.all("#answer")
    page.ask(gpu="RTX 4090", model="phi-3-mini")
    page.until(lambda: page.texts("#verdict"))
    assert not page.all(".wrong")


def test_an_address_holds_the_question_and_settings_without_a_field(page: Page) -> None:
    page.open(QUERY + "&cpu_experts=0&ram_gib=64")
    page.until(lambda: page.texts("#verdict"))
    assert page.one("[name=model]").get_attribute("value") == "phi-3-medium"
    assert page.texts("#more button") == [
        "cpu_experts: 0 \N{MULTIPLICATION SIGN}",
        "ram_gib: 64 \N{MULTIPLICATION SIGN}",
    ]
    page.all("#more button")[0].click()
    page.until(lambda: "cpu_experts" not in page.driver.current_url)
    page.until(lambda: page.texts("#verdict"))
    page.one("summary").click()
    page.driver.switch_to.frame(page.one("iframe"))
    page.until(lambda: "Phi-3-medium" in page.driver.page_source)
    page.driver.switch_to.default_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(page: Page, scheme: str) -> None:
    page.colours(scheme)
    for width in (320, 1280):
        page.size(width, 800)
        page.open(QUERY)
        page.until(lambda: page.texts("#remedies button"))
        page.one("#keep").click()
        page.one("#keep").click()
        assert page.run("return document.scrollingElement.scrollWidth") <= width
        shown = [one for one in page.all("input, button") if one.size["height"] < 40]
        assert shown == []
    assert page.run(site.CONTRAST) == [True, []]


def test_it_works_without_scripts() -> None:
    made, _ = page_to_ask({})
    assert '<form id="ask" action="advise" method="get">' in made
    assert '<input type="hidden" name="format" value="html">' in made
    asked = {"format": "html", "gpu": "RTX 4090", "model": "phi-3-mini", "context": "", "ram": ""}
    got = Service().get("/advise", **asked)
    assert (got.status_code, "Phi-3-mini" in got.text) == (200, True)


def test_names_are_offered_and_never_markup() -> None:
    made, policy = page_to_ask({"gpu": ['"><b>'], "model": ["llama-3-8b"]})
    assert '<datalist id="gpus"><option value="&quot;&gt;&lt;b&gt;"></datalist>' in made
    assert "script-src 'sha256-" in policy
    assert "http" not in made.replace('http-equiv"', "")
    assert "<b>" not in page_of("# A <b>page</b>")
