from collections.abc import Sequence

class Zone:
    def __init__(
        self, instants: Sequence[int], clocks: Sequence[int], offsets: Sequence[int], horizon: int
    ) -> None: ...
