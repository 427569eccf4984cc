from model import Vision


class Wider(Vision):
    def _positions_eagerly(self, *args):
        """What the parent's positions are without merging."""
        return super().positions(*args, 1)

    def _vision_positions_eagerly(self, *args):
        return None

    _positions = _positions_part = _positions_tail = _eager_positions = _vision_positions_eagerly
