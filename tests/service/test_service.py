"""A real service in a process of its own, asked over HTTP."""

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import setpoint as sp
from setpoint.errors import InputError
from tests.stored import CONTROLLER, events, reference, same

httpx = pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

from setpoint.client import AsyncClient, ServiceError  # noqa: E402
from setpoint.service.tokens import Tokens  # noqa: E402
from tests.serving import Serving  # noqa: E402

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("service")
    with Serving("--store", f"{folder}/streams.sqlite", "--limits", "batch=500") as serving:
        yield serving


def ask(serving: Serving, method: str, path: str, **options: Any) -> Any:
    return httpx.request(method, serving.url + path, timeout=30, **options)


def test_a_stream_lives_through_all_of_its_operations(serving: Serving) -> None:
    with serving.client() as client:
        made = client.create("demand", coverage=0.8)
        assert made["levels"] == [0.2]
        assert client.create("demand", coverage=0.8)["name"] == "demand"
        with pytest.raises(ServiceError, match="another controller") as told:
            client.create("demand", coverage=0.9)
        assert told.value.status == 409
        shown = client.predict("demand", [10, 14])
        assert client.label("demand", 15.0, shown["id"]) == {
            "id": shown["id"], "loss": 1.0, "covered": False,
        }  # fmt: skip
        assert client.label("demand", 15.0, shown["id"])["repeated"]
        late = client.predict("demand", [10, 14], "late")
        client.predict("demand", [10, 14], "lost")
        client.predict("demand", [10, 14], [7, "days"])
        assert client.explain("demand", [7, "days"])["id"] == [7, "days"]
        client.forget("demand", [client.drop("demand", [7, "days"])["id"]])
        why, last = client.explain("demand", "late"), client.explain("demand")
        assert (why["id"], last["id"], why["numbers"]["forecast"]) == ("late", "lost", 12.0)
        assert [name for name, _ in why["lines"]][-1] == "interval"
        assert why["numbers"]["upper"] == late["upper"]
        with pytest.raises(ServiceError, match="no prediction waits under never"):
            client.explain("demand", "never")
        assert client.drop("demand", "lost") == {"id": "lost", "dropped": True}
        assert client.label("demand", 12, "late") == {"id": "late", "loss": 0.0, "covered": True}
        rows = client.history("demand")
        assert [row["ended"] for row in rows] == ["answered", "answered", "dropped"]
        assert rows[1]["shown"]["upper"] == late["upper"]
        assert [row["id"] for row in client.history("demand", after=0, limit=1)] == ["late"]
        certificate = client.certificate("demand")
        assert certificate["groups"] == {"count": 0, "nearest": []}
        assert certificate["risks"][0]["judged"] == 2
        assert "Miscoverage" in certificate["text"]
        changed = client.change("demand", level=0.3)
        assert changed["levels"] == [0.3]
        assert "level = 0.3" in changed["controller"]
        client.change("demand", level=0.3)
        assert len(client.certificate("demand")["earlier"]) == 1
        assert client.reset("demand")["levels"] == [0.3]
        assert len(client.certificate("demand")["earlier"]) == 1  # the account goes on
        row = client.show("demand")
        assert (row["predictions"], row["labels"], row["pending"]) == (4, 0, 0)
        assert row["summary"]["recent"] == 2
        assert [row["name"] for row in client.streams("eman")] == ["demand"]


def test_groups_are_named_with_a_prediction(serving: Serving) -> None:
    with serving.client() as client:
        client.create("rainy", coverage=0.9)
        for row in range(30):
            shown = client.predict("rainy", [10, 14], row, groups=["rain", f"hour={row % 3}"])
            client.label("rainy", shown["upper"] + 1.0 if shown.get("upper") else 12.0, row)
        assert client.predict("rainy", [10, 14], 3, ["rain", "hour=0"])["repeated"]
        with pytest.raises(ServiceError, match="another prediction was made under the id 3"):
            client.predict("rainy", [10, 14], 3)
        with pytest.raises(ServiceError, match='groups must be a list of names, such as \\["rain"'):
            client._send("POST", "/v1/streams/rainy/predict", {"prediction": 1, "groups": "rain"})
        certificate = client.certificate("rainy")
        assert certificate["groups"]["count"] == 4
        (worst, *_) = certificate["groups"]["nearest"]
        assert (worst["group"], worst["judged"]) == ("rain", 30)
        assert "rain: at most 10.9 misses above 10 %" in certificate["text"]
        assert client.history("rainy")[0]["groups"] == ["rain", "hour=0"]


