def first_that_passes(step, candidates):
    for candidate in candidates:
        try:
            return step(candidate)
        except ValueError:
            pass
    raise ValueError("none of them")
