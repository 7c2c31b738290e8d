"""Shiv's own start-up, for those who ask for it by one of its variables, made safe."""

import os


def run(here: str) -> None:
    """Placeholder."""
    os.environ.get(here)
