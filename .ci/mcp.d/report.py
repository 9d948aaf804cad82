"""What held and what did not, of a row of checks."""

import sys
import time


class Report:
    """What held, and what did not."""

    def __init__(self, label):
        self.label, self.passed, self.failed = label, 0, 0

    def check(self, label, judge, *arguments, **named):
        """Runs a check, which fails by raising."""
        started = time.monotonic()
        try:
            judge(*arguments, **named)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other checks go on
            self.failed += 1
            print(f"FAILED {label}: {type(error).__name__}: {' '.join(str(error).split())[:900]}", file=sys.stderr, flush=True)
        else:
            self.passed += 1
        if time.monotonic() - started > 5:
            print(f"   {label} took {time.monotonic() - started:.0f} s", flush=True)

    def end(self):
        """Prints the closing line, and gives the exit code."""
        print(f"{self.label}: {self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
