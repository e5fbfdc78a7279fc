"""Builds the wheel and the sdist of small_python (PEP 517), with nothing but the standard library, cargo and a C linker.

The wheel is the pure-Python package and one program, `spy-worker`, into which a CPython is linked. Which one:

1. the one that the environment variable SPY_PYTHON names, or
2. the Python that runs this file, or
3. /usr/bin/python3,

the first of them that is 3.11 or later and has a library to link. A static library makes the program self-contained;
with only a shared one the program finds that by its path, and the wheel is for this machine alone.

    python3 small_python_build.py wheel FOLDER      python3 small_python_build.py sdist FOLDER
"""

import base64
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parents[1]
# In the repository the crates are around this folder; an sdist carries them inside.
ROOT = HERE / "rust" if (HERE / "rust").is_dir() else HERE.parents[1]
# What an archive says of the time of its files: nothing.
EPOCH = (1980, 1, 1, 0, 0, 0)


def project():
    """The fields of pyproject.toml that metadata needs. tomllib came with 3.11."""
    text = (HERE / "pyproject.toml").read_text("utf-8")
    fields = dict(re.findall(r'^([a-z-]+) = "(.*)"$', text, re.M))
    fields["classifiers"] = re.findall(r'^    "(.*)",$', text, re.M)
    fields["keywords"] = ",".join(re.findall(r'"(.*?)"', re.search(r"^keywords = \[(.*)\]$", text, re.M)[1]))
    return fields


def metadata():
    """The text of METADATA and PKG-INFO."""
    about = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {about['name']}",
        f"Version: {about['version']}",
        f"Summary: {about['description']}",
        f"Keywords: {about['keywords']}",
        "License: MIT",
        f"Requires-Python: {about['requires-python']}",
        *(f"Classifier: {row}" for row in about["classifiers"]),
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text("utf-8"),
    ]
    return "\n".join(lines)


# ---- the program ----

ASKED = """
import json, sys, sysconfig
names = ("LIBPL", "LIBDIR", "LIBRARY", "LDLIBRARY", "Py_ENABLE_SHARED", "LDVERSION", "Py_GIL_DISABLED")
print(json.dumps({"version": sys.version_info[:2], **{name: sysconfig.get_config_var(name) for name in names}}))
"""


