"""Programs over the API: what can be run, who serves it, sources, versions, graphs, checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from afl.app.compiling import compile_program
from afl.base.settings import Settings
from afl.ir.codec import dumps
from afl.kernel.model import Json, WorkerId, WorkerSpec
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend

FLOW = """/** Orders. */
namespace shop {
  enum Size { small, large }
  schema Item { name: String, size: Size, parts: [Item] = [] }

  /** Takes the money. @param cents how much */
  event facet Charge(cents: Long) => (receipt: String)
    with Queue(name = "money")

  event facet Pack(item: Item) => (box: String)

  event facet Approve(title: String) => (approved: Boolean)
    with Human(group = "shop")

  facet Both(item: Item) => (box: String) andThen {
    packed = Pack(item = $.item)
    yield Both(box = packed.box)
  }

  /**
   * Sells one.
   * @param item what is sold
   * @param cents the price
   */
  workflow Sell(item: Item, cents: Long = 100, note: String?) => (receipt: String) andThen {
    sure = Approve(title = "sell")
    paid = Charge(cents = $.cents) after sure
    box = Both(item = $.item) after paid
    yield Sell(receipt = paid.receipt)
  }
}
"""
WRONG = FLOW.replace("paid.receipt)", "paid.reciept)")
PIPELINE = """name: Nightly
tasks:
  fetch:
    name: Fetch
    config: !Subprocess
      cmd: "true"
