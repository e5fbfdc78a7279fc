import math


def run(inputs):
    return {"x": math.sqrt(inputs["x"])}