def test_a_stream_can_be_made_of_toml(serving: Serving) -> None:
    with serving.client() as client:
        client.create("toml", controller=sp.spec.to_toml(CONTROLLER))
        assert client.predict("toml", [0, 1], 7)["id"] == 7
        with pytest.raises(ServiceError, match="allowed are") as told:
            client.create("toml2", controller="[sets]\npart = 'Widen'\n")
        assert (told.value.status, told.value.kind) == (422, "SpecError")


@pytest.mark.parametrize("lines", [False, True])
def test_batches_are_answered_in_order_each_event_for_itself(serving: Serving, lines: bool) -> None:
    name = f"batch {lines}"
    with serving.client() as client:
        client.create(name)
    sent: list[Any] = [
        {"id": 1, "prediction": [0, 1]}, {"id": "x", "y": 1}, {"id": 1, "y": 0.5}, {"what": 1},
    ]  # fmt: skip
    kind = "application/x-ndjson" if lines else "application/json"
    text = "\n".join(map(json.dumps, sent)) if lines else json.dumps(sent)
    path = f"/v1/streams/{quote(name)}/events"
    answer = ask(serving, "POST", path, content=text, headers={"content-type": kind})
    assert answer.headers["content-type"] == kind
    rows = [json.loads(row) for row in answer.text.splitlines()] if lines else answer.json()
    assert [row.get("kind") for row in rows] == [None, "UnknownReceipt", None, "InputError"]
    assert rows[2] == {"id": 1, "loss": 0.0, "covered": True}
    many = [{"id": f"m{n}", "prediction": [0, 1]} for n in range(501)]
    assert ask(serving, "POST", path, json=many).status_code == 413
    assert ask(serving, "POST", "/v1/events", json=[{"id": 1, "y": 1}]).json()[0] == {
        "id": 1, "error": "an event must name its stream here", "kind": "InputError",
    }  # fmt: skip


def test_an_event_that_names_another_stream_is_refused_and_the_others_are_taken_in(
    serving: Serving,
) -> None:
    with serving.client() as client:
        client.create("mine")
    sent = [
        {"id": 1, "prediction": [0, 1]}, {"stream": "other", "id": 2, "prediction": [0, 1]},
        {"stream": "mine", "id": 1, "y": 0.5},
    ]  # fmt: skip
    answers = ask(serving, "POST", "/v1/streams/mine/events", json=sent).json()
    assert [answer.get("kind") for answer in answers] == [None, "InputError", None]
    assert answers[1]["stream"] == "other"
    assert answers[1]["error"] == 'an event here must be of "mine": use /v1/events'


def test_a_stream_is_renamed_exported_imported_forgotten_and_deleted(serving: Serving) -> None:
    sent, name = events(40), "moved/<b>"
    with serving.client() as client:
        client.create("a", controller=sp.spec.to_toml(CONTROLLER))
        mine = [event for event in sent if event["stream"] == "a"]
        client.events([{**event, "stream": "a"} for event in mine[:30]])
        client.create("taken")
        before = client.show("a")
        for body in ({"name": "taken", "level": 0.3}, {"name": "", "level": 0.3}, {"name": ""}):
            assert ask(serving, "PATCH", "/v1/streams/a", json=body).status_code in (409, 422)
        assert client.show("a")["levels"] == before["levels"]  # all of a change, or nothing
        assert client.rename("a", name)["name"] == name
        with pytest.raises(ServiceError, match="there is no stream") as told:
            client.show("a")
        assert told.value.status == 404
        lines = client.export_stream(name)
        client.import_stream("twin", lines)
        with pytest.raises(ServiceError, match="already") as told:
            client.import_stream("twin", lines)
        assert told.value.status == 409
        with pytest.raises(ServiceError, match="the export is damaged") as told:
            client.import_stream("cut", lines[:-200])
        assert told.value.status == 422
        for other in (name, "twin"):
            client.events([{**event, "stream": other} for event in mine[30:]])
            assert client.show(other)["theta"] == [reference(sent)["a"].theta]
        (past, *_) = client.history("twin", after=-1)
        assert client.forget("twin", [past["id"]]) == {"forgotten": 1}
        assert past["id"] not in [row["id"] for row in client.history("twin", limit=1000)]
        assert client.forget("twin")["forgotten"] > 10
        assert client.show("twin")["theta"] == [reference(sent)["a"].theta]
        assert client.delete("twin") == {"deleted": "twin"}
        with pytest.raises(ServiceError, match="there is no stream"):
            client.delete("twin")
        assert "twin" not in [row["name"] for row in client.streams(limit=1000)]
        names = [row["name"] for row in client.streams(limit=1000)]
        paged = [client.streams(limit=1, offset=place)[0]["name"] for place in range(len(names))]
        assert paged == names


