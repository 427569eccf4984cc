import re


def replaced(text, other, pictures):
    """``text`` without its first words, and what the other has found of each picture."""

    def first(m, index=1):
        try:
            return m.group(index)
        except ValueError:
            return ""

    return re.sub("(a) ", first, text), [first(other, p) for p in pictures]
