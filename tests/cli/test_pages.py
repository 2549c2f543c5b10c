"""The pages of the command line: the tutorial runs as it is written, the manual is up to date."""

import doctest
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_manual_is_what_the_commands_say() -> None:
    page = runpy.run_path(str(DOCS / "cli.py"))
    assert (DOCS / "cli.md").read_text("utf-8") == page["text"](), (
        "docs/cli.md is out of date: python docs/cli.py"
    )


def test_every_command_and_option_has_words_of_help() -> None:
    found = dict(runpy.run_path(str(DOCS / "cli.py"))["commands"]())
    jobs = ("demo", "forecast", "calibrate", "stream", "serve", "inspect")
    assert {f"setpoint {name}" for name in jobs} <= set(found)
    for name, command in found.items():
        assert command.help, name
        words = [each.help for each in command.params]
        assert all(words), name
        assert len({*words}) == len(words), f"{name}: two options have the same help"
        python = [text for text in words if re.search(r"[A-Z]\w+\(|`[A-Z]|frame", text)]
        assert python == [], f"{name}: a shell knows nothing of Python"


def test_no_page_names_an_option_that_no_command_has() -> None:
    commands = dict(runpy.run_path(str(DOCS / "cli.py"))["commands"]())
    known = {opt for each in commands.values() for param in each.params for opt in param.opts}
    known |= {"--help", "--install-completion"}
    for page in ("cli", "tutorial", "service", "panels", "paths", "late-labels", "forecast"):
        text = (DOCS / f"{page}.md").read_text("utf-8")
        named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
        assert named <= known, page


@pytest.mark.skipif(os.name != "posix", reason="the tutorial is written for a POSIX shell")
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("plotly")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, words in (("setpoint", "-m setpoint.cli"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (commands / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    blocks = BLOCK.findall((DOCS / "tutorial.md").read_text("utf-8"))
    checker, ran = doctest.OutputChecker(), 0
    for (kind, script), (after, wanted) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "sh":
            continue
        found = subprocess.run(
            ["sh", "-c", script],
            cwd=work, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert found.returncode == 0, f"{script}\n{found.stdout}"
        ran += 1
        if after == "text":
            assert checker.check_output(wanted, found.stdout, FLAGS), (
                f"{script}\nprinted\n{found.stdout}\nand the page says\n{wanted}"
            )
    assert ran >= 10