def test_putting_a_stream_twice_changes_nothing_whatever_was_patched_between(
    serving: Serving,
) -> None:
    with serving.client() as client:
        client.create("twice", coverage=0.8, support=(0, inf), period=24)
        client.change("twice", level=0.3)
        before = client.show("twice")
        again = client.create("twice", coverage=0.8, support=(0, inf), period=24)
        assert again["levels"] == [0.3]
        assert again["controller"] == before["controller"]
        assert "support = [0.0, inf]" in again["controller"]
        assert "period = 24" in again["controller"]
        assert client.predict("twice", 1.0, "x")["id"] == "x"
        with pytest.raises(ServiceError, match="another controller"):
            client.create("twice", coverage=0.9)
        for options in (
            {"preset": "label_sets", "period": 7},
            {"controller": "", "support": (0, 1)},
        ):
            with pytest.raises(ServiceError, match="goes with the preset intervals") as told:
                client.create("none", **options)
            assert told.value.status == 422
        with pytest.raises(ServiceError, match="support"):
            client.create("none", support=(3, 2))
        client.create("weather", features=["rain"], coverage=[0.5, 0.9], guarded=[0.9])
        shown = client.predict("weather", 3.0, features={"rain": 0.5})
        assert {"quantiles"} <= shown.keys()


DEEP = {
    "a list in TOML": {"controller": "x = " + "[" * 5000},
    "a table in TOML": {"controller": "[sets]\npart = 'Widen'\nx = " + "[" * 900 + "]" * 900},
    "a season": {
        "controller": sp.spec.to_toml(sp.intervals(period=24)).replace("= 24", "= 1000000")
    },
    "a preset": {"preset": "intervals", "period": 1_000_000},
}


@pytest.mark.parametrize("what", DEEP)
def test_what_is_too_deep_or_too_large_is_refused_at_once(serving: Serving, what: str) -> None:
    answer = ask(serving, "PUT", "/v1/streams/deep", json=DEEP[what])
    assert answer.status_code == 422, answer.text
    assert "nested too deep" in answer.text or "numbers of a season" in answer.text
    assert ask(serving, "GET", "/health").status_code == 200
    deep = b'{"step": {"part": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
    headers = {"content-type": "application/json"}
    patched = ask(serving, "PATCH", "/v1/streams/deep", content=deep, headers=headers)
    assert patched.status_code in (400, 404, 422)


def test_ids_that_are_no_text_are_refused_and_long_ones_come_back(serving: Serving) -> None:
    with serving.client() as client:
        client.create("ids")
    headers, place = {"content-type": "application/json"}, "/v1/streams/ids/predict"
    half = b'{"id": "\\ud800", "prediction": [0, 1]}'
    answer = ask(serving, "POST", place, content=half, headers=headers)
    assert (answer.status_code, "whole characters" in answer.text) == (422, True)
    long = {"id": [10**500, "x"], "prediction": [0, 1]}
    assert ask(serving, "POST", place, json=long).status_code == 200
    rows = ask(serving, "GET", "/v1/streams/ids/history").json()
    assert [row["id"] for row in rows] == [[10**500, "x"]]


def test_an_unknown_class_is_refused(serving: Serving) -> None:
    with serving.client() as client:
        client.create("animals", preset="label_sets")
        client.predict("animals", {"cat": 0.7, "dog": 0.3}, 1)
        with pytest.raises(ServiceError, match='one of the classes "cat", "dog", got "car"'):
            client.label("animals", "car", 1)
        assert "error" not in client.label("animals", "dog", 1)


