



class Words:
    numbers = {"picture": 7}

    @property
    def picture_id(self):
        return type(self).numbers["picture"]


def use(number):
    Words.numbers = {"picture": number}
