"""The options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "BurnIn",
    "Config",
    "Coverage",
    "Delay",
    "File",
    "FileKind",
    "Format",
    "Gamma",
    "Group",
    "Horizon",
    "Id",
    "Json",
    "Known",
    "Level",
    "Lower",
    "ModelName",
    "NoReport",
    "Out",
    "Period",
    "Point",
    "Probabilities",
    "Quiet",
    "Risk",
    "RiskName",
    "Rule",
    "RuleName",
    "SetsName",
    "Support",
    "Target",
    "Time",
    "Upper",
]

RiskName = StrEnum("RiskName", ["coverage", "mc"])
RuleName = StrEnum("RuleName", ["budget", "paper"])
SetsName = StrEnum("SetsName", ["intervals", "labels"])
ModelName = StrEnum(
    "ModelName",
    ["auto", "last", "seasonal", "drift", "linear", "boosting", "river", "forest"],
)
FileKind = StrEnum("FileKind", ["csv", "parquet", "jsonl"])

File = Annotated[
    Path,
    Argument(
        help="A .csv, .parquet, .feather or .jsonl file; .gz too. - is a CSV on standard input.",
        show_default=False,
    ),
]
Target = Annotated[str, Option(help="The column of what came out; empty where it is not known.")]
Lower = Annotated[
    str | None, Option(help="The column of lower ends; alone, only that side is held.")
]
Upper = Annotated[
    str | None, Option(help="The column of upper ends; alone, only that side is held.")
]
Point = Annotated[str | None, Option(help="The column of forecasts that are one number.")]
Probabilities = Annotated[
    str | None,
    Option(
        metavar="COLUMNS",
        help="The columns of class probabilities, with commas between them. They are named after "
        "the classes: cat,dog or p_cat,p_dog. 'p_*' takes all columns that begin with p_.",
    ),
]
Time = Annotated[
    str | None,
    Option(
        help="The column of times, which order the rows; by default the only column of dates. Days "
        "and hours in two columns: date,hour."
    ),
]
Id = Annotated[
    str | None, Option(help="The column that tells series apart; each is held by itself.")
]
Group = Annotated[
    str | None,
    Option(
        help="A column by which the report shows coverage; by default the weekday. Groups are only "
        "shown; --id holds each series by itself."
    ),
]
Delay = Annotated[
    int, Option(metavar="ROWS", help="How many rows late labels become known; 0 by default.")
]
Horizon = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="How many steps ahead a row forecasts: each horizon is a series of its own. Where one "
        "row has several, write * in place of the number, as in --point 'h*'.",
    ),
]
Known = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="The column of times at which labels became known. --time is then the time at which a "
        "forecast was made.",
    ),
]
Period = Annotated[
    str | None,
    Option(
        metavar="STEPS",
        help="The length of a season to learn, in steps of time; auto finds it in a burn-in.",
    ),
]
Risk = Annotated[
    RiskName, Option(help="coverage: the share missed; mc: the mean of misses in a row.")
]
Coverage = Annotated[
    float | None, Option(help="The share of labels to hold; 0.9 by default.", show_default=False)
]
Level = Annotated[
    float | None, Option(help="Or the share that may be missed: 0.1 is a coverage of 0.9.")
]
Rule = Annotated[
    RuleName | None,
    Option(
        help="budget: sets that adjust themselves, the default; paper: a fixed step size, "
        "chosen by a burn-in."
    ),
]
Gamma = Annotated[
    float | None, Option(help="The step size of the paper's rule; by default the burn-in's choice.")
]
Support = Annotated[
    str | None, Option(metavar="LOW,HIGH", help="Where the target can lie, as in 0,inf.")
]
BurnIn = Annotated[
    int | None,
    Option(
        metavar="ROWS",
        help="How many first rows of each series are not judged. By default none; with run, and "
        "with the paper's rule, a tenth, from 50 to 1,000.",
    ),
]
Config = Annotated[Path | None, Option(help="A controller as TOML, instead of choosing one.")]
Out = Annotated[
    Path | None,
    Option(help="The folder to write to; by default one named after the file.", dir_okay=True),
]
Format = Annotated[
    FileKind | None,
    Option("--format", help="The kind of file for the rows; by default that of your file."),
]
NoReport = Annotated[bool, Option("--no-report", help="Leave the HTML page out.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
