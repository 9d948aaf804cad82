"""Runs the tests against small faults, all of them in one build. See `.ci/mutants`."""

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = Path(os.environ.get("MUTANTS_COPY", ROOT / "target" / "mutants" / "copy"))
CARGO = os.environ.get("CARGO", "cargo")
# A run that takes longer than this hangs because of its fault, and is noticed so.
PATIENCE = 180
WANTED = 0.9
# A fault is on if its number stands in a file: processes that a test starts see it too, whatever their environment.
SWITCH = """//! Which fault is on. Only in the copy that `.ci/mutants` makes.

use std::sync::OnceLock;

/// Whether the fault with this number is on.
pub fn is(number: u32) -> bool {
    static ON: OnceLock<u32> = OnceLock::new();
    let read = || std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "FILE")).ok()?.trim().parse().ok();
    *ON.get_or_init(|| read().unwrap_or(0)) == number
}
"""


def main() -> int:
    with open(ROOT / ".ci" / "mutants.d" / "mutants.toml", "rb") as file:
        mutants = tomllib.load(file)["mutant"]
    wanted = {int(number) for number in sys.argv[1:]}
    copy_project(changed(mutants))
    chosen = [mutant for mutant in mutants if not wanted or mutant["id"] in wanted]
    begun = time.monotonic()
    programs = build(sorted({test.split()[0] for mutant in chosen for test in mutant["tests"]}))
    built = time.monotonic()
    for test in sorted({test for mutant in chosen for test in mutant["tests"]}):
        failure = failing(programs, test, 0)
        if failure:
            print(f"`{test}` fails without any fault:\n{failure[-3000:]}")
            return 1
    print(f"built in {built - begun:.0f} s; all tests pass without a fault, in {time.monotonic() - built:.0f} s", flush=True)
    noticed, known, unknown = 0, [], []
    for mutant in chosen:
        since = time.monotonic()
        by = next((test for test in mutant["tests"] if failing(programs, test, mutant["id"])), None)
        noticed += by is not None
        verdict = f"noticed by `{by}`" if by else "SURVIVED"
        print(f"{mutant['id']:3} {verdict:40} {time.monotonic() - since:5.1f} s  {mutant['what']}", flush=True)
        if by and "survives" in mutant:
            print(f"    it is listed as a survivor: {mutant['survives']}")
        if not by:
            (known if "survives" in mutant else unknown).append(mutant)
    (COPY / "mutant").unlink(missing_ok=True)
    share = noticed / len(chosen)
    print(f"\n{noticed} of {len(chosen)} noticed ({share:.0%}), {len(known)} known survivors, {len(unknown)} others, "
          f"in {time.monotonic() - begun:.0f} s")
    for mutant in known:
        print(f"- {mutant['id']}: {mutant['what']}: {mutant['survives']}")
    for mutant in unknown:
        print(f"- {mutant['id']}: {mutant['what']}: no test notices it ({', '.join(mutant['tests'])})")
    return 0 if not unknown and share >= WANTED else 1


def changed(mutants: list) -> dict:
    """The files with all faults in them, by path. A fault whose place is not found once is an error."""
    texts, numbers = {}, set()
    for mutant in mutants:
        path, number = mutant["file"], mutant["id"]
        if number in numbers or number <= 0:
            sys.exit(f"mutants.toml: the id {number} is taken or no number from 1 on")
        numbers.add(number)
        text = texts.setdefault(path, (ROOT / path).read_text())
        if text.count(mutant["find"]) != 1:
            found = text.count(mutant["find"])
            sys.exit(f"mutants.toml: fault {number} ({mutant['what']}): its text stands {found} times in {path}, not once; "
                     "write down how that place looks now")
        texts[path] = text.replace(mutant["find"], mutant["replace"].replace("MUTANT", f"crate::mutants::is({number})"))
    for crate in {path[: path.index("src/")] for path in texts}:
        texts[f"{crate}src/mutants.rs"] = SWITCH.replace("FILE", "/.." * crate.count("/") + "/mutant")
        library = texts.get(f"{crate}src/lib.rs", (ROOT / crate / "src" / "lib.rs").read_text())
        texts[f"{crate}src/lib.rs"] = library.replace("\npub mod ", "\n#[doc(hidden)]\npub mod mutants;\npub mod ", 1)
    return texts


def copy_project(texts: dict) -> None:
    """Copies what git knows. A file that is there already and equal keeps its time, so that little is built again."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    names = {name for name in names if name and (ROOT / name).is_file()} | set(texts)
    for name in sorted(names):
        target = COPY / name
        content = texts[name].encode() if name in texts else (ROOT / name).read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if name not in texts:
            shutil.copymode(ROOT / name, target)
    for path in [path for path in COPY.rglob("*.rs") if "target" not in path.relative_to(COPY).parts]:
        if str(path.relative_to(COPY)) not in names:
            path.unlink()


def build(names: list) -> dict:
    """Builds these test programs; their files by name."""
    flags = [flag for name in names for flag in (["--lib"] if name == "lib" else ["--test", name])]
    command = [CARGO, "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", "-p", "callsheet", *flags]
    built = subprocess.run(command, cwd=COPY, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit("the project with the faults does not build")
    programs = {}
    for line in built.stdout.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message.get("profile", {}).get("test"):
            name = "lib" if "lib" in message["target"]["kind"] else message["target"]["name"]
            programs[name] = message["executable"]
    return programs


def failing(programs: dict, test: str, number: int) -> str:
    """What is printed when the tests of a program whose names hold one of some texts fail with a fault; empty if they pass."""
    program, *filters = test.split()
    (COPY / "mutant").write_text(str(number))
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(COPY), "RUST_BACKTRACE": "0"}
    command = [programs[program], *filters]
    try:
        ran = subprocess.run(command, cwd=COPY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"not over after {PATIENCE} s"
    if "running 0 tests" in ran.stdout:
        sys.exit(f"mutants.toml: no test is called `{test}`")
    return ran.stdout if ran.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
