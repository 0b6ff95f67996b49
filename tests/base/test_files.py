"""Files that a user names: read up to a limit, never waited for long, and rejected in one line."""

import os
import threading
from pathlib import Path

import pytest

from evenly.errors import InputError
from evenly.files import MAX_TEXT, atomic_write, check_writable, path_text, read_text


def test_text_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for text in ("", "α = 1\n", "x" * MAX_TEXT):  # noqa: RUF001
        file.write_text(text, encoding="utf-8")
        assert read_text(file) == text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/dev/zero", f"it has more than {MAX_TEXT} bytes"),
        ("/dev/urandom", f"it has more than {MAX_TEXT} bytes"),
        ("/", "is a directory"),
        ("/no/such/file", "no such file"),
        ("/dev/null/x", "not a directory"),
        ("x" * 5000, "name too long"),
        ("a\0b", "null"),
        ("a\nb", r"'a\\nb': no such file"),
    ],
)
def test_anything_but_a_small_text_file_is_rejected(path: str, words: str) -> None:
    with pytest.raises(InputError, match=f"Cannot read .*{words}") as error:
        read_text(Path(path))
    assert str(error.value).isprintable()


def test_the_limit_is_exact(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_text(file, limit=5) == "12345"
    with pytest.raises(InputError, match="more than 4 bytes"):
        read_text(file, limit=4)


def test_bytes_that_are_not_text_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_text(file)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)  # until the writer is there, a reader would find the end at once

    def write() -> None:
        with pipe.open("w") as stream:
            stream.write("x" * 200_000)  # more than a pipe holds
            os.close(keep)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_text(pipe) == "x" * 200_000
    writer.join()


def test_a_path_is_named_as_it_is_unless_it_garbles_the_line() -> None:
    assert path_text(Path("a b/c.toml")) == "a b/c.toml"
    assert path_text("") == "''"
    assert path_text("x" * 5000) == "x" * 197 + "..."
    assert path_text("a\nb") == r"'a\nb'"
    assert path_text(os.fsdecode(b"\xff")) == r"'\udcff'"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "missing/x", "/dev/null/x"])
def test_a_path_that_cannot_be_written_is_rejected_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="Cannot write") as error:
        check_writable(tmp_path / name)
    assert str(error.value).isprintable()


def test_a_name_of_the_longest_length_is_written(tmp_path: Path) -> None:
    target = tmp_path / f"{'x' * 251}.txt"
    with atomic_write(target) as temporary:
        temporary.write_text("done")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["done"]
