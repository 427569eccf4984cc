from unittest.mock import patch


def asked_with(net, tokenizer, *given):
    """What the model gives with another tokenizer."""
    with patch.object(net, "tokenizer", tokenizer):
        return net(*given)
