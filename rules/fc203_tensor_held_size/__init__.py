"""FC203: sizes, paddings and counts that a module keeps in 0-d tensors though its constructor knows them."""
