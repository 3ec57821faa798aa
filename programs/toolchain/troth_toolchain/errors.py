"""The toolchain's one exception tree.

    ToolchainError
    +-- CompilerError    packaged compilers are missing or of another version
    +-- StdPatchError    the standard library's sources differ from what the patches expect
    +-- CommandError     a compiler or an LLVM tool failed
    +-- RewriteError     IR that no rewrite rule understands
    +-- LinkError        an object that cannot become an image
    +-- ArtifactError    a shipped file is missing, too big or out of date

Each message holds what was expected, what was found and the next step.
"""


class ToolchainError(Exception):
    """Anything that stops a build; the message is meant for the person at the terminal."""


class CompilerError(ToolchainError):
    """Packaged compilers are missing or of another version."""


class StdPatchError(ToolchainError):
    """The standard library's sources do not hold what a patch expects."""


class CommandError(ToolchainError):
    """An external command failed."""


class RewriteError(ToolchainError):
    """IR that the rewrite rules cannot bring into sBPF's shape."""


class LinkError(ToolchainError):
    """An object or image that the Solana loader would refuse."""


class ArtifactError(ToolchainError):
    """A shipped file is missing, too big, or does not match its sources."""
