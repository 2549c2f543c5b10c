"""The command `setpoint-paper`: its commands, and what it says of a wrong word."""

from pathlib import Path

import pytest
import typer

from setpoint_paper.cli import app, main


def test_every_command_and_option_has_help() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    experiments = {"tabular", "classification", "depth", "kitti"}
    assert set(commands) == experiments | {"fetch", "summary", "all"}
    for command in commands.values():
        assert command.help
        assert all(option.help for option in command.params)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tabular", "--datasets", "mars"], "a data set must be one of 'power'"),
        (["classification", "--streams", "mars"], "streams must be some of gas_drift"),
        (["depth", "--clip", "mars"], "one of clips must be one of 'kitti'"),
    ],
)
def test_a_wrong_word_is_answered_with_one_sentence_before_data_are_looked_for(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_DATA", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["setpoint-paper", *words])
    with pytest.raises(SystemExit, match=f"^setpoint-paper: {sentence}"):
        main()
