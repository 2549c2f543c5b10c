"""Bearer tokens and what they allow: from a file or the environment, never kept in the clear."""

import hmac
import os
import time
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from setpoint.errors import InputError

SCOPES = ("read", "write", "admin")
"""What a token may allow; each allows what stands before it too."""


class Token(NamedTuple):
    """Whose token it is, what it allows, its SHA-256, and when it ends (seconds since 1970)."""

    name: str
    scope: str
    digest: bytes
    expires: float | None


class Tokens:
    """The tokens that a service knows; without any, everything is allowed.

    Parameters
    ----------
    tokens
        The tokens.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    def __bool__(self) -> bool:
        return bool(self.tokens)

    @classmethod
    def read(cls, file: Path | None, environment: Mapping[str, str] = os.environ) -> "Tokens":
        """The tokens of a TOML file and of SETPOINT_TOKENS.

        The file has a table for each name: scope = "write", then token = "…" or its sha256 = "…",
        and expires = 2027-01-31 if it ends. SETPOINT_TOKENS has words: name:scope:token. One that
        is given but empty is refused: without any token everyone is let in.

        >>> Tokens.read(None, {"SETPOINT_TOKENS": "grafana:read:s3cret"}).allows(b"s3cret", "read")
        True
        """
        tables: dict[str, Any] = {}
        words = environment.get("SETPOINT_TOKENS")
        if file is not None:
            try:
                tables = tomllib.loads(file.read_text("utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise InputError(f"{file} is no TOML: {error}") from None
        for place, word in enumerate((words or "").split(), 1):
            name, *rest = word.split(":", 2)
            if len(rest) < 2:  # it may be a token: it is not shown
                raise InputError(
                    f"SETPOINT_TOKENS must have words as name:scope:token, word {place} is none"
                )
            tables[name] = {"scope": rest[0], "token": rest[1]}
        if not tables and (file is not None or words is not None):
            raise InputError(
                f"{file or 'SETPOINT_TOKENS'} holds no token: give one, or leave it out to serve "
                "this machine without tokens"
            )
        return cls([_token(name, table) for name, table in tables.items()])

    def allows(self, secret: bytes, scope: str) -> bool | None:
        """Whether a token allows something; None if it is not known or has ended.

        Every token is compared, and each in the same time, so that nothing is told by how long
        it takes.
        """
        digest, now = sha256(secret).digest(), time.time()
        allowed = None
        for token in self.tokens:
            same = hmac.compare_digest(digest, token.digest)
            if same and (token.expires is None or now < token.expires):
                allowed = SCOPES.index(token.scope) >= SCOPES.index(scope)
        return allowed


def _token(name: str, table: Any) -> Token:
    """A token from its table; a message never holds the token."""
    if not isinstance(table, dict) or not {"scope"} <= table.keys() <= {
        "scope", "token", "sha256", "expires",
    }:  # fmt: skip
        raise InputError(
            f"the token {name!r} must have scope and token or sha256, and may have expires"
        )
    scope, expires = table["scope"], table.get("expires")
    if scope not in SCOPES:
        raise InputError(f"the scope of the token {name!r} must be one of {', '.join(SCOPES)}")
    if "sha256" in table:
        try:
            digest = bytes.fromhex(str(table["sha256"]))
        except ValueError:
            digest = b""
        if len(digest) != 32:
            raise InputError(f"the sha256 of the token {name!r} must be 64 hexadecimal digits")
    else:
        secret = table.get("token")
        if not isinstance(secret, str) or len(secret) < 6:
            raise InputError(f"the token {name!r} must have 6 characters or more")
        digest = sha256(secret.encode()).digest()
    if isinstance(expires, date) and not isinstance(expires, datetime):
        expires = datetime(expires.year, expires.month, expires.day)
    if not isinstance(expires, datetime | None):
        raise InputError(f"the token {name!r} must expire at a date, as in 2027-01-31")
    return Token(name, scope, digest, None if expires is None else expires.timestamp())
