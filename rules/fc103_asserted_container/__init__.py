"""FC103: an assertion of a list, tuple or dict."""
