"""An environment with only the built wheel: what somebody has who never saw this repository.

Owns: the wheel and the environment. Never: installs the dependencies again: they are those of the
tests. Next: reader.py, who works there.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip")
OFFLINE = ("--no-index", "--no-deps", "--disable-pip-version-check", "--quiet")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this repository into a folder."""
    command = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    (wheel,) = folder.glob("troth-*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a new environment, and return the folder of its commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    subprocess.run(
        [*PIP, "--python", str(folder / "bin/python"), "install", *OFFLINE, str(wheel)], check=True
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    theirs = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(theirs))
    return folder / "bin"


def environment(commands: Path, home: Path) -> dict[str, str]:
    """Variables of a shell that knows these commands, and nothing of the user of this machine."""
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    path = f"{commands}:/usr/local/bin:/usr/bin:/bin"
    return {**kept, "PATH": path, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
