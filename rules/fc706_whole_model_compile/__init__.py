"""FC706: a model that is compiled as a whole, and consists of blocks of one class."""