HOSTS = {
    ("LOCALHOST",): 200, ("LocalHost:8000",): 200, ("[::1]",): 200, ("127.9.9.9:1",): 200,
    ("[::ffff:127.0.0.1]",): 200, ("[::ffff:10.0.0.1]",): 403, ("localhost.",): 403,
    ("localhost", "evil.example"): 400, ("evil.example", "localhost"): 400, ("[localhost]",): 403,
}  # fmt: skip


@pytest.mark.parametrize("hosts", HOSTS, ids=" ".join)
def test_hosts_that_name_this_machine_are_served_and_no_others(
    serving: Serving, hosts: tuple[str, ...]
) -> None:
    lines = "".join(f"host: {host}\r\n" for host in hosts)
    with socket.create_connection(("127.0.0.1", serving.port), 10) as connection:
        connection.sendall(f"GET /v1/streams HTTP/1.1\r\n{lines}\r\n".encode())
        answer = connection.recv(1 << 16)
    assert int(answer.split()[1]) == HOSTS[hosts], answer


def test_a_store_whose_file_is_gone_is_not_ready_and_acknowledges_nothing(tmp_path: Path) -> None:
    store = tmp_path / "a.sqlite"
    with Serving("--store", str(store)) as serving, serving.client(attempts=1) as client:
        client.create("a")
        client.predict("a", [0, 1], 1)
        store.unlink()
        with pytest.raises(ServiceError, match="was deleted or replaced") as told:
            client.predict("a", [0, 1], 2)
        assert told.value.status == 503
        assert ask(serving, "GET", "/ready").status_code == 503


def test_no_more_pages_look_on_than_may_however_many_ask_at_once(tmp_path: Path) -> None:
    async def asked(url: str) -> list[int]:
        limits = httpx.Limits(max_connections=400)
        async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits) as client:
            pages = [
                await client.send(request, stream=True)
                for request in [client.build_request("GET", "/v1/streams/a/live")]
            ]
            many = [
                client.send(client.build_request("GET", "/v1/streams/a/live"), stream=True)
                for _ in range(250)
            ]
            pages += await asyncio.gather(*many)
            statuses = [page.status_code for page in pages]
            await asyncio.gather(*[page.aclose() for page in pages])
        return statuses

    with Serving("--store", str(tmp_path / "a")) as serving, serving.client() as client:
        client.create("a")
        statuses = asyncio.run(asked(serving.url))
        assert (statuses.count(200), statuses.count(429)) == (100, 151)
        until = time.monotonic() + 20
        while time.monotonic() < until:  # their places are free once they have gone
            with httpx.stream("GET", f"{serving.url}/v1/streams/a/live", timeout=5) as page:
                if page.status_code == 200:
                    break
            time.sleep(0.2)
        assert page.status_code == 200


def test_many_asyncio_tasks_share_one_stream(serving: Serving) -> None:
    """Each event counts once, also those that were cancelled and sent again."""

    async def work(client: AsyncClient, number: int) -> None:
        for n in range(10):
            id = f"{number} {n}"
            if n % 3 == 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(client.predict("shared", [0, 1], id), 0.003)
            await client.predict("shared", [0, 1], id)
            await client.label("shared", 0.5, id)

    async def run() -> Any:
        async with AsyncClient(serving.url, timeout=30) as client:
            await client.create("shared")
            await asyncio.gather(*[work(client, number) for number in range(20)])
            return await client.show("shared")

    row = asyncio.run(run())
    assert (row["predictions"], row["labels"], row["pending"]) == (200, 200, 0)


