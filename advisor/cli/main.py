"""The entry point: one handler turns every failure into a message and an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback

from advisor.errors import AdvisorError, EngineError, UserError, visible

WRONG_INPUT = 1
OUR_BUG = 70
_COLLECT_RARELY = (100_000, 20, 20)
"""What a start makes lives to its end, and looking through it takes a tenth of an answer."""


def main() -> None:
    """Run the command line and exit.

    Exit codes: 0 done, 1 the input or files are wrong, 2 wrong usage, 3 asked to fail unless it
    fits, 70 a bug of ours.
    """
    _speak()
    debug = "--debug" in sys.argv[1:] or bool(os.environ.get("ADVISOR_DEBUG"))
    gc.set_threshold(*_COLLECT_RARELY)
    try:
        from advisor.cli.app import run  # noqa: PLC0415  nothing before the handler

        try:
            run(sys.argv[1:])
        finally:
            _flush()
            _warn()
            gc.freeze()  # the end would look through all that is kept, a fifth of a large answer
    except UserError as error:
        sys.exit(_told(error, WRONG_INPUT, debug=debug))
    except BrokenPipeError:
        _drop_output()
        sys.exit(0)
    except KeyboardInterrupt:
        import signal  # noqa: PLC0415  a start does without

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would leave a trace
        sys.exit(130)
    except OSError as error:
        sys.exit(_told(_plainly(error), WRONG_INPUT, debug=debug))
    except (AdvisorError, Exception) as error:  # noqa: BLE001  the last line of defence
        sys.exit(_told(error, OUR_BUG, debug=debug))


def _speak() -> None:
    """Write what a terminal cannot show as escapes, and into anything else UTF-8, as into files."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # else closed, or another program's
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace", newline="\n")


def _warn() -> None:
    """Say what is unusual in the user's knowledge, which no command has said."""
    from advisor.knowledge import unusual_figures  # noqa: PLC0415  nothing before the handler

    sys.stderr.writelines(f"warning: {visible(line)}\n" for line in unusual_figures())


def _flush() -> None:
    if sys.stdout is not None:  # closed by whoever started this
        sys.stdout.flush()


def _plainly(error: OSError) -> UserError:
    """Say what the system refused; what a full standard output did not take is dropped."""
    try:
        _flush()
    except OSError:
        _drop_output()
    reason = error.strerror or str(error)
    if error.filename is not None:
        return UserError(f"{reason}: '{error.filename}'.")
    return UserError(f"{reason}, when reading or writing.")


def _drop_output() -> None:
    """Keep Python from trying once more at its end, which would change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception, code: int, *, debug: bool) -> int:
    if debug:
        sys.stderr.write(visible("".join(traceback.format_exception(error))))
    elif code == OUR_BUG:
        kind = "" if isinstance(error, EngineError) else f"{type(error).__name__}: "
        sys.stderr.write(
            f"advisor failed, and that is a bug in advisor: {visible(f'{kind}{error}')}\n"
            "Run again with --debug for the details to report.\n"
        )
    else:
        lines = visible(str(error)).splitlines() or [type(error).__name__]
        sys.stderr.writelines(f"error: {line}\n" for line in lines)
    return code
