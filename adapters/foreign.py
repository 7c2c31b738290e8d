"""What is made of values that a stranger wrote, whatever agent it is."""


def text_or_empty(value: object, limit_chars: int) -> str:
    """A string that can be kept and written as UTF-8; empty for anything else."""
    if not isinstance(value, str) or len(value) > limit_chars:
        return ""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return ""
    return value
