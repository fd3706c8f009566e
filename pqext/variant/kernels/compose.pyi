from enum import IntEnum

class ComposeFault(IntEnum):
    COMPOSE_TOO_LARGE = ...
