"""As test/strangers/go-user-tokens, in Python: the test puts the verifier of docs/build/backend.md beside it, as verifier.py."""

import json
import sys

import jwt

from verifier import claims_of

for line in sys.stdin:
    try:
        print(json.dumps(claims_of(line.rstrip("\n"))))
    except jwt.PyJWTError:
        print("refused")
