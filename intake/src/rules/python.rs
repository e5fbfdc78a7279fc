//! The Python function of a pair.

rules! {
    SIZE = "python-size" Python Reject {
        title: "A Python function over 16 KiB",
        why: "The function holds rules, not data or a user interface; the limit is the same for everyone.",
        fix: "Move texts and tables into the page, and keep the logic.",
        fails: Words "a Python file of 16,385 bytes",
        passes: Python "def run(inputs):\n    return {}\n",
    }
    ENCODING = "python-encoding" Python Reject {
        title: "Python that is not plain UTF-8 text",
        why: "Another encoding, or characters that nobody sees, let a file run as something else than what is read.",
        fix: "Save the file as UTF-8 without a coding line, and remove the character at this place.",
        fails: Python "# -*- coding: utf-7 -*-\ndef run(inputs):\n    return {}\n",
        passes: Python "# -*- coding: utf-8 -*-\ndef run(inputs):\n    return {\"é\": 1}\n",
    }
    SYNTAX = "python-syntax" Python Reject {
        title: "Python that cannot be parsed",
        why: "What cannot be parsed cannot be checked, and would fail at every call.",
        fix: "Mend the error at this place; the function is run by Python 3.",
        fails: Python "def run(inputs)\n    return {}\n",
        passes: Python "def run(inputs):\n    match inputs:\n        case {\"a\": x}:\n            return x\n    return {}\n",
    }
    ENTRY = "python-entry" Python Reject {
        title: "Not exactly one entry point: def run(inputs)",
        why: "The page calls run with its inputs, and nothing else.",
        fix: "Define one plain function run with the one parameter inputs at the top of the file.",
        fails: Python "def start(inputs):\n    return {}\n",
        passes: Python "def run(inputs: dict) -> dict:\n    return {}\n",
    }
    TOP_LEVEL = "python-top-level" Python Reject {
        title: "Something that runs when the file is loaded",
        why: "The file is a function, not a script: at its top level are only imports, constants, functions and classes.",
        fix: "Move the statement into run, or into a function that run calls; remove it if it starts a server or a program.",
        fails: Python "print(1)\n\ndef run(inputs):\n    return {}\n",
        passes: Python "import re\nWORD = re.compile(r\"\\w+\")\nSIZES = {\"a\": [1, -2], \"b\": 3 * 4}\n\ndef run(inputs):\n    return {}\n",
    }
    IMPORT_SYSTEM = "python-import-system" Python Reject {
        title: "A module that reaches the machine",
        why: "The sandbox stops it anyway; a file that imports it says that it wants out, and that is not published.",
        fix: "Remove the import; math, random, json, itertools, functools, collections, re, datetime and string are there.",
        fails: Python "import os.path as p\n\ndef run(inputs):\n    return {}\n",
        passes: Python "import math\n\ndef run(inputs):\n    os = math.pi\n    return {\"x\": os}\n",
    }
    IMPORT_NETWORK = "python-import-network" Python Reject {
        title: "A module that reaches the network",
        why: "The sandbox stops it anyway; a file that imports it says that it wants out, and that is not published.",
        fix: "Remove the import; math, random, json, itertools, functools, collections, re, datetime and string are there.",
        fails: Python "import socket\n\ndef run(inputs):\n    return {}\n",
        passes: Python "import math\n\ndef run(inputs):\n    socket = math.pi\n    return {\"x\": socket}\n",
    }
    IMPORT_INTROSPECTION = "python-import-introspection" Python Reject {
        title: "A module that looks into the interpreter",
        why: "The sandbox stops it anyway; a file that imports it says that it wants out, and that is not published.",
        fix: "Remove the import; math, random, json, itertools, functools, collections, re, datetime and string are there.",
        fails: Python "import inspect\n\ndef run(inputs):\n    return {}\n",
        passes: Python "import math\n\ndef run(inputs):\n    inspect = math.pi\n    return {\"x\": inspect}\n",
    }
    MODULE = "python-module" Python Reject {
        title: "A module that is not on the list",
        why: "Only modules of pure computation can be imported where the function runs, so this import would fail.",
        fix: "Import a module that the finding lists, or write the few lines yourself.",
        fails: Python "import sqlite3\n\ndef run(inputs):\n    return {}\n",
        passes: Python "from dataclasses import dataclass\n\n@dataclass\nclass A:\n    x: int = 1\n\ndef run(inputs):\n    return {\"x\": A().x}\n",
    }
    DYNAMIC = "python-dynamic-code" Python Reject {
        title: "A function that makes code from text: eval, exec, compile, __import__",
        why: "Text that becomes code cannot be read before it runs.",
        fix: "Write the code out; read data with json.loads.",
        fails: Python "def run(inputs):\n    return {\"x\": eval(inputs[\"x\"])}\n",
        passes: Python "import re\n\ndef run(inputs):\n    return {\"x\": bool(re.compile(\"a\").match(\"a\"))}\n",
    }
    CALL = "python-call" Python Reject {
        title: "A function that reaches for files, input or the interpreter: open, input, globals and the like",
        why: "A function takes its inputs and returns its answer; it has no file, no keyboard and no debugger.",
        fix: "Use what comes in inputs, and return what should go out.",
        fails: Python "def run(inputs):\n    return {\"x\": open(\"a.txt\").read()}\n",
        passes: Python "def run(inputs):\n    open = inputs\n    return {\"x\": open}\n",
    }
    REACH = "python-reach" Python Reject {
        title: "An attribute that leads out of the language: dunders, underscore names of modules",
        why: "Through such attributes code reaches modules that it may not import.",
        fix: "Use the public names of the module, and plain attributes of your own.",
        fails: Python "import random\n\ndef run(inputs):\n    return {\"x\": str(random._os)}\n",
        passes: Python "class A:\n    def __init__(self):\n        self._x = 1\n\ndef run(inputs):\n    return {\"x\": A()._x}\n",
    }
    UNREADABLE = "python-unreadable" Python Reject {
        title: "Python that a person cannot read: encoded strings, shifted bytes, minified lines",
        why: "A human reads every function; a string that is not readable as a string is rejected.",
        fix: "Write strings as they are, one statement a line.",
        fails: Python "def run(inputs):\n    return {\"x\": bytes.fromhex(\"6f73\").decode()}\n",
        passes: Python "MAP = \"#########\"\n\ndef run(inputs):\n    return {\"x\": MAP}\n",
    }
    BANDIT = "python-bandit" Python Reject {
        title: "Something that bandit finds",
        why: "bandit is the standard linter for security; any finding at any severity is a rejection, and # nosec is ignored.",
        fix: "Mend what bandit names; the link in its message explains it. The command is bandit -q -f json --ignore-nosec -s B311 - < FILE; the short recipe, bandit -r FILE -lll, shows high severity only and obeys # nosec.",
        fails: Words "what bandit reports, such as an assert in the function's body (B101)",
        passes: Python "def run(inputs):\n    return {\"x\": 1}\n",
    }
}
