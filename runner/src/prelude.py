"""The Python side of the engine: what is prepared once in the zygote, and what a child does around one call.

Loaded by engine.rs under no name in sys.modules. Everything here runs inside the boundary or before any user code, and
user code may tamper with all of it: it exists for clear messages, never for safety.
"""

import builtins
import gc
import marshal
import sys

FILE = "function.py"
ONLY_AST = 0x400
LITERALS = (
    "Constant", "Tuple", "List", "Set", "Dict", "UnaryOp", "BinOp", "BoolOp", "Compare", "Name", "Attribute",
    "Subscript", "Slice", "Lambda", "JoinedStr", "FormattedValue", "Starred", "IfExp",
)
DEFINITIONS = ("FunctionDef", "AsyncFunctionDef")

gaps = []


class SourceError(Exception):
    """The file is not one that can be run."""

    def __init__(self, message, line=0):
        super().__init__(message)
        self.line = line


SourceError.__module__ = "builtins"


def warm(names):
    """Loads modules; returns those that are not there."""
    missing = []
    for name in names:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    return missing


def everything():
    """Loads the whole standard library, for the mode without an import guard."""
    skipped = {"antigravity", "this", "idlelib", "lib2to3", "tkinter", "turtle", "turtledemo", "msilib", "nt", "test"}
    for name in sorted(sys.stdlib_module_names - skipped):
        try:
            __import__(name)
        except Exception:
            continue
    for name in (
        "asyncio", "concurrent.futures.thread", "concurrent.futures.process", "ctypes.util", "email.mime.text",
        "http.client", "http.server", "importlib.util", "importlib.machinery", "importlib.resources",
        "multiprocessing.connection", "multiprocessing.pool", "multiprocessing.shared_memory", "urllib.request",
        "xmlrpc.client", "encodings.idna", "encodings.ascii", "encodings.latin_1", "_strptime",
        "multiprocessing.context", "multiprocessing.popen_fork", "multiprocessing.synchronize",
    ):
        warm([name])


def refusing(name, rule, words):
    """A stand-in for a built-in function that a work may not use."""

    def refused(*_args, **_kwargs):
        raise ImportError(f"{name}() is not allowed, because it {words} (rule {rule})")

    refused.__name__ = refused.__qualname__ = name
    return refused


def guard(safe, modules, calls):
    """Builtins for a work: imports by the lists, refused calls replaced."""
    safe = frozenset(safe)
    genuine = builtins.__import__

    def guarded(name, globals=None, locals=None, fromlist=(), level=0):
        if level:
            raise ImportError("a function is a single file: it has no package to import from")
        rule = modules.get(name.partition(".")[0])
        if rule:
            raise ImportError(f"{name} is not allowed, because it {rule[1]} (rule {rule[0]})", name=name)
        if name not in safe:
            raise ImportError(f"{name} is not among the modules of a function (rule python-import-unlisted)", name=name)
        return genuine(name, globals, locals, fromlist, 0)

    own = dict(builtins.__dict__)
    own["__import__"] = guarded
    for name, (rule, words) in calls.items():
        if name != "__import__":
            own[name] = refusing(name, rule, words)
    return own


def namespace(own):
    """The globals of a function's file."""
    return {"__name__": "function", "__doc__": None, "__builtins__": own}


def fill_gaps():
    """Takes the free places between objects, so that what a child makes lies side by side in memory of its own: each gap
    that it used would cost it the copy of a page that it shares with the zygote."""
    pool, header, kept = 1 << 14, sys.getsizeof(b""), []
    for size in range(16, 513, 16):
        count = pool // size
        for _ in range(512):
            if size == 16:
                block = [object() for _ in range(count)]
            elif size == 32:
                block = [float("1") for _ in range(count)]
            else:
                block = [bytes(size - header) for _ in range(count)]
            kept.append(block)
            if len({id(thing) // pool for thing in block}) <= 2:
                break
    return kept


def seal():
    """Forgets every path of the machine, then moves all objects out of the collector's sight."""
    sys.path[:] = []
    sys.meta_path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()
    sys.stdin = sys.__stdin__ = None
    sys.argv = sys.orig_argv = [""]
    for name in ("executable", "_base_executable", "prefix", "base_prefix", "exec_prefix", "base_exec_prefix"):
        setattr(sys, name, "")
    sys._stdlib_dir = None
    # Some modules ask about the machine while they are loaded; what they learnt must not be there for a child.
    platform = sys.modules.get("platform")
    if platform:
        platform._uname_cache = None
        platform._platform_cache.clear()
    for module in list(sys.modules.values()):
        if isinstance(getattr(module, "__file__", None), str):
            module.__file__ = None
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    gc.collect()
    gaps.extend(fill_gaps())
    gc.freeze()


def literal(node):
    """Is evaluating this expression free of calls and loops?"""
    kind = type(node).__name__
    if kind not in LITERALS:
        return kind in ("Load", "Store") or kind.endswith(("Op", "Add", "Sub", "Mult", "Div", "Mod", "Pow", "USub"))
    if kind == "Lambda":
        return True
    for field in node._fields:
        value = getattr(node, field, None)
        for child in value if isinstance(value, list) else (value,):
            if hasattr(child, "_fields") and child._fields and not literal(child):
                return False
    return True


def inert(body):
    """Refuses statements that do something while the file is loaded."""
    for node in body:
        kind = type(node).__name__
        if kind in ("Import", "ImportFrom", "Pass"):
            continue
        if kind in DEFINITIONS:
            arguments = node.args.defaults + [d for d in node.args.kw_defaults if d is not None]
            if all(map(literal, node.decorator_list + arguments)):
                continue
        elif kind == "ClassDef":
            if all(map(literal, node.bases + node.decorator_list)) and not node.keywords:
                inert(node.body)
                continue
        elif kind == "Expr":
            if type(node.value).__name__ == "Constant":
                continue
        elif kind in ("Assign", "AnnAssign"):
            if node.value is None or literal(node.value):
                continue
        raise SourceError("code at module level: the file may only define things; do the work in run()", node.lineno)


def compiled(source, bare):
    """The code of a file as bytes."""
    tree = compile(source, FILE, "exec", ONLY_AST, dont_inherit=True)
    if not bare:
        inert(tree.body)
    if not any(type(n).__name__ in DEFINITIONS[:1] and n.name == "run" for n in tree.body):
        raise SourceError("the file has no function run(inputs)")
    return marshal.dumps(compile(tree, FILE, "exec", dont_inherit=True))


def call(code, own, inputs):
    """Runs a file and then its function."""
    space = namespace(own)
    exec(marshal.loads(code), space)
    run = space.get("run")
    if not callable(run):
        raise SourceError("the file has no function run(inputs)")
    return run(inputs)


def flush():
    """Sends what print still holds."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue


def describe(error):
    """Type, message, line and the creator's own frames of an exception."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = ""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE:
            frames.append((trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    line = frames[-1][0] if frames else 0
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, message = error.lineno or 0, error.msg or message
    elif isinstance(error, SourceError):
        line = error.line
    return kind, message, line, frames[-16:]


