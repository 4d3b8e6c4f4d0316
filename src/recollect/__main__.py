"""The command line: `recollect` and `python -m recollect`."""

import sys


def main() -> None:
    # `--version` is asked by scripts and health checks: answer before anything heavy is imported.
    if sys.argv[1:] == ["--version"]:
        from recollect import __version__

        sys.stdout.write(f"recollect {__version__}\n")
        return
    from recollect.doors.cli.app import run

    run()


if __name__ == "__main__":
    main()