"""


@pytest.fixture
def backend() -> Iterator[Backend]:
    with open_backend("memory:", Settings(), auth=False) as made:
        yield made


@pytest.fixture
def http(backend: Backend) -> Iterator[TestClient]:
    with TestClient(create_app(backend), base_url=f"http://127.0.0.1{API}/") as client:
        yield client


def _form(**files: str) -> dict[str, object]:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return {"files": [{"name": name, "text": text} for name, text in named.items()]}


def _serve(backend: Backend, name: str, *handlers: str, lists: tuple[str, ...]) -> None:
    spec = WorkerSpec(WorkerId(name), name, handlers=handlers, lists=lists)
    backend.services.persistence.kernel.register(spec)


def test_a_program_that_was_deployed(http: TestClient, backend: Backend) -> None:
    assert http.get("programs").json() == []
    done = http.post("programs", json=_form(shop_afl=FLOW)).json()
    assert done["ok"], done
    assert done["before"] is None
    (line,) = http.get("programs").json()
    assert (line["name"], line["program"]) == ("default", done["program"])
    assert line["unserved"] == ["shop.Charge", "shop.Pack"]
    (sell,) = line["workflows"]
    assert (sell["doc"], sell["file"], sell["line"]) == ("Sells one.", "shop.afl", 25)
    item, cents, note = sell["parameters"]
    assert item["form"]["$ref"] == "#/$defs/shop.Item"
    assert item["form"]["$defs"]["shop.Item"]["properties"]["size"]["enum"] == ["small", "large"]
    assert (item["required"], item["doc"], item["type"]) == (True, "what is sold", "shop.Item")
    assert (cents["required"], cents["default"], cents["form"]["default"]) == (False, 100, 100)
    assert (note["required"], note["type"]) == (False, "String?")
    # a worker counts for the queue of a facet alone
    _serve(backend, "a", "shop.Charge", "Pack", lists=("default",))
    assert http.get("programs").json()[0]["unserved"] == ["shop.Charge"]
    _serve(backend, "b", "shop.Charge", lists=("money",))
    view = http.get("programs/default").json()
    assert {each["name"]: (each["kind"], each["workers"]) for each in view["facets"]} == {
        "shop.Approve": ("human", None),
        "shop.Both": ("plain", None),
        "shop.Charge": ("event", 1),
        "shop.Pack": ("event", 1),
    }
    assert view["sources"] == [{"name": "shop.afl", "text": FLOW}]
    assert view["deployed_as"] == ["default"]


def test_versions_and_their_sources(http: TestClient) -> None:
    first = http.post("programs", json=_form(shop_afl=FLOW)).json()["program"]
    later = FLOW.replace("cents: Long = 100", "cents: Long = 200")
    second = http.post("programs", json=_form(shop_afl=later)).json()
    assert second["before"] == first
    view = http.get(f"programs/{first}").json()
    assert view["deployed_as"] == []
    assert [each["program"] for each in view["versions"]] == [second["program"], first]
    assert view["sources"][0]["text"] == FLOW
    assert http.get("programs/default").json()["sources"][0]["text"] == later


def test_nothing_is_deployed_that_does_not_compile(http: TestClient) -> None:
    done = http.post("programs", json=_form(shop_afl=WRONG)).json()
    assert (done["ok"], done["program"]) == (False, None)
    (wrong,) = done["diagnostics"]
    assert wrong["severity"] == "error"
    assert (wrong["file"], wrong["line"]) == ("shop.afl", 29)
    assert "receipt" in wrong["help"]
    assert http.get("programs").json() == []
    assert http.get("programs/default").json()["code"] == "runtime.unknown_program"


def test_a_check_keeps_nothing(http: TestClient) -> None:
    good = http.post("check", json=_form(shop_afl=FLOW)).json()
    assert (good["ok"], good["diagnostics"]) == (True, [])
    assert [each["name"] for each in good["workflows"]] == ["shop.Sell"]
    assert http.get("programs").json() == []
    piped = http.post(
        "check",
        json={
            "files": [
                {"name": "flows/shop.afl", "text": FLOW},
                {"name": "flows/jobs/nightly.yaml", "text": PIPELINE},
            ]
        },
    ).json()
    assert [each["name"] for each in piped["workflows"]] == ["jobs.nightly", "shop.Sell"]
    broken = http.post("check", json=_form(nightly_yaml="tasks: 3")).json()
    assert not broken["ok"]
    assert broken["diagnostics"][0]["file"] == "nightly.yaml"


def test_what_is_too_much_or_no_source_is_refused(http: TestClient) -> None:
    big = http.post("check", json=_form(a_afl=" " * (1 << 20)))
    assert (big.status_code, big.json()["code"]) == (413, "server.too_large")
    assert http.post("check", json={"files": []}).json()["code"] == "app.bad_program"
    twice = {"files": [{"name": "a.afl", "text": FLOW}] * 2}
    assert "Two files" in http.post("check", json=twice).json()["detail"]
    bad = http.post("programs", json={"files": [], "compiled": "{}"})
    assert bad.json()["code"] == "app.bad_program"


def test_graphs(http: TestClient) -> None:
    http.post("programs", json=_form(shop_afl=FLOW))
    graph = http.get("programs/default/graph", params={"workflow": "shop.Sell"}).json()
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert nodes["shop.Sell/0/paid"]["line"] == 27
    assert nodes["shop.Both/0/packed"]["parent"] == "shop.Sell/0/box"
    assert {"source": "shop.Sell/0/sure", "target": "shop.Sell/0/paid"} in graph["edges"]
    moved = _form(shop_afl=f"\n{FLOW}")
    edited = http.post("check/graph", params={"workflow": "shop.Sell"}, json=moved).json()
    assert edited["hash"] == graph["hash"]
    missing = http.get("programs/default/graph", params={"workflow": "shop.Sel"}).json()
    assert missing["code"] == "runtime.unknown_facet"
    wrong = http.post("check/graph", params={"workflow": "shop.Sell"}, json=_form(a_afl=WRONG))
    assert (wrong.status_code, wrong.json()["code"]) == (422, "app.bad_program")


def test_the_outcomes_of_the_last_runs(http: TestClient, backend: Backend) -> None:
    http.post("programs", json=_form(shop_afl=FLOW))
    inputs: dict[str, Json] = {"item": {"name": "a", "size": "small"}}
    runs = [backend.client.submit("shop.Sell", inputs) for _ in range(25)]
    runs[-1].cancel()
    told = http.get("programs/default/runs", params={"workflow": "shop.Sell"}).json()
    assert told == ["canceled", *["created"] * 19]
    # runs of an earlier version are of the same workflow
    http.post("programs", json=_form(shop_afl=FLOW.replace("100", "200")))
    told = http.get("programs/default/runs", params={"workflow": "shop.Sell"}).json()
    assert told[0] == "canceled"


def test_a_compiled_program_goes_there_and_back(http: TestClient) -> None:
    program = compile_program(Path(__file__).parents[2] / "examples" / "pipelines")
    form = {"files": [], "compiled": dumps(program), "name": "jobs"}
    done = http.post("programs", json=form).json()
    assert done["ok"]
    assert http.get("programs/jobs").json()["sources"] == []
    assert http.get("programs/jobs/compiled").json() == dumps(program)
