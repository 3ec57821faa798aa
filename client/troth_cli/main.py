"""The entry point `troth`: runs one command and turns its result or error into an exit code.

Owns: the exit codes (0 done, 1 failed, 2 not understood, 130 interrupted) and the last catch. The
options of a command may name another code for a failure.
Never: does the work; importing this module loads nothing, so that an early Ctrl-C finds a handler.
Next: `app.py` for the list of commands, `failures.py` for how errors look.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from troth_cli import interrupts

if TYPE_CHECKING:
    from troth_cli.options import Invocation

FAILED = 1
NOT_UNDERSTOOD = 2
INTERRUPTED = interrupts.EXIT_CODE


def main() -> int:
    """Run the command that the process was started with."""
    interrupts.end_at_once()
    from troth_client.telemetry.library_logs import keep_libraries_quiet

    keep_libraries_quiet(sys.stderr)
    code = run(sys.argv[1:])
    interrupts.ignore()
    return code


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code; never raises, prints errors to stderr."""
    import typer

    from troth_cli.app import build
    from troth_cli.options import Invocation, Session

    # typer names its BadParameter but not the class above it, which all errors of parsing share.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    session = Session()

    def failed(error: Exception) -> int:
        guess = Invocation("--json" in arguments, "--debug" in arguments)
        return _failed(error, session.invocation or guess)

    code: object = 0
    try:
        code = build().main(list(arguments), prog_name="troth", standalone_mode=False, obj=session)
        # A result that nobody can read any more is noticed here, not after us.
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort) as error:
        # typer makes an Abort of any EOFError; only at a question, without a cause, is it Ctrl-D.
        if isinstance(error.__cause__, EOFError):
            return failed(error.__cause__)
        # Some releases of typer raise, others return the code.
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`troth ... | head`): Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except usage_error as error:
        return _not_understood(error, is_json="--json" in arguments)
    except Exception as error:  # the last catch: a user never sees a raw traceback
        return failed(error)
    if code == INTERRUPTED:
        sys.stderr.write(interrupts.LINE)
    return code if isinstance(code, int) else 0


def _not_understood(error: Exception, *, is_json: bool) -> int:
    from troth_cli import failures

    context = getattr(error, "ctx", None)
    message = str(getattr(error, "format_message", error.__str__)())
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(message + "\n")
        return NOT_UNDERSTOOD
    path = context.command_path if context is not None else "troth"
    failure = failures.Failure(
        "UsageError",
        "",
        f"arguments that `{path}` understands",
        message.removeprefix("Invalid value: "),
        f"see what it takes: {path} --help",
    )
    failures.show(failure, sys.stderr, is_json=is_json)
    return NOT_UNDERSTOOD


def _failed(error: Exception, invocation: "Invocation") -> int:
    from troth_cli import failures

    is_json, is_debug = invocation.is_json, invocation.is_debug
    failures.report(error, sys.stderr, is_json=is_json, is_debug=is_debug)
    return invocation.failed
