class SDPBackend:
    MATH = 7
