def total(steps):
    return sum(step.sum() for step in steps)
