"""Forwards that are given a list, written to deceive what splits them: the method bodies, by what they attack.

Each is `forward(self, x, parts, scale=2.0)` of a module with `self.lin` (a Linear of 4 and 4) and `self.seen` (a list).
"""

from __future__ import annotations

#: To be split: the rest has to give the same.
SPLIT = {
    "a tensor on every path of the branch": """
        if isinstance(parts, list):
            with torch.no_grad():
                if len(parts) == 1:
                    parts = parts[0]
                elif len(parts) > 9:
                    raise ValueError("too many")
                else:
                    parts = torch.cat(parts)
        h = self.lin(x) + parts.mean()
        return h * scale
""",
    "all of them but the first, and those again": """
        first, others = parts[:1], parts[1:]
        again = first + others
        named = (both := again) or [x]
        y = torch.cat(named) + torch.cat(both or named)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "a dict and a set of them": """
        by_name = {str(i): p for i, p in enumerate(parts)}
        held = {"parts": parts, "x": x}
        y = torch.stack([p.mean() for p in by_name.values()]).sum() + len(held["parts"])
        h = self.lin(x) + y
        return h * scale
""",
    "the list comes out of a call that unpacks": """
        a, b = zip(*[(p, p + 1) for p in parts])
        y = torch.cat(a) + torch.cat(b)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "raised where nothing is left": """
        assert len(parts) < 9, f"{torch.cat(parts).sum()}"
        y = torch.cat(parts)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "tensor or list, tested by type": """
        if type(parts) is list:
            parts = torch.cat(parts)
        h = self.lin(x) + parts.mean()
        return h * scale
""",
    "not a tensor": """
        if not isinstance(parts, torch.Tensor):
            parts = torch.stack(tuple(parts))
        h = self.lin(x) + parts.mean()
        return h * scale
""",
    "else branch makes the tensor": """
        if torch.is_tensor(parts):
            pass
        else:
            parts = torch.cat(parts)
        h = self.lin(x) + parts.mean()
        return h * scale
""",
    "a conditional expression": """
        parts = torch.cat(parts) if isinstance(parts, (list, tuple)) else parts
        h = self.lin(x) + parts.mean()
        return h * scale
""",
    "none stays none": """
        parts = None if parts is None else torch.cat(list(parts))
        h = self.lin(x)
        if parts is not None:
            h = h + parts.mean()
        return h * scale
""",
    "scale gets another value before": """
        scale = scale or 1.0
        y = torch.cat(parts)
        h = self.lin(x)
        return h * scale + y.mean()
""",
    "scale gets another value in the rest": """
        y = torch.cat(parts)
        scale = scale + 1
        x = self.lin(x)
        return x * scale + y.mean()
""",
    "augmented in place": """
        y = torch.cat(parts).sum()
        x += 1
        x *= y
        return x, scale
""",
    "the argument itself comes back": """
        y = torch.cat(parts)
        h = x
        h = h if scale else h * 2 + 1
        return h, y
""",
    "returns in loops and tries": """
        n = len(parts)
        y = torch.cat(parts)
        for i in range(3):
            x = x + i
            if i > n:
                return x
        try:
            return self.lin(x) + y.mean()
        finally:
            self.seen.append(1)
""",
    "falls off its end": """
        y = torch.cat(parts)
        self.seen.append(y.mean())
        self.last = self.lin(x)
        self.seen.append(self.last)
""",
    "a comprehension with the list's own name": """
        y = torch.cat([parts for parts in parts])
        h = self.lin(x)
        rows = [h[i] for i in range(2)]
        return torch.stack(rows) + y.mean()
""",
    "the loop variable again": """
        total = 0.0
        for part in parts:
            total = total + part.mean()
        h = self.lin(x)
        for part in (1.0, 2.0):
            h = h * part
        return h + total
""",
    "walrus in the rest": """
        y = torch.cat(parts)
        if (h := self.lin(x)).sum() is not None:
            h = h + y.mean()
        return h * scale
""",
    "a nested class and a comprehension in a lambda": """
        y = torch.cat(parts)

        class Box:
            value = y.mean()

            def get(self, k=scale):
                return self.value * k + y.sum()

        f = lambda rows: sum(r + y.mean() for r in rows)
        return f([Box().get(), x.sum()])
""",
    "strings over lines": '''
        y = torch.cat(parts)
        text = """
  as it
        is
"""
        h = self.lin(x) + y.mean() + len(text)
        return h * scale
''',
    "zero-argument super and __class__": """
        y = torch.cat(parts)
        name = super().extra_repr() + __class__.__name__
        h = self.lin(x) + y.mean() + len(name)
        return h * scale
""",
    "private names": """
        y = torch.cat(parts)
        self.__hidden = self.lin(x)
        h = self.__hidden + y.mean()
        return h * scale
""",
    "early return": """
        if not parts:
            return self.seen
        if len(parts) > 3:
            raise ValueError(f"too many: {len(parts)}")
        y = torch.cat(parts)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "sorted, reversed, zipped": """
        ordered = sorted(parts, key=lambda p: float(p.mean()))
        pairs = list(zip(ordered, reversed(ordered)))
        y = sum((a - b).abs().mean() for a, b in pairs)
        h = self.lin(x) + y
        return h * scale
""",
    "items are lists": """
        flat = []
        for part in parts:
            for row in part:
                flat.append(row)
        y = torch.stack(flat)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "grown by an index and a while": """
        found, i = {}, 0
        while i < len(parts):
            found[i] = parts[i] * 2
            i += 1
        y = torch.cat([found[k] for k in found])
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "star among the targets": """
        first, *others = parts
        y = first + sum(o.mean() for o in others)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "first of them only, then none": """
        y = parts[0] if len(parts) else x
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "with in the rest": """
        y = torch.cat(parts)
        with torch.no_grad() as off, torch.enable_grad():
            h = self.lin(x) + y.mean()
        return h * scale
""",
    "a long list of names": """
        averaged_over_all_parts = torch.cat(parts).mean()
        number_of_parts_given = len(parts)
        whether_there_are_any = number_of_parts_given > 0
        largest_of_all_parts = torch.cat(parts).amax()
        smallest_of_all_parts = torch.cat(parts).amin()
        h = self.lin(x) + averaged_over_all_parts * number_of_parts_given
        if whether_there_are_any:
            h = h + largest_of_all_parts - smallest_of_all_parts
        return h * scale
""",
    "match in the rest": """
        y = torch.cat(parts)
        match x.dim():
            case 2:
                h = self.lin(x) + y.mean()
            case n:
                h = x * n
        return h * scale
""",
    "nested function with a name of its own": """
        y = torch.cat(parts)
        z = y.mean()

        def f(t):
            z = t.sum()
            return z + scale

        return self.lin(x) + f(y) * z
""",
}

