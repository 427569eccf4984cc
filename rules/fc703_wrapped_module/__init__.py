"""FC703: a module that becomes the wrapper which torch.compile makes of it."""