def linkable(python):
    """What to link of an interpreter: its configuration with `static` or `shared` added, or None."""
    try:
        said = subprocess.run([python, "-I", "-c", ASKED], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = json.loads(said)
    if tuple(found["version"]) < (3, 11) or found["Py_GIL_DISABLED"]:
        return None
    folder = pathlib.Path(found["LIBPL"] or "")
    name = f"python{found['LDVERSION']}"
    # Debian's static library for position-independent programs has a name of its own.
    for library in (f"{name}-pic", name):
        if (folder / f"lib{library}.a").is_file():
            return {**found, "python": python, "static": library, "folder": str(folder)}
    if found["Py_ENABLE_SHARED"]:
        return {**found, "python": python, "shared": name, "folder": found["LIBDIR"]}
    return None


def to_link():
    """The first interpreter of the list above that can be linked."""
    named = os.environ.get("SPY_PYTHON")
    candidates = [named] if named else [sys.executable, "/usr/bin/python3"]
    for python in candidates:
        found = linkable(python)
        if found:
            return found
    raise SystemExit(
        f"none of {', '.join(candidates)} is a CPython from 3.11 on with a library to link: install Debian's "
        "python3-dev, or set SPY_PYTHON to an interpreter that was built with its libpython"
    )


def configuration(found):
    """What pyo3 is told (PYO3_CONFIG_FILE)."""
    version = ".".join(map(str, found["version"]))
    lines = [
        "implementation=CPython",
        f"version={version}",
        "shared=false",
        "abi3=false",
        f"executable={found['python']}",
        f"pointer_width={struct.calcsize('P') * 8}",
        "suppress_build_script_link_lines=true",
    ]
    links = [f"search=native={found['folder']}"]
    if "static" in found:
        # The archive names what its built-in modules need of other libraries; those are linked statically, too.
        beside = subprocess.run(["gcc", "-print-file-name=libz.a"], capture_output=True, text=True).stdout.strip()
        links.append(f"lib=static:-bundle={found['static']}")
        if found["static"].endswith("-pic"):
            links += [f"search=native={pathlib.Path(beside).parent}", "lib=static:-bundle=expat", "lib=static:-bundle=z"]
        links += ["lib=dylib=m", "lib=dylib=dl", "lib=dylib=util"]
    else:
        links.append(f"lib=dylib={found['shared']}")
    lines += [f"extra_build_script_line=cargo:rustc-link-{link}" for link in links]
    return "\n".join(lines) + "\n"


def build_worker():
    """Builds `spy-worker`; returns its path."""
    if not shutil.which("cargo"):
        raise SystemExit("cargo is needed to build spy-worker: install Rust, see https://rustup.rs")
    found = to_link()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheel"
    target.mkdir(parents=True, exist_ok=True)
    config = target / "pyo3.config"
    text = configuration(found)
    if not config.is_file() or config.read_text("utf-8") != text:
        config.write_text(text, "utf-8")
    environment = {**os.environ, "PYO3_CONFIG_FILE": str(config), "PYO3_PYTHON": found["python"]}
    command = ["cargo", "build", "--quiet", "--profile", "wheel", "-p", "runner", "--bin", "spy-worker"]
    if "shared" in found:
        command = ["cargo", "rustc", *command[2:], "--", "-C", f"link-arg=-Wl,-rpath,{found['folder']}"]
    subprocess.run([*command, "--target-dir", str(target)], check=True, cwd=ROOT, env=environment)
    return target / "wheel" / "spy-worker", "static" in found


def glibc_of(program):
    """The newest version of glibc that a program asks for, as (2, 34); None without glibc."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", program.read_bytes())
    return max(((int(a), int(b)) for a, b in versions), default=None)


def tag(program, self_contained):
    """The platform tag of the wheel."""
    machine = platform.machine()
    if sys.platform == "linux" and self_contained:
        glibc = glibc_of(program)
        if glibc:
            return f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"
        return f"musllinux_1_2_{machine}"
    return re.sub(r"[^a-z0-9_]", "_", sysconfig.get_platform().lower())


# ---- archives ----


def package_files():
    """The files of the package, by name."""
    folder = HERE / "small_python"
    names = sorted(p.name for p in folder.iterdir() if p.suffix in (".py", ".pyi", ".typed") or p.name == "py.typed")
    return {f"small_python/{name}": (folder / name).read_bytes() for name in names}


def wheel_text(platform_tag):
    """The text of WHEEL."""
    rows = "Wheel-Version: 1.0", "Generator: small_python_build", "Root-Is-Purelib: false", f"Tag: py3-none-{platform_tag}"
    return "\n".join(rows) + "\n"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes what can be said before the program is built; returns the name of the folder."""
    about = project()
    info = f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    folder = pathlib.Path(metadata_directory, info)
    folder.mkdir()
    (folder / "METADATA").write_text(metadata(), "utf-8")
    (folder / "WHEEL").write_text(wheel_text("any"), "utf-8")
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel; returns its name."""
    program, self_contained = build_worker()
    about = project()
    name = f"{about['name'].replace('-', '_')}-{about['version']}"
    platform_tag = tag(program, self_contained)
    info = f"{name}.dist-info"
    files = package_files()
    files["small_python/spy-worker"] = program.read_bytes()
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = wheel_text(platform_tag).encode()
    record = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}")
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    result = f"{name}-py3-none-{platform_tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, result), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr = (0o100755 if path.endswith("spy-worker") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return result


SKIPPED = {"python", "target", "__pycache__", ".mypy_cache", ".pytest_cache", ".hypothesis", "dist"}


def tree(folder, inside):
    """Files below a folder of the repository, by their name in the sdist."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not SKIPPED & set(path.relative_to(folder).parts):
            yield f"{inside}/{path.relative_to(folder)}", path.read_bytes()


def sdist_files():
    """Everything that building the wheel and testing it takes."""
    for part in ("pyproject.toml", "README.md", "CHECKLIST.tsv"):
        if (HERE / part).is_file():
            yield part, (HERE / part).read_bytes()
    for part in ("backend", "small_python", "tests", "examples"):
        yield from tree(HERE / part, part)
    workspace = (ROOT / "Cargo.toml").read_text("utf-8")
    workspace = re.sub(r"^members = .*$", 'members = ["policy", "runner"]', workspace, flags=re.M)
    yield "rust/Cargo.toml", workspace.encode()
    yield "rust/Cargo.lock", (ROOT / "Cargo.lock").read_bytes()
    for part in ("policy", "runner", "seccomp"):
        yield from tree(ROOT / part, f"rust/{part}")


def build_sdist(sdist_directory, config_settings=None):
    """Writes the sdist; returns its name."""
    about = project()
    name = f"{about['name'].replace('-', '_')}-{about['version']}"
    result = f"{name}.tar.gz"
    files = {"PKG-INFO": metadata().encode(), **dict(sdist_files())}
    with tarfile.open(pathlib.Path(sdist_directory, result), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    return result


def main(arguments):
    """The command line."""
    builders = {"wheel": build_wheel, "sdist": build_sdist}
    if len(arguments) != 2 or arguments[0] not in builders:
        raise SystemExit(__doc__)
    folder = pathlib.Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / builders[arguments[0]](folder))


if __name__ == "__main__":
    main(sys.argv[1:])
