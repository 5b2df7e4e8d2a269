"""Start a worker's `main` without `explorer/__init__.py`, which loads what a program that uses explorer needs.

This file is run as a program of its own, and is never imported.
"""

import sys
from importlib.util import find_spec, module_from_spec

if __name__ == "__main__":
    found = find_spec("explorer")
    assert found
    sys.modules["explorer"] = module_from_spec(found)  # the package, not run: its modules are found all the same

    if sys.argv[1] == "archive":
        from explorer.documents.parsing.unpack_worker import main
    else:
        from explorer.documents.parsing.worker import main

    main(sys.argv[1], *map(int, sys.argv[2:]))
