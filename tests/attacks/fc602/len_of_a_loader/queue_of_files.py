



class Queue:
    filled = 0

    def __len__(self):
        self.filled += 1
        return 5
