"""`colibri serve` and `colibri hook` go straight to their work; anything else loads the CLI."""

import os
import signal
import sys


def main() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not {"-h", "--help"}.intersection(arguments):
        _hook()
    if arguments[:1] == ["serve"] and (options := _options(arguments[1:])) is not None:
        _end_in_order()
        from colibri.server import main as serve  # only what serving needs

        sys.exit(serve(**options))
    try:
        from colibri.cli import main as command  # never loaded by serve

        code = command(arguments)  # which loads the rest
    except ImportError as problem:
        code = _incomplete(problem)
    except KeyboardInterrupt:  # before there was anything to interrupt
        code = 130
    sys.exit(code)


def _hook() -> None:
    """Whatever it is given and whatever is missing, the host that runs it must not notice."""
    if os.isatty(0):
        sys.stderr.write("colibri: hint: a host runs this; colibri hook --help explains it\n")
        sys.exit(0)
    try:
        from colibri.hook import main as hook  # only what one record needs
    except ImportError as problem:
        _incomplete(problem)
        sys.exit(0)
    hook()


def _end_in_order() -> None:
    """A signal before the server is built finds nothing to end: hosts send two to one that starts.

    The server's own handlers take over when it serves, and give back to these at its end.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))


def _incomplete(problem: ImportError) -> int:
    """A package is missing, as after an upgrade of Python under an environment."""
    sys.stderr.write(
        f"colibri: error: the installation is incomplete: {problem}\n"
        "colibri: hint: install Colibri again; in a clone, delete .venv\n"
    )
    return 75


def _options(arguments: list[str]) -> dict[str, str] | None:
    """The options of `serve`; None for those that the CLI must explain."""
    match arguments:
        case []:
            return {}
        case ["--project", project]:
            return {"project": project}
        case [option] if option.startswith("--project="):
            return {"project": option.removeprefix("--project=")}
    return None


if __name__ == "__main__":
    main()
