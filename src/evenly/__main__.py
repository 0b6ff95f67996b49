"""The `evenly` command, and `python -m evenly`. Imports wait, so that Ctrl-C is caught from the first moment."""

import errno
import os
import signal
import sys
from types import FrameType

BAD_INPUT = 2
INTERRUPTED = 130
WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}  # of an open stream
LIVE = {"agent", "demo", "gateway", "picker"}


def run() -> None:
    """Run the console script."""
    interrupted = _Interrupted()
    try:
        _open_standard_streams()
        if sys.stdout is None:
            sys.exit(_complain("stdout is closed: redirect it to a file or to /dev/null.", BAD_INPUT))
        from evenly.cli.main import main  # noqa: PLC0415

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows ? instead
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for example, has read enough
        _drop_output()
        code = 1
    except Exception as error:
        if isinstance(error, OSError) and (sentence := _explained(error)):
            code = _complain(sentence, 1)
        elif interrupted:
            code = INTERRUPTED
        else:
            raise
    if code == INTERRUPTED:
        exec("")  # under `python -m`, CPython dies of SIGINT if an exec of a string was interrupted
        print("Stopped.", file=sys.stderr)
    sys.exit(code)


class _Interrupted:
    """True once Ctrl-C was pressed. Matplotlib's C code can turn the KeyboardInterrupt into another error.

    The live commands are left alone: asyncio handles Ctrl-C itself, but only if nothing else does.
    """

    def __init__(self) -> None:
        self._pressed = False
        by_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if by_default and not set(sys.argv[1:2]) & LIVE:
            signal.signal(signal.SIGINT, self._press)

    def __bool__(self) -> bool:
        return self._pressed

    def _press(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        signal.default_int_handler(number, frame)


def _open_standard_streams() -> None:
    """Connect a closed stdin or stderr to /dev/null, so that no file opened later takes its number."""
    for number, stream in ((0, sys.stdin), (2, sys.stderr)):
        if stream is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")


def _explained(error: OSError) -> str:
    """Return a sentence about an error that is no bug: that of a file, or of the output, which is given up then.

    Writing to an open stream names no file. Nor does what a bug would raise, such as an error of a socket.
    """
    if error.filename is not None:
        return f"{error.strerror}: {str(error.filename)!r}."
    if error.errno in WRITE_ERRORS or hasattr(error, "characters_written"):  # a stream that would block
        _drop_output()
        return f"Cannot write the output: {error.strerror}."
    return ""


def _drop_output() -> None:
    """Connect stdout to /dev/null: at its exit, Python tries again to write what it holds, and fails with 120."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _complain(sentence: str, code: int) -> int:
    print(f"evenly: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    run()
