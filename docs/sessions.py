"""How the API shows docstrings; mkdocstrings calls it.

What begins with >>> is shown as code, under whatever heading it stands. An attribute that its class
tells as a parameter is not told a second time.
"""

import re
from typing import Any

from griffe import Extension

SESSION = re.compile(r"(?:^|(?<=\n\n))(>>> .*?)(?=\n\n|\Z)", re.DOTALL)


class Sessions(Extension):
    """Puts a fence around each session that is not below the heading Examples."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Takes an object whose docstring was just read."""
        if obj.docstring is not None:
            text, heading, examples = obj.docstring.value.partition("Examples\n--------\n")
            obj.docstring.value = SESSION.sub(r"```pycon\n\1\n```", text) + heading + examples

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """Takes a class whose members were just read."""
        _, _, told = (cls.docstring.value if cls.docstring else "").partition("Parameters\n-----")
        names = {name for line in re.findall(r"^\w.*$", told, re.M) for name in line.split(", ")}
        for name, member in cls.members.items():
            if member.is_attribute and not member.docstring and name in names:
                member.public = False
