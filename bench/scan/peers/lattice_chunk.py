"""lattice.scan with method linear2, the subject of ./lattice bench chunk."""

import lattice
from peers import lattice_scan


class Run(lattice_scan.Run):
    def __init__(self, x, d, *, threads, chunk):
        super().__init__(x, d, threads=threads)
        self.chunk = chunk

    def scan(self):
        return lattice.scan(**self.x, method="linear2", chunk=self.chunk)
