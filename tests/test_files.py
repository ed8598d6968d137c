"""Reading within limits, and writing all or nothing."""

import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from placer.base.errors import InputError, OutputError
from placer.documents import files


def test_bom_and_crlf_are_taken(tmp_path):
    """A byte order mark and CRLF or CR line ends do not reach the reader."""
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\rc: 3\n")
    assert files.read_text(str(path)) == "a: 1\nb: 2\nc: 3\n"


def refused(source):
    with pytest.raises(InputError) as caught:
        files.read_text(str(source))
    (problem,) = caught.value.problems
    return problem


def large(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda _: None, "No such file"),
        (Path.mkdir, "folder"),
        (os.mkfifo, "pipe that nobody writes"),  # nor is it waited for
        (large, "larger than 64 MiB"),  # nor read to its end
        (lambda path: path.symlink_to("/dev/zero"), "neither a file nor a pipe"),
    ],
    ids=["missing", "folder", "fifo", "large", "device"],
)
def test_what_is_no_file_to_read_is_refused(tmp_path, make, fragment):
    """The message has the path and the reason."""
    path = tmp_path / "one.yaml"
    make(path)
    problem = refused(path)
    assert problem.source == str(path)
    assert fragment in problem.message
    assert "cannot be read" in refused("a\0b").message


def test_a_pipe_is_read():
    """What a shell's ``<(command)`` stands for is read to its end, slow or not."""
    reader, writer = os.pipe()

    def write():
        for _ in range(3):
            time.sleep(0.05)
            os.write(writer, b"line\n" * 20_000)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert files.read_text(f"/dev/fd/{reader}") == "line\n" * 60_000
    finally:
        thread.join()
        os.close(reader)


@pytest.mark.parametrize(
    ("data", "fragment", "place"),
    [
        (b"a: \x00", "binary", (0, 0)),
        (b"a: 1\nb: \xff", "not UTF-8", (2, 4)),
        (b"\xff\xfea\x00", "UTF-16", (0, 0)),
    ],
)
def test_what_is_not_utf8_text_is_refused(tmp_path, data, fragment, place):
    """Binary files and other encodings are refused with their place."""
    path = tmp_path / "data"
    path.write_bytes(data)
    problem = refused(path)
    assert fragment in problem.message
    assert (problem.line, problem.column) == place


def test_writing_replaces_and_leaves_nothing_else(tmp_path):
    """The file holds the new text and the folder holds only the file."""
    path = tmp_path / "out.txt"
    files.write_text(str(path), "old")
    files.write_text(str(path), "new \N{SNOWMAN}\n")
    assert path.read_text(encoding="utf-8") == "new \N{SNOWMAN}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_writing_keeps_the_mode_of_a_file_and_honours_the_umask(tmp_path):
    """An existing file keeps its permissions; a new one gets the usual ones."""
    path = tmp_path / "out.txt"
    before = os.umask(0o027)
    try:
        files.write_text(str(path), "x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        files.write_text(str(path), "y")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def full_disk(_handle):
    raise OSError(28, "No space left on device")


def not_permitted(*_args):
    raise PermissionError(1, "Operation not permitted")


def test_a_failure_keeps_the_old_file(tmp_path, monkeypatch):
    """When the disk is full the old content stays and no temporary file is left."""
    path = tmp_path / "out.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OutputError, match="No space left"):
        files.write_text(str(path), "new")
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_links_are_kept(tmp_path, monkeypatch):
    """All names of a file get the text, and the old one again when it does not fit.

    A symbolic link keeps pointing at the file.
    """
    path, other = tmp_path / "out.txt", tmp_path / "other.txt"
    path.write_text("old, and longer")
    other.hardlink_to(path)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    for name in (path, link):
        files.write_text(str(name), f"new by {name}")
        assert path.read_text() == other.read_text() == f"new by {name}"
        assert link.is_symlink()
    files.write_text(str(path), "new")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OutputError, match="No space left"):
        files.write_text(str(path), "newest")
    assert other.read_text() == "new"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
def test_the_owner_is_kept(tmp_path, monkeypatch):
    """A file stays its owner's: replaced by one like it, or written in place."""
    path = tmp_path / "out.txt"
    path.write_text("old")
    os.chown(path, 1234, 1235)
    path.chmod(0o660)
    files.write_text(str(path), "new")
    inode = path.stat().st_ino
    monkeypatch.setattr(os, "fchown", not_permitted)
    files.write_text(str(path), "newer")
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (1234, 1235)
    assert (stat.S_IMODE(status.st_mode), status.st_ino) == (0o660, inode)
    assert path.read_text() == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("kind", ["itself", "link", "hard link", "stdin"])
def test_an_input_is_not_written_over(tmp_path, monkeypatch, kind):
    """What a command has read it does not write, by whatever name."""
    path, other = tmp_path / "in.txt", tmp_path / "other.txt"
    path.write_text("in")
    if kind == "link":
        other.symlink_to(path)
    elif kind == "hard link":
        other.hardlink_to(path)
    target = other if other.exists() else path
    with files.inputs_kept(), path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        files.read_text("-" if kind == "stdin" else str(path))
        for write in (files.check_target, lambda path: files.write_text(path, "x")):
            with pytest.raises(InputError, match="input of this command"):
                write(str(target))
    assert path.read_text() == "in"
    files.write_text(str(target), "a script may")
    assert path.read_text() == "a script may"


def test_what_is_not_a_regular_file_is_written_in_place(tmp_path):
    """A pipe, like a device, takes the text and is not replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_text(str(pipe), "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_standard_output(monkeypatch, capsys):
    """``-`` writes to standard output; without one nothing is lost in silence."""
    files.write_text("-", "text\n")
    assert capsys.readouterr().out == "text\n"
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="standard output: cannot be written"):
        files.write_text("-", "text")


def test_a_pipe_that_is_full_is_waited_for(monkeypatch):
    """A non-blocking pipe with a slow reader gets every byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    got = []

    def read():
        while chunk := os.read(reader, 8192):
            got.append(chunk)
            time.sleep(0.001)

    thread = threading.Thread(target=read)
    thread.start()
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        files.write_text("-", "0123456789" * 50_000)
        monkeypatch.undo()
    thread.join()
    os.close(reader)
    assert b"".join(got) == b"0123456789" * 50_000
