"""How fast names are read, and that nothing typed makes more than a message: random strings.

    python benchmarks/names.py [--count 100000]

Random letters, known names with letters changed, shuffled words of names, letters that look like
others, control characters. Prints the mean and the slowest share in ms of processor time, after
every 10,000; exits 1 where something else than an error for users is raised.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.reading import read_model
from tests.reading.random_names import texts

_STEP = 10_000


def main() -> int:
    """Read them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    count = parser.parse_args().count
    knowledge, taken = load_knowledge(), []
    read_model(knowledge, "qwen3 8b awq")
    for text in texts(count, random.Random(1)):
        start = time.process_time()
        try:
            read_model(knowledge, text)
        except UserError:
            pass
        except Exception as fault:  # noqa: BLE001  that is what is looked for
            print(f"{text!r}: {fault!r}")
            return 1
        taken.append(1e3 * (time.process_time() - start))
        if (done := len(taken)) in {count, *range(0, count, _STEP)}:
            mean, slow = sum(taken) / done, sorted(taken)[-1 - done // 100]
            print(f"{done} names: {mean:.2f} ms each, 99 % below {slow:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
