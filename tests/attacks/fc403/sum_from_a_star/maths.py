



def sum(values):
    total = 1
    for value in values:
        total += value
    return total
