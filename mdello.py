"""mdello: which agent session works on which Markdown card, live."""

import sys

__version__ = "0.1.0"


def main(argv: "list[str] | None" = None) -> int:
    """Run one command. Returns the exit code; see ``mdello help`` for what each code means."""
    # No typing up there: it would cost more than all of --version.
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["--version"]:  # First of all: this one must not wait for any import.
        return _version(verbose="--verbose" in arguments)
    if arguments[:1] == ["hook-post"]:  # Runs inside an agent's session: no parser, no error.
        from companion.commands import hook_post  # noqa: PLC0415

        return hook_post.main(arguments[1:])
    from companion.commands import dispatch  # noqa: PLC0415 - heavier than the line above

    return dispatch.run(arguments)


def _version(verbose: bool) -> int:
    print(f"mdello {__version__} (Python {sys.version.split()[0]})")
    if verbose:
        from companion.commands import version  # noqa: PLC0415

        version.print_details()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
