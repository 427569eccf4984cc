class Schedule:
    def __init__(self):
        self.tensors = []

    def add(self, tensor):
        self.tensors.append(tensor)

    def step(self):
        for tensor in self.tensors:
            tensor += 1