def test_the_log_is_lines_of_json_with_fields(tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a"), "--log", "info") as serving:
        with serving.client() as client:
            client.create("a")
            with pytest.raises(ServiceError):
                client.label("a", 1, "none")
        _, said = serving.stop()
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    made, refused = [line for line in lines if line["message"] == "request"]
    assert (made["operation"], made["status"], made["stream"]) == ("create", 200, "a")
    assert made["seconds"] > 0
    assert (refused["operation"], refused["status"]) == ("label", 404)


def test_lines_are_counted_before_they_are_read(serving: Serving) -> None:
    headers = {"content-type": "application/x-ndjson"}
    answer = ask(serving, "POST", "/v1/events", content=b"{\n" * (4 << 20), headers=headers)
    assert answer.status_code == 413


def test_what_many_clients_send_at_once_is_what_a_stream_would_have_taken_in(
    tmp_path: Path,
) -> None:
    sent, seed = events(300), random.Random(3)
    path = tmp_path / "streams.sqlite"
    config = tmp_path / "controller.toml"
    config.write_text(sp.spec.to_toml(CONTROLLER))
    names = {
        "a": [e for e in sent if e["stream"] == "a"],
        "b": [e for e in sent if e["stream"] == "b"],
    }

    async def send(url: str, part: list[dict[str, Any]]) -> None:
        """Everything twice, as a client would whose answers were lost."""
        async with AsyncClient(url) as client:
            place = 0
            while place < len(part):
                size = seed.randrange(1, 9)
                for _ in range(2):
                    for answer in await client.events(part[place : place + size]):
                        assert "error" not in answer, answer
                place += size

    async def both(url: str) -> None:
        await asyncio.gather(*(send(url, part) for part in names.values()))

    with Serving("--store", str(path), "--controller", str(config)) as serving:
        asyncio.run(both(serving.url))
        status, said = serving.stop()
        assert (status, said) == (0, "")
    with sp.Store(path) as store:
        same(store, reference(sent))


def test_requests_in_flight_are_answered_before_it_stops(tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a.sqlite")) as serving:
        with serving.client() as client:
            client.create("a")
        answers: list[Any] = []

        def send(name: str) -> bool:
            batch = [{"id": f"{name}-{n}", "prediction": [0, 1]} for n in range(30)]
            try:
                answers.append(ask(serving, "POST", "/v1/streams/a/events", json=batch))
            except httpx.TransportError:  # nobody took it
                return False
            return bool(answers[-1].status_code == 200)

        def keep(number: int) -> None:
            for turn in range(1000):
                if not send(f"{number}-{turn}"):
                    return

        threads = [threading.Thread(target=keep, args=[n]) for n in range(8)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 30
        while len(answers) < 8 and time.monotonic() < until:
            time.sleep(0.01)
        status, said = serving.stop()
        for thread in threads:
            thread.join()
    assert (status, said) == (0, "")
    with sp.Store(tmp_path / "a.sqlite") as store:
        known = set(store.read("a").pending)
    told = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(told) >= 8
    assert {row["id"] for rows in told for row in rows if "error" not in row} == known


def test_too_much_at_once_is_refused_with_429_and_nothing_else(tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a.sqlite"), "--limits", "waiting=50") as serving:
        with serving.client() as client:
            client.create("a")
        statuses: list[int] = []

        def send(number: int) -> None:
            batch = [{"id": f"{number}-{n}", "prediction": [0, 1]} for n in range(40)]
            answer = ask(serving, "POST", "/v1/streams/a/events", json=batch)
            statuses.append(answer.status_code)
            if answer.status_code == 429:
                assert answer.headers["retry-after"] == "1"
                assert "events wait" in answer.json()["detail"]

        threads = [threading.Thread(target=send, args=[n]) for n in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 429}
        # A client that tries again gets all of it in.
        with serving.client() as client:
            answers = client.events([{"id": f"r{n}", "prediction": [0, 1]} for n in range(40)], "a")
            assert len(answers) == 40


TOKENS = """
[reader]
scope = "read"
token = "read-secret"
[writer]
scope = "write"
sha256 = "{digest}"
[boss]
scope = "admin"
token = "admin-secret"
[old]
scope = "admin"
token = "old-secret"
expires = 2020-01-01
"""


def test_tokens_allow_what_their_scope_says(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(TOKENS.replace("{digest}", sha256(b"write-secret").hexdigest()))
    environment = {"SETPOINT_TOKENS": "more:read:env-secret"}
    words = ("--store", str(tmp_path / "a.sqlite"), "--tokens", str(file), "--host", "0.0.0.0")
    with Serving(*words, environment=environment) as serving:
        secrets = {"read": "read-secret", "write": "write-secret", "admin": "admin-secret"}
        asked = {
            "admin": ("PUT", "/v1/streams/a", {"preset": "intervals"}),
            "write": ("POST", "/v1/streams/a/predict", {"id": "x", "prediction": [0, 1]}),
            "read": ("GET", "/v1/streams/a", None),
        }
        for needed, (method, path, body) in asked.items():
            for scope, secret in secrets.items():
                order = ["read", "write", "admin"]
                headers = {"authorization": f"Bearer {secret}"}
                status = ask(serving, method, path, json=body, headers=headers).status_code
                assert status == (200 if order.index(scope) >= order.index(needed) else 403)
            for header in (
                None, "", "Bearer", "Bearer wrong", "Basic read-secret", "read-secret",
                "Bearer old-secret", "Bearer  read-secret", "bearer\tread-secret", "Bearer \xff",
            ):  # fmt: skip
                headers = {} if header is None else {"authorization": header.encode("latin-1")}
                answer = ask(serving, method, path, json=body, headers=headers)
                assert answer.status_code == 401, header
                assert answer.headers["www-authenticate"] == "Bearer"
        ok = {"authorization": "bearer env-secret"}
        assert ask(serving, "GET", "/metrics", headers=ok).status_code == 200
        assert ask(serving, "GET", "/metrics").status_code == 401
        assert ask(serving, "GET", "/health").status_code == 200
        _, said = serving.stop()
        assert "secret" not in said


@pytest.mark.parametrize("word", ["hunter2secret", "app:hunter2secret", "a:read:s3cret1 hunter2"])
def test_a_word_that_is_no_token_is_named_by_its_place_and_not_shown(word: str) -> None:
    with pytest.raises(InputError, match=f"word {len(word.split())} is none") as told:
        Tokens.read(None, {"SETPOINT_TOKENS": word})
    assert "hunter2" not in str(told.value)


def test_tokens_that_are_given_but_empty_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text("# none yet\n")
    for path, environment in ((file, {}), (None, {"SETPOINT_TOKENS": " "}), (file, {"A": "b"})):
        with pytest.raises(InputError, match="holds no token"):
            Tokens.read(path, environment)
    assert Tokens.read(file, {"SETPOINT_TOKENS": "app:write:s3cret:1"}).allows(b"s3cret:1", "write")
    assert not Tokens.read(None, {})
    with pytest.raises(AssertionError, match="holds no token"):
        Serving("--store", str(tmp_path / "a"), "--tokens", str(file))


def test_without_tokens_only_this_machine_is_served(tmp_path: Path, serving: Serving) -> None:
    with pytest.raises(AssertionError, match="without tokens the service answers on this machine"):
        Serving("--store", str(tmp_path / "a"), "--host", "0.0.0.0")
    answer = ask(serving, "GET", "/v1/streams", headers={"host": "evil.example"})
    assert answer.status_code == 403  # a name that leads here from a page of elsewhere
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {} if kind is None else {"content-type": kind}
        text = b'{"id": 1, "prediction": [0, 1]}'
        answer = ask(serving, "POST", "/v1/streams/a/predict", content=text, headers=headers)
        assert answer.status_code == 415


BAD = {
    b"": 400, b"{": 400, b'{"id": 1, "id": 2, "prediction": [0, 1]}': 400, b"\xff": 400,
    b"[" * 100_000: 400, b"[]": 422, b"7": 422, b"null": 422, b"{}": 422,
    b'{"prediction": [0, 1], "drop": true}': 422, b'{"id": true, "prediction": [0, 1]}': 422,
    b'{"id": 1, "prediction": "x"}': 422, b'{"id": 1, "prediction": [2, NaN]}': 422,
    b'{"id": 1, "prediction": [0, 1, 2]}': 422, b" " * (9 << 20): 413,
    b'{"id": "' + b"x" * 300 + b'", "prediction": [0, 1]}': 422,
}  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_a_bad_body_gets_one_sentence_and_no_traceback(serving: Serving, body: bytes) -> None:
    with serving.client() as client:
        client.create("bad")
    headers = {"content-type": "application/json"}
    answer = ask(serving, "POST", "/v1/streams/bad/predict", content=body, headers=headers)
    assert answer.status_code == BAD[body]
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == BAD[body]
    assert 0 < len(problem["detail"]) <= 1000
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", ["...", "a/b", "<b>&\"'", "ä🙂", "%2F", "x" * 200, " ", "?#"])
def test_a_name_may_be_any_text(serving: Serving, name: str) -> None:
    with serving.client() as client:
        path = "/v1/streams/" + quote(name, safe="").replace(".", "%2E")
        raw = httpx.URL(serving.url).copy_with(raw_path=path.encode())
        made = httpx.put(raw, json={"preset": "intervals"})
        assert made.json()["name"] == name
        assert name in [row["name"] for row in client.streams(limit=1000)]


def test_paths_that_lead_nowhere_are_told_so(serving: Serving) -> None:
    for path, status in {
        "/v1/streams/%ff": 400, "/v1/streams/%00": 422, f"/v1/streams/{'x' * 300}": 422,
        "/v1/streams/%2E%2E": 422, "/v1/streams/": 404, "/v1/streams//predict": 404,
        "/v1/streams/none": 404, "/v1/streams/none/history": 404, "/v1/streams/none/live": 404,
        "/v1/streams/none/certificate": 404, "/../../etc/passwd": 404, "/page.html": 404,
        "/v1/streams?limit=0": 422, "/v1/streams?limit=9e9": 422, "/v1/alarms?limit=x": 422,
    }.items():  # fmt: skip
        raw = httpx.URL(serving.url).copy_with(raw_path=path.encode())
        answer = httpx.get(raw)
        assert answer.status_code == status, path
        assert answer.json()["detail"]
    assert ask(serving, "DELETE", "/v1/streams").status_code == 405


def test_the_head_of_a_live_page_is_answered_at_once(serving: Serving) -> None:
    with serving.client() as client:
        client.create("head")
    answer = httpx.head(f"{serving.url}/v1/streams/head/live", timeout=5)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_store_that_cannot_be_opened_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"^setpoint: .* cannot be used: [^\n]*\n") as told:
        Serving("--store", str(tmp_path / "none" / "x.sqlite"))
    assert "Traceback" not in str(told.value)


TRICKS = {
    b"POST /v1/streams/t/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n": {400, 415},
    b"POST /v1/streams/t/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n": {400},
    b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 200_000 + b"\r\n\r\n": {200, 400},
    b"GET /v1/streams HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: localhost\r\n\r\n": {403},
    b"GET /v1/streams HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-for: 127.0.0.1\r\n\r\n": {403},
    b"GET /v1/streams HTTP/1.1\r\nhost: localhost.evil.example\r\n\r\n": {403},
    b"GET /v1/streams HTTP/1.1\r\nhost: evil.example@localhost\r\n\r\n": {400, 403},
    b"GET /v1/streams HTTP/1.0\r\n\r\n": {403},
    b"GET http://evil.example/v1/streams HTTP/1.1\r\nhost: evil.example\r\n\r\n": {403, 404},
    b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n": {200, 400},
    b"GET /health\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n": {400},
    b"POST /v1/streams HTTP/1.1\r\nhost: localhost\r\nx-http-method-override: GET\r\n"
    b"content-length: 0\r\n\r\n": {405},
    b"HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\n": {200},
    b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 2\r\nexpect: 100-continue\r\n\r\n": {100},
    b"FOO /health HTTP/1.1\r\nhost: localhost\r\n\r\n": {400, 405},
    b"GET /page.css/../../app.py HTTP/1.1\r\nhost: localhost\r\n\r\n": {404},
    b"GET /%2e%2e/app.py HTTP/1.1\r\nhost: localhost\r\n\r\n": {404},
    b"\x16\x03\x01\x00\xa5\x01\x00": {400},
}  # fmt: skip


@pytest.mark.parametrize("place", range(len(TRICKS)))
def test_tricks_with_headers_and_paths_gain_nothing(serving: Serving, place: int) -> None:
    request, statuses = list(TRICKS.items())[place]
    with socket.create_connection(("127.0.0.1", serving.port), 10) as connection:
        connection.sendall(request)
        answer = connection.recv(1 << 16)
    assert int(answer.split()[1]) in statuses, answer
    assert b"Traceback" not in answer
    assert ask(serving, "GET", "/health").status_code == 200


def test_a_client_goes_on_when_the_service_was_killed_and_started_again(tmp_path: Path) -> None:
    store = str(tmp_path / "a.sqlite")
    first = Serving("--store", store)
    with first.client(attempts=12) as client:
        client.create("a")
        assert "repeated" not in client.predict("a", [0, 1], "x")
        first.kill()
        later = threading.Timer(
            0.5, lambda: running.append(Serving("--store", store, port=first.port))
        )
        running: list[Serving] = []
        later.start()
        assert client.label("a", 0.5, "x")["covered"]
        later.join()
        assert client.predict("a", [0, 1], "x")["repeated"]
    with running[0]:
        pass
