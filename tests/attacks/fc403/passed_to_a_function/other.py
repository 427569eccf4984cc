



def padded(counts):
    return max(counts) - counts.pop()
