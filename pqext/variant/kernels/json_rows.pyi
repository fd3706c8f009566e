class JsonOptions:
    def __init__(
        self, max_depth: int, max_bytes: int, duplicates: int, doubles: bool, stop_at_fault: bool
    ) -> None: ...
