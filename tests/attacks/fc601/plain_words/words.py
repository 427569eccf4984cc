from types import SimpleNamespace


def Words(table):
    return SimpleNamespace(**{f"{name}_id": number for name, number in table.items()})
