"""Requests that are nearly right, by the thousand."""

import random
import threading
from typing import Any

import httpx

__all__ = ["attack"]

PARTS: list[Any] = [
    b'{"id": 1, "prediction": [0, 1]}', b'{"id": "x", "y": 0.5}', b'{"id": 1, "drop": true}',
    b'[{"stream": "a", "id": 2, "prediction": [0, 1]}, {"stream": "a", "id": 2, "y": 1}]',
    b'{"preset": "intervals", "coverage": 0.9}', b'{"level": 0.2, "risk": 0}',
    b'{"name": "b"}', b'{"ids": [1, "x", [2, "y"]], "before": 1e9}', b'{"before": null}',
    b'{"preset": "intervals", "support": [0, null], "period": 24}',
    b'{"kind": "setpoint streams", "version": 1}\n{"stream": "b", "controller": "", "first": ""}',
    b'{"controller": "[sets]\\npart = \\"Widen\\"\\n[[risks]]\\nlevel = 0.1\\n"}',
    b'{"id": [1, "x"], "prediction": [0, 1, 2], "groups": ["r"]}', b'{"id": 1, "y": [0, 1, 2]}',
    b'{"id": [1, "x"], "y": 0.5, "step": 2}', b'{"id": 1, "score": 0.5}',
    b'{"id": 1, "wrong": true}', b'{"reset": true, "acknowledge": true}',
    b'{"gate": {"errors": 0.05, "audits": 0.5, "per": "action"}}',
    b'{"preset": "paths", "horizon": 3, "totals": [3], "maximum": true, "every": 2}',
    b'{"preset": "intervals", "coverage": [0.5, 0.9], "guarded": [0.9], "features": ["t"]}',
]  # fmt: skip
PATHS = [
    "/v1/streams/a/predict", "/v1/streams/a/label", "/v1/streams/a/drop", "/v1/streams/a/events",
    "/v1/events", "/v1/streams/a", "/v1/streams", "/v1/streams/a/history?after=0&limit=5",
    "/v1/streams/a/certificate", "/metrics", "/", "/ready", "/v1/alarms", "/v1/streams/b",
    "/v1/streams/a/export", "/v1/streams/b/import", "/v1/streams/a/forget",
    "/v1/streams?offset=1&limit=2", "/v1/streams/a/explain?id=1", "/v1/streams/g/decide",
    "/v1/streams/g/label", "/v1/streams/g", "/v1/streams/p/predict", "/v1/streams/p/label",
    "/v1/streams/p/events", "/v1/streams/p", "/v1/streams/p/history",
]  # fmt: skip
SMALL = ["nan", "1e999", "-1", "null", "[]", "{}", '"\\ud800"', "9" * 400, "true", '""', "\x00"]


def mutated(world: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    """A request that is nearly right."""
    body = bytearray(world.choice(PARTS))
    for _ in range(world.randrange(4)):
        place = world.randrange(len(body) + 1)
        match world.randrange(4):
            case 0:
                body[place : place + world.randrange(8)] = b""
            case 1:
                body[place:place] = world.choice(SMALL).encode()
            case 2:
                body[place:place] = world.randbytes(world.randrange(1, 5))
            case 3:
                body[place : place + 1] = body[place : place + 9] * world.randrange(1, 4)
    path = world.choice(PATHS)
    if world.random() < 0.3:
        place = world.randrange(1, len(path) + 1)
        path = (
            path[:place]
            + world.choice(["%2F", "%00", "%ff", "..", "//", "?", "%", "%C3%A9"])
            + path[place:]
        )
    kind = world.choice(["application/json"] * 6 + ["application/x-ndjson", "text/plain"])
    method = world.choice(["POST"] * 6 + ["PUT", "PATCH", "GET", "DELETE", "HEAD"])
    return method, path, bytes(body), {"content-type": kind}


BEGUN: dict[str, Any] = {
    "a": {"preset": "intervals"}, "p": {"preset": "paths", "horizon": 3},
    "g": {"gate": {"errors": 0.05}},
}  # fmt: skip


def attack(url: str, count: int, seed: int) -> dict[int, int]:
    """Sends mutated requests from four threads; how often each status came, 0 for a closed line."""
    statuses: dict[int, int] = {}
    wrong: list[Any] = []
    lock = threading.Lock()

    def send(number: int) -> None:
        world = random.Random(4 * seed + number)
        with httpx.Client(timeout=60) as client:
            for turn in range(count // 4):
                if turn % 50 == 0:  # they may have been deleted or renamed
                    for name, body in BEGUN.items():
                        client.put(f"{url}/v1/streams/{name}", json=body)
                method, path, body, headers = mutated(world)
                place = httpx.URL(url).copy_with(raw_path=path.encode("utf-8"))
                status, text = 0, ""
                try:
                    answer = client.request(method, place, content=body, headers=headers)
                    status, text = answer.status_code, answer.text
                except httpx.RemoteProtocolError:  # so wrong that the connection is closed
                    pass
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1
                    if status >= 500 or "Traceback" in text:
                        wrong.append((method, path, body, text[:300]))

    threads = [threading.Thread(target=send, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    return statuses
