"""The error that ends a command: one clear line for the user, and an exit code."""


class StrettoError(Exception):
    """What went wrong and what to do now, in one line."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
