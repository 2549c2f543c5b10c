"""What others see of a running service: Prometheus, Grafana's file, and a real browser."""

import contextlib
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import setpoint as sp
from tests.browser import CHROMIUM, DRIVER, running
from tests.stored import CONTROLLER

yaml = pytest.importorskip("yaml", reason="needs pyyaml")
httpx = pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

from setpoint.service.app import Limits, Service  # noqa: E402
from setpoint.service.tokens import Tokens  # noqa: E402
from tests.postgres import free_port  # noqa: E402
from tests.serving import Serving  # noqa: E402

pytestmark = pytest.mark.service

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMES = ["calm", "wild", '<img src=x onerror="window.hacked = 1">', "a/b & <b>bold</b>", "söndag"]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service whose stream "wild" is in trouble, and whose names are markup."""
    store = tmp_path_factory.mktemp("seeing") / "streams.sqlite"
    words = ("--store", str(store), "--window", "50", "--limits", "metrics=4")
    with Serving(*words) as serving, serving.client() as client:
        world = random.Random(1)
        for name in NAMES:
            client.create(name, controller=sp.spec.to_toml(CONTROLLER) if name == "wild" else None)
            far = 30.0 if name == "wild" else 0.0
            client.events(
                [
                    {"id": n, "prediction": [-2, 2], "y": world.gauss(0, 1) + far * n}
                    for n in range(60)
                ],
                name,
            )
        client.predict("calm", [0, 1], "waits")
        yield serving


def samples(serving: Serving) -> dict[str, float]:
    from prometheus_client.parser import text_string_to_metric_families

    text = httpx.get(f"{serving.url}/metrics").text
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(name: str, **labels: str) -> str:
    return f"setpoint_{name}{json.dumps(labels, sort_keys=True)}"


def test_metrics_say_how_each_stream_does_and_no_more_than_the_cap(serving: Serving) -> None:
    found = samples(serving)
    with serving.client() as client:
        rows = {row["name"]: row for row in client.streams()}
    assert found[of("streams")] == len(NAMES)
    assert found[of("stream_labels", stream="wild")] == rows["wild"]["labels"] == 60
    assert found[of("stream_account", stream="wild", risk="0")] == rows["wild"]["accounts"][0]
    assert found[of("stream_bound", stream="wild", risk="0")] == rows["wild"]["bounds"][0]
    assert found[of("stream_coverage", stream="wild", window="100")] == rows["wild"]["coverage"][0]
    assert found[of("events_total")] == 60 * len(NAMES) + 1
    told = {key for key in found if key.startswith("setpoint_stream_labels")}
    assert len(told) == 4  # the worst off, of five
    assert next(iter(rows)) == "wild"


def test_a_list_that_takes_long_is_made_once_for_all_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(lambda: sp.Store(tmp_path, CONTROLLER), Tokens([]), Limits())
    with sp.Store(tmp_path, CONTROLLER) as service.reader:
        service.reader.stream("first")
        assert len(service.metrics.rows()) == 1
        service.reader.stream("second")
        assert len(service.metrics.rows()) == 2  # few streams are looked at each time
        ticks = count()
        monkeypatch.setattr(time, "thread_time", lambda: 0.2 * next(ticks))
        assert len(service.metrics.rows()) == 2
        service.reader.stream("third")
        assert len(service.metrics.rows()) == 2
        time.sleep(2.1)
        assert len(service.metrics.rows()) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs the limits of a running process")
def test_a_full_disk_and_refused_requests_are_counted_and_not_as_events(tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a.sqlite"), "--limits", "batch=50") as serving:
        sent = [{"id": n, "prediction": [0, 1]} for n in range(50)]
        url = f"{serving.url}/v1/streams/a/events"
        with serving.client() as client:
            client.create("a")
            client.predict("a", [0, 1], "x")
        before = samples(serving)
        assert before[of("answers_total", operation="stream_events", status="503")] == 0
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        full = (1, resource.RLIM_INFINITY)
        resource.prlimit(serving.process.pid, resource.RLIMIT_FSIZE, full)
        assert httpx.post(url, json=sent).status_code == 503
        found = samples(serving)
        assert found[of("answers_total", operation="stream_events", status="503")] == 1
        for name in ("events_total", "transactions_total"):
            assert found[of(name)] == before[of(name)]
        resource.prlimit(serving.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert httpx.post(url, json=sent * 2).status_code == 413
        assert httpx.post(url, json=sent).status_code == 200
        assert httpx.get(f"{serving.url}/nowhere").status_code == 404
        found = samples(serving)
        for operation, status in (("stream_events", 413), ("stream_events", 200), ("none", 404)):
            key = of("answers_total", operation=operation, status=str(status))
            assert found[key] == 1
        assert found[of("events_total")] == before[of("events_total")] + 50
        assert found[of("transactions_total")] == before[of("transactions_total")] + 1


def test_the_rules_and_the_dashboard_ask_for_metrics_that_there_are(serving: Serving) -> None:
    names = {key.partition("{")[0] for key in samples(serving)} | {"up"}
    # A price has no samples before a stream has a healthy past.
    names |= set(re.findall(r"^# TYPE (\w+)", httpx.get(f"{serving.url}/metrics").text, re.M))
    board = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    asked += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    for expression in asked:
        assert set(re.findall(r"setpoint_\w+", expression)) <= names, expression


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_metrics_are_named_as_prometheus_asks(serving: Serving) -> None:
    text = httpx.get(f"{serving.url}/metrics").text
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_password_stands_on_a_command_line() -> None:
    for name, service in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].items():
        words = " ".join(service.get("command", []))
        assert "PASSWORD" not in words, name
        assert not re.search(r"//[^@/]*:[^@/]*@", words), name


RULES = """
rule_files: [alerts.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'setpoint_stream_coverage{stream="low",window="1000"}', values: "0.7x30" }
      - { series: 'setpoint_stream_coverage{stream="sides",window="1000"}', values: "0.8x30" }
      - { series: 'setpoint_stream_coverage{stream="young",window="1000"}', values: "0x30" }
      - { series: 'setpoint_stream_coverage{stream="size",window="1000"}', values: "0x30" }
      - { series: 'setpoint_stream_asked{stream="low"}', values: "0.9x30" }
      - { series: 'setpoint_stream_asked{stream="sides"}', values: "0.8x30" }
      - { series: 'setpoint_stream_asked{stream="young"}', values: "0.9x30" }
      - { series: 'setpoint_stream_labels{stream="low"}', values: "500x30" }
      - { series: 'setpoint_stream_labels{stream="sides"}', values: "500x30" }
      - { series: 'setpoint_stream_labels{stream="young"}', values: "1x30" }
      - { series: 'setpoint_stream_labels{stream="size"}', values: "500x30" }
      - { series: 'setpoint_answers_total{operation="events",status="503"}', values: "0 0 1+0x30" }
      - { series: 'setpoint_answers_total{operation="events",status="429"}', values: "0x30" }
      - { series: 'setpoint_answers_total{operation="ready",status="503"}', values: "0+9x30" }
      - { series: 'setpoint_stream_alarm{stream="dead",kind="dearer"}', values: "0x5 1x25" }
      - { series: 'setpoint_stream_alarm{stream="dead",kind="model"}', values: "0x5 1x25" }
      - { series: 'setpoint_stream_alarm{stream="one of many",kind="dearer"}', values: "1x30" }
      - { series: 'setpoint_stream_called{stream="dead"}', values: "0x5 1x25" }
      - { series: 'setpoint_stream_called{stream="one of many"}', values: "0x30" }
      - { series: 'setpoint_stream_price{stream="dead"}', values: "1x5 3.5x25" }
      - { series: 'setpoint_stream_alarm{stream="late",kind="silence"}', values: "0x2 1x28" }
      - { series: 'setpoint_stream_oldest_seconds{stream="late"}', values: "0+3600x30" }
      - { series: 'setpoint_stream_alarm{stream="better",kind="cheaper"}', values: "1x30" }
    alert_rule_test:
      - eval_time: 20m
        alertname: SetpointCoverageLow
        exp_alerts: [{ exp_labels: { severity: page, stream: low } }]
      - eval_time: 5m
        alertname: SetpointRefusesEvents
        exp_alerts: [{ exp_labels: { severity: page, status: "503" } }]
      - { eval_time: 5m, alertname: SetpointDearer, exp_alerts: [] }
      - eval_time: 7m
        alertname: SetpointDearer
        exp_alerts: [{ exp_labels: { severity: page, stream: dead, kind: dearer } }]
      - eval_time: 20m
        alertname: SetpointModelWorse
        exp_alerts: [{ exp_labels: { severity: ticket, stream: dead, kind: model } }]
      - { eval_time: 20m, alertname: SetpointAlarm, exp_alerts: [] }
      - { eval_time: 10m, alertname: SetpointLabelsSilent, exp_alerts: [] }
      - eval_time: 20m
        alertname: SetpointLabelsSilent
        exp_alerts:
          - exp_labels: { severity: page, stream: late, kind: silence }
            exp_annotations:
              summary: >-
                Actual values of late have stopped coming: the oldest prediction waits ten times as
                long as usual.
              description: >-
                It has waited for 20h 0m 0s. Nothing is learnt or guaranteed of what waits.
      - { eval_time: 24m, alertname: SetpointLabelsLate, exp_alerts: [] }
