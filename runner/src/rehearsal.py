"""What a zygote runs before its first fork: the ordinary things of an ordinary function."""
import json
import math
import random
import re


class Point:
    def __init__(self, x):
        self.x = x


def helper(values):
    return [str(v) for v in values if v is not None]


def run(inputs):
    if inputs["fail"]:
        raise ValueError("rehearsed")
    text = ", ".join(helper(inputs["a"]))
    found = re.findall("[a-z]+", text)
    random.seed()
    points = [Point(math.sqrt(n)) for n in range(8)]
    total = sum(p.x for p in points)
    return {"text": f"{text:>10}", "found": found, "total": total, "again": json.loads(json.dumps({"n": 1})),
            "sorted": sorted(inputs["a"][:2], key=lambda v: -v), "drawn": random.choice("abc")}
