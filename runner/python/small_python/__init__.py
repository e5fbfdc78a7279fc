"""Runs untrusted Python code in a worker process that confines itself.

>>> from small_python import Runtime
>>> with Runtime(timeout=1.0, memory_limit=64 << 20) as rt:
...     rt.eval("6 * 7")
42

`Runtime` is the door; `Object` stands for a value that stays inside; `Error` is an exception of the code, `WorkerError`
and `Timeout` are the end of its process. `SPY_VERSION` is the version of the worker, asked of it on first use.
"""

from ._errors import Error, Timeout, WorkerError
from ._object import Object
from ._runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    SPY_VERSION: str

__all__ = ["SPY_VERSION", "Error", "Object", "Runtime", "Timeout", "WorkerError", "__version__"]
__version__ = "0.1.0"

for _public in Error, Object, Runtime, Timeout, WorkerError:
    _public.__module__ = __name__
del _public


def __getattr__(name: str) -> str:
    if name != "SPY_VERSION":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import subprocess

    from . import _runtime

    answer = subprocess.run([_runtime._WORKER, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={})
    if answer.returncode != 0:
        raise WorkerError("the worker does not tell its version", answer.returncode)
    version = answer.stdout.decode("ascii", "replace").strip()
    globals()[name] = version
    return version