"""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_rules_fire_for_what_they_are_about_and_nothing_else(
    tmp_path: Path,
) -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            if rule["alert"] != "SetpointLabelsSilent":
                rule.pop("annotations")
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / "rules.yaml").write_text(RULES)
    command = ["promtool", "test", "rules", "rules.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def broken(client: Any, name: str, rows: int, far: float, first: int = 0) -> None:
    """Feeds a stream whose forecasts are this far off, on either side."""
    world, sent = random.Random(first), []
    for row in range(first, first + rows):
        forecast = world.choice([-far, far]) + world.gauss(0, 0.1)
        sent.append({"id": row, "prediction": [forecast, forecast], "y": world.gauss(0, 1)})
    client.events(sent, name)


# A browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="needs selenium to drive a browser")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver on the path")
    with running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def wait(browser: Any, script: str, seconds: float = 30.0) -> Any:
    """What a script returns, once it is true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = browser.execute_script(f"return {script}")
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"never: {script}")


@contextmanager
def quiet(browser: Any) -> Iterator[None]:
    """Nothing was complained about meanwhile, and no markup was run."""
    browser.get("about:blank")  # a page of another service may go on asking
    browser.get_log("browser")
    yield
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    assert browser.execute_script("return window.hacked") is None


def test_the_page_lists_streams_by_trouble_and_finds_them(browser: Any, serving: Serving) -> None:
    with quiet(browser):
        browser.get(serving.url)
        wait(browser, "document.querySelectorAll('#rows tr').length === 5")
        links = "[...document.querySelectorAll('#rows a')].map((a) => a.textContent)"
        names = browser.execute_script(f"return {links}")
        assert names[0] == "wild"
        assert sorted(names) == sorted(NAMES)
        assert browser.execute_script("return document.querySelector('#rows img, #rows b')") is None
        first = browser.execute_script("return document.querySelector('#rows tr').className")
        assert first == "bad"
        for of in ("last 1,000", "width"):  # how coverage and width moved, in each row
            lines = f"document.querySelectorAll('#rows td[data-of=\"{of}\"] polyline').length"
            assert browser.execute_script(f"return {lines}") == 5
        assert "wild" in wait(browser, "document.getElementById('alarms').textContent")
        browser.find_element("id", "search").send_keys("ÖNDA")
        wait(browser, "document.querySelectorAll('#rows tr').length === 1")
        assert browser.execute_script(f"return {links}") == ["söndag"]


