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

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Takes the library when all of it was read, and signatures were made of attributes."""
        for member in list(pkg.members.values()):
            if member.is_alias:
                continue
            if member.is_class:
                words = member.docstring.value if member.docstring else ""
                _, _, told = words.partition("Parameters\n-----")
                lines = re.findall(r"^\w.*$", told, re.MULTILINE)
                names = {name for line in lines for name in line.split(", ")}
                for name, inner in list(member.members.items()):
                    again = inner.is_attribute and not inner.docstring and name in names
                    if again or (name.startswith("__") and name not in ("__init__", "__call__")):
                        member.del_member(name)
            if member.is_module or member.is_class:
                self.on_package(pkg=member)
