class Report:
    """Says how it went, whatever happens."""

    def __init__(self):
        self.passed = 0

    def run(self, model, x):
        try:
            x = model.validate(x)
            self.passed += 1
        finally:
            return x