@pytest.mark.parametrize("name", ["calm", NAMES[2], NAMES[3]])
def test_the_page_of_a_stream_shows_sets_and_labels_as_they_come(
    browser: Any, serving: Serving, name: str
) -> None:
    with quiet(browser), serving.client() as client:
        browser.get(f"{serving.url}/#{quote(name, safe='')}")
        browser.refresh()
        wait(browser, "document.querySelectorAll('#chart .hit').length > 30")
        assert wait(browser, "document.getElementById('name').textContent") == name
        assert "Miscoverage" in wait(browser, "document.getElementById('certificate').textContent")
        assert "mean width" in wait(browser, "document.getElementById('summary').textContent")
        wait(browser, "document.getElementById('state').textContent === 'live'")
        before = browser.execute_script("return document.querySelectorAll('#chart .miss').length")
        id = f"fresh {name}"
        client.predict(name, [-2, 2], id)
        assert "forecast" in wait(browser, "document.getElementById('explained').textContent")
        client.label(name, 50.0, id)
        wait(browser, f"document.querySelectorAll('#chart .miss').length === {before + 1}")
        assert "fresh" in wait(browser, "document.getElementById('events').textContent")


HOSTILE = [
    "__proto__", "constructor", "javascript:window.hacked=1", "#", "%", "%2F..%2F", "a\nb\tc",
    "\u202egnp.exe", "</script><script>window.hacked=1</script>", "💥" * 60, "'; DROP TABLE--", " ",
]  # fmt: skip


