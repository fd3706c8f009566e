from pqext.core.kernels import Readable
from pqext.core.kernels.encodings.page_run import PageRun

def view_plain(
    run: PageRun, present: Readable, slots: Readable, first: int, text: bool, out: Readable
) -> list[int]: ...
def view_values(data: Readable, offsets: Readable, buffer: int, text: bool, out: Readable) -> bool: ...
