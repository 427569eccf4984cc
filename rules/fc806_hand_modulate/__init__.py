"""FC806: modulation (adaLN), written out by hand."""