def test_hostile_names_are_only_names_on_the_page(browser: Any, tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a")) as serving, serving.client() as client:
        for name in HOSTILE:
            client.create(name)
            client.events([{"id": name, "prediction": [-2, 2], "y": 0.5}], name)
        with quiet(browser):
            browser.get(serving.url)
            wait(browser, f"document.querySelectorAll('#rows tr').length === {len(HOSTILE)}")
            names = "[...document.querySelectorAll('#rows a')].map((a) => a.textContent)"
            assert sorted(browser.execute_script(f"return {names}")) == sorted(HOSTILE)
            for place in range(len(HOSTILE)):
                browser.get(serving.url)
                wait(browser, f"document.querySelectorAll('#rows tr').length === {len(HOSTILE)}")
                link = f"document.querySelectorAll('#rows a')[{place}]"
                name = browser.execute_script(f"{link}.click(); return {link}.textContent")
                wait(browser, "document.querySelectorAll('#chart .hit').length === 1")
                assert wait(browser, "document.getElementById('name').textContent") == name
            assert browser.execute_script("return document.scripts.length") == 1
            browser.get(f"{serving.url}/#%")  # no name at all
            wait(browser, f"document.querySelectorAll('#rows tr').length === {len(HOSTILE)}")


def test_an_answer_that_comes_late_is_not_shown_in_the_chart_of_another_stream(
    browser: Any, serving: Serving
) -> None:
    with quiet(browser), serving.client() as client:
        browser.get(f"{serving.url}/#söndag")
        browser.refresh()
        wait(browser, "document.querySelectorAll('#chart .hit').length > 30")
        browser.execute_script("""
            const soon = window.fetch;
            window.asked = window.late = 0;
            window.fetch = async (place, ...rest) => {
              if (!String(place).includes("/calm/history")) return soon(place, ...rest);
              window.asked += 1;
              await new Promise((done) => setTimeout(done, 3000));
              const answer = await soon(place, ...rest);
              window.late += 1;
              return answer;
            };
            location.hash = "calm";
        """)
        wait(browser, "window.asked")
        browser.execute_script("location.hash = 'wild'")
        wait(browser, "points.length >= 60")
        assert browser.execute_script("return window.late") == 0
        wait(browser, "window.late")
        time.sleep(0.5)
        labels = [row["y"] for row in client.history("wild", limit=120)]
        assert browser.execute_script("return points.map((point) => point.y)") == labels


def test_the_page_fits_a_phone(browser: Any, serving: Serving) -> None:
    browser.set_window_size(390, 844)
    try:
        for path in ("", "#calm"):
            browser.get(f"{serving.url}/{path}")
            browser.refresh()
            shown = "'#rows tr'" if not path else "'#chart .hit'"
            wait(browser, f"document.querySelectorAll({shown}).length > 3")
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= browser.execute_script("return window.innerWidth")
        # The certificate is a list of names and sentences, each wide enough to be read.
        browser.execute_script("document.querySelector('details').open = true")
        said = browser.execute_script("""
            return [...document.querySelectorAll('#certificate dd')].map((dd) =>
              [dd.previousSibling.textContent, dd.getBoundingClientRect().width])""")
        assert {"coverage", "any window", "safeguard"} <= {name for name, _ in said}
        assert min(width for _, width in said) > 200
    finally:
        browser.set_window_size(1200, 900)


def test_the_page_of_a_stream_of_labels_shows_which_ones_are_in_its_sets(
    browser: Any, tmp_path: Path
) -> None:
    with Serving("--store", str(tmp_path / "a")) as serving, serving.client() as client:
        client.create("<i>animals</i>", preset="label_sets")
        sizes = []
        for number, y in enumerate([0, 1, 2, 1, 0]):
            shown = client.predict("<i>animals</i>", [0.5, 0.3, 0.2], number)
            sizes.append(len(shown["labels"]))
            client.label("<i>animals</i>", y, number)
        with quiet(browser):
            browser.get(f"{serving.url}/#{quote('<i>animals</i>')}")
            wait(browser, "document.querySelectorAll('#chart circle').length === 5")
            bars = browser.execute_script("return document.querySelectorAll('#chart .set').length")
            assert bars == sum(sizes)
            browser.find_element("link text", "← all streams").click()
            wait(browser, "document.querySelectorAll('#rows tr').length === 1")
            wait(browser, "getComputedStyle(document.getElementById('stream')).display === 'none'")


def test_the_page_of_a_path_draws_the_last_one_step_by_step(browser: Any, tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path / "a")) as serving, serving.client() as client:
        client.create("week", horizon=7)
        for number in range(20):
            client.predict("week", [float(number + step) for step in range(7)], number)
            client.label("week", [number + step + 0.1 for step in range(7)], number)
        with quiet(browser):
            browser.get(f"{serving.url}/#week")
            wait(browser, "document.querySelectorAll('#chart circle').length === 7")
            times = "[...document.querySelectorAll('#chart text.time')].map((t) => t.textContent)"
            assert browser.execute_script(f"return {times}") == ["step 1", "step 4", "step 7"]
            wait(browser, "document.getElementById('state').textContent === 'live'")
            client.predict("week", [0.0] * 7, "last")
            wait(browser, "document.querySelectorAll('#chart circle').length === 0")
            client.label("week", 1e9, "last", step=2)
            wait(browser, "document.querySelectorAll('#chart circle.miss').length === 1")