#: To be left as they are.
LEFT = {
    "read by a generator that runs later": """
        y = (p.mean() for p in parts)
        h = self.lin(x)
        h = h + 1
        return h + sum(y)
""",
    "handed on as a list": """
        y = [p.mean() for p in parts]
        h = self.lin(x)
        h = h + 1
        return h + sum(y)
""",
    "handed on by another name": """
        items = parts
        h = self.lin(x)
        h = h + 1
        return h + sum(p.mean() for p in items)
""",
    "locals": """
        y = torch.cat(parts)
        h = self.lin(x) + y.mean()
        return h * len(locals())
""",
    "no value on some path": """
        for part in parts:
            last = part
        h = self.lin(x)
        if len(self.seen) > 9:
            h = h + last.mean()
        return h
""",
    "a value that a nested function needs, not on every path": """
        if scale > 1:
            y = torch.cat(parts)
        f = lambda: y.mean()
        return self.lin(x) + (f() if scale > 1 else 0)
""",
    "self is another thing": """
        self = self if scale else None
        y = torch.cat(parts)
        h = self.lin(x) + y.mean()
        return h * scale
""",
    "global": """
        global COUNT
        y = torch.cat(parts)
        COUNT = y.mean()
        return self.lin(x) + COUNT
""",
    "a lambda that sees what the rest changes": """
        y = torch.cat([p for p in parts if (lambda: scale)()])
        late = (scale * k for k in [1.0])
        scale = scale + 1
        h = self.lin(x) + y.mean() + sum(late)
        return h * scale
""",
    "all in a with": """
        with torch.no_grad():
            y = torch.cat(parts)
            h = self.lin(x) + y.mean()
            return h * scale
""",
    "two statements on the first line of the rest": """
        y = torch.cat(parts)
        h = self.lin(x) + y.mean(); h = h + 1
        return h * scale
""",
    "on the line of the list": """
        y = torch.cat(parts); h = self.lin(x) + y.mean(); return h * scale
""",
}
