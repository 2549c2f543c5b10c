"""Finding a file of a data set: in a folder, in the cache, or at its source; and unpacking it."""

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from setpoint._files import whole
from setpoint.errors import AbsentFile, DataError
from setpoint_paper.datasets.sources import File, Source, container_of

Folder = str | os.PathLike[str] | None
VARIABLE = "SETPOINT_DATA"
_PACKED = ("", ".gz", ".zip")
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """The text of a file, the path it was read from, and whether it is as it was tested."""

    text: str
    path: Path
    file: File
    known: bool

    @property
    def note(self) -> str:
        """What to say of a text other than the tested one."""
        return "" if self.known else "contents differ from the file this was tested with"


def find(source: Source, file: File, folder: Folder, download: bool) -> Found:
    """A file of a data set, from the first place that has it."""
    return find_first(source, (file,), folder, download)


def find_first(source: Source, files: tuple[File, ...], folder: Folder, download: bool) -> Found:
    """The first of several files that may stand for one another."""
    place = named_folder(folder)
    if place is not None:
        for file in files:
            path = _inside(place, source, file)
            if path is not None:
                return _read(path, file)
    if folder is not None:
        raise AbsentFile(_absent(source, files, f"is not in {place}", place))
    why = f"is not in the folder that {VARIABLE} names ({place or 'not set'})"
    for file in files:
        if file.url is not None:
            path, reason = _fetched(source, file, file.url, download)
            if path is not None:
                return _read(path, file)
            why += f" and {reason}"
    raise AbsentFile(_absent(source, files, why, place))


def fetch(source: Source, to: Path) -> list[Path]:
    """Downloads every file of a data set into its folder below `to`, checked; which there are.

    Of files that stand for one another the first that is served is taken.
    """
    written = []
    for file in source.files:
        if file.url is None:
            continue
        kept, reason = _fetched(source, file, file.url, download=True)
        if kept is None:
            raise AbsentFile(_absent(source, (file,), reason, to))
        target = to / source.name / kept.name
        if target not in written:
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole(target) as copy:
                copy.write(kept.read_bytes())
            written.append(target)
    return written


def named_folder(folder: Folder) -> Path | None:
    """The folder to look in, None where none is named."""
    named = (os.environ.get(VARIABLE) or None) if folder is None else folder
    if named is None:
        return None
    place = Path(named).expanduser()
    if not str(named) or not place.is_dir():
        what = f"the environment variable {VARIABLE}" if folder is None else "folder"
        raise DataError(f"{what} must name a folder of data files, got {str(named)!r}")
    return place


def _absent(source: Source, files: tuple[File, ...], why: str, place: Path | None) -> str:
    names = " or ".join(repr(file.names[0]) for file in files)
    if place is None:
        where = f"in a folder {source.name} whose parent folder {VARIABLE} names"
    else:
        where = f"in {place / source.name}"
    other = f" or from {source.elsewhere}" if source.elsewhere else ""
    return (
        f"the file {names} of the data set {source.name} {why}: get it from {source.page}{other} "
        f"and put it {where}, as it is, gzipped or zipped"
    )


def _inside(folder: Path, source: Source, file: File) -> Path | None:
    """The file or its container in a folder, below the data set's name or at the top."""
    names = [name + packed for name in file.names for packed in _PACKED]
    if file.url is not None:
        names.append(container_of(file.url))
    for place in (folder / source.name, folder):
        for name in names:
            if (place / name).is_file():
                return place / name
    return None


def _fetched(source: Source, file: File, url: str, download: bool) -> tuple[Path | None, str]:
    """The cached copy of what the address serves, downloaded if need be; else the reason."""
    import pooch

    kept = Path(pooch.os_cache("setpoint")) / source.name / container_of(url)
    record = kept.with_name(kept.name + ".sha256")
    digest = file.served
    if digest is None and record.is_file():
        digest = record.read_text(encoding="ascii").strip()
    if kept.is_file() and digest is not None and _sha256(kept.read_bytes()) == digest:
        return kept, ""
    if not download:
        return None, "is not in the cache"
    try:
        # A copy that has changed goes: the source may serve another version by now.
        kept.unlink(missing_ok=True)
        record.unlink(missing_ok=True)
        pooch.retrieve(
            url,
            known_hash=file.served,
            fname=kept.name,
            path=kept.parent,
            downloader=pooch.HTTPDownloader(timeout=_SECONDS),
        )
        if file.blob is not None and _blob(kept.read_bytes()) != file.blob:
            raise DataError(f"it is not the file that git calls {file.blob}")
        _unpacked(kept.read_bytes(), kept, file)
    except DataError as error:
        kept.unlink(missing_ok=True)
        return None, f"what {url} served is no use ({error})"
    except (OSError, ValueError) as error:
        return None, f"could not be downloaded from {url} ({_shortly(error)})"
    record.write_text(_sha256(kept.read_bytes()), encoding="ascii")
    return kept, ""


def _shortly(error: Exception) -> str:
    """The kind of an error and what fits on a line of its message."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:80]}{'…' if len(said) > 80 else ''}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _blob(data: bytes) -> str:
    """The name git gives to a file of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _read(path: Path, file: File) -> Found:
    """The text of a file, unpacked from whatever container it lies in."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    data = _unpacked(packed, path, file).replace(b"\r\n", b"\n")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is damaged: byte {error.start} of its text is no UTF-8") from None
    known = file.text == _sha256(data) or file.blob == _blob(packed)
    return Found(text, path, file, known)


def _unpacked(data: bytes, path: Path, file: File) -> bytes:
    """The bytes of the file inside gzip, zip, or zips and gzips within a zip."""
    try:
        found = _dug(data, tuple(name.lower() for name in file.names))
    except (zipfile.BadZipFile, EOFError, zlib.error, OSError, RuntimeError) as error:
        # OSError: no gzip after all; RuntimeError: a locked zip, or one packed in another way.
        raise DataError(f"{path} is damaged: {_shortly(error)}") from None
    if found is None:
        raise DataError(f"{path} holds no file named {' or '.join(map(repr, file.names))}")
    if found[:100].lstrip()[:1] == b"<":
        raise DataError(f"{path} is damaged: it holds a web page instead of data")
    return found


def _dug(data: bytes, wanted: tuple[str, ...]) -> bytes | None:
    if data[:2] == b"\x1f\x8b":
        return _dug(gzip.decompress(data), wanted)
    if data[:4] != b"PK\x03\x04":
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for member in packed.namelist():
            name = member.rpartition("/")[2].lower()
            # Archives made on a Mac carry a shadow of each file under the same name.
            if member.startswith("__MACOSX/"):
                continue
            if name.removesuffix(".gz") in wanted or name.endswith(".zip"):
                found = _dug(packed.read(member), wanted)
                if found is not None:
                    return found
    return None
