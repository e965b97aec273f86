"""The peer's end of the bench's line protocol: one request a line on stdin, one answer a line on stdout.

    (start)  ready
    facts    {"torch": "1.13.0", "blas": "openblas", ...}
    run      <milliseconds> <loss>
    memory   <peak resident memory in MB>
    quit     (ends)

The environment (threads, BLAS kernels, allocator) is set by the harness before Python starts: see environment.mjs.
"""

import json
import os
import re
import sys
import time

import torch

# As many threads as the side the peer is compared with: two, for the two cores of the reference machine.
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
torch.set_flush_denormal(True)
torch.manual_seed(1)


def serve(step):
    """`step()` does one training step and returns its loss as a tensor."""
    answer("ready")
    for line in sys.stdin:
        request = line.strip()
        if request == "run":
            start = time.perf_counter()
            loss = step()
            answer(f"{(time.perf_counter() - start) * 1e3:.4f} {loss.item():.9g}")
        elif request == "memory":
            answer(f"{peak_memory():.1f}")
        elif request == "facts":
            answer(json.dumps({"torch": torch.__version__, "blas": blas(), "threads": torch.get_num_threads()}))
        elif request == "quit":
            return
        else:
            sys.exit(f"the peer does not know the request {request!r}")


def blas():
    """Which BLAS is loaded. Debian's torch takes whatever libblas.so.3 is; the reference one is 60 times slower
    than OpenBLAS."""
    built_with = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    if built_with and built_with[1] not in ("generic", "open"):
        return built_with[1]
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if ".so" in line}
    for name in ("openblas", "mkl", "blis", "atlas"):
        if any(name in library for library in libraries):
            return name
    return "reference"


def peak_memory():
    """In MB. The kernel's VmHWM rather than ru_maxrss, which a process inherits from the one that started it."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024


def answer(line):
    print(line, flush=True)
