"""How analyses of this rule say that something is not what they look for."""


class Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """There is no proof; the text says what is missing."""
