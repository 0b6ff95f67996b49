"""The `evenly` command, and `python -m evenly`. Imports wait, so that Ctrl-C is caught from the first moment."""

import sys

INTERRUPTED = 130


def run() -> None:
    """Entry point of the console script."""
    try:
        from evenly.cli.main import main  # noqa: PLC0415

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without the letters shows ? for them
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader, `head` say, had enough
        sys.stderr.close()
        code = 1
    except OSError as error:
        print(f"evenly: Cannot write the output: {error.strerror}.", file=sys.stderr)
        code = 1
    if code == INTERRUPTED:
        print("Stopped.", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    run()