def test_with_tokens_the_page_asks_for_one(browser: Any, tmp_path: Path) -> None:
    environment = {"SETPOINT_TOKENS": "all:admin:s3cret-token"}
    with Serving("--store", str(tmp_path / "a"), environment=environment) as serving:
        with serving.client("s3cret-token") as client:
            client.create("hidden")
        browser.get(serving.url)
        wait(browser, "!document.getElementById('key').hidden")
        assert browser.execute_script("return document.querySelectorAll('#rows tr').length") == 0
        browser.find_element("id", "token").send_keys("s3cret-token\n")
        wait(browser, "document.querySelectorAll('#rows tr').length === 1")
        browser.execute_script("sessionStorage.clear()")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_a_model_that_dies_turns_the_page_and_fires_an_alert_with_its_name(
    browser: Any, tmp_path: Path
) -> None:
    for file in ("prometheus.yaml", "alerts.yaml"):
        shutil.copy(DEPLOY / file, tmp_path)
    (tmp_path / "token").write_text("any")
    with Serving("--store", str(tmp_path / "a.sqlite")) as serving, serving.client() as client:
        for name in ("healthy", "dying"):
            client.create(name)
            broken(client, name, 800, 0.0)
        config = yaml.safe_load((tmp_path / "prometheus.yaml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{serving.port}"]
        del config["alerting"]
        (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
        rules = (tmp_path / "alerts.yaml").read_text().replace("for: 5m", "for: 1s")
        (tmp_path / "alerts.yaml").write_text(rules)
        for what in ("rules alerts.yaml", "config prometheus.yaml"):
            subprocess.run(["promtool", "check", *what.split()], cwd=tmp_path, check=True)
        port = free_port()
        command = ["prometheus", "--config.file=prometheus.yaml", "--log.level=error"]
        command += [f"--storage.tsdb.path={tmp_path}/d", f"--web.listen-address=127.0.0.1:{port}"]
        with subprocess.Popen(command, cwd=tmp_path) as process:
            try:
                browser.get(serving.url)
                wait(browser, "document.querySelectorAll('#rows tr').length == 2")
                assert browser.execute_script("return document.querySelector('tr.bad')") is None
                broken(client, "dying", 120, 9.0, first=800)
                wait(browser, "document.querySelector('tr.bad a')?.textContent == 'dying'")
                wait(browser, "document.querySelector('td.bad[data-of=model]')")
                said = wait(browser, "document.querySelector('#alarms li')?.textContent")
                assert "the guarantee still holds" in said
                fired: set[tuple[str, str]] = set()
                until = time.monotonic() + 60
                while not fired and time.monotonic() < until:
                    time.sleep(1)
                    with contextlib.suppress(httpx.TransportError):
                        answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/alerts").json()
                        fired = {
                            (alert["labels"]["alertname"], alert["labels"]["stream"])
                            for alert in answer["data"]["alerts"]
                            if alert["state"] == "firing"
                        }
                assert fired
                assert {stream for _, stream in fired} == {"dying"}
                assert {name for name, _ in fired} <= {"SetpointDearer", "SetpointModelWorse"}
            finally:
                process.terminate()
        # It is known and is to stay: the alarm ends.
        assert set(client.show("dying")["alarms"]) & {"dearer", "model"}
        assert client.acknowledge("dying")["alarms"] == {}
        wait(browser, "document.querySelector('tr.bad') === null && 1")
        browser.get(f"{serving.url}/#dying")
        wait(browser, "document.querySelectorAll('#chart text.time').length == 3")
        assert "9" in wait(browser, "document.querySelector('#guarantee')?.textContent")


def test_requests_are_spans_below_those_of_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from setpoint.service import watch

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    watch._tracer.cache_clear()
    parent = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    watch.span("predict", parent, 0.25, {"stream": "north", "status": 200, "kind": None})
    watch._tracer.cache_clear()
    (one,) = spans.get_finished_spans()
    assert one.name == "setpoint predict"
    assert f"{one.context.trace_id:x}" == "ab" * 16
    assert dict(one.attributes or {}) == {"setpoint.stream": "north", "setpoint.status": 200}
    assert one.end_time - one.start_time == 250_000_000
