from os import path as p
x = getattr(p, "o" + "s")
class A:
    y = ().__class__.__mro__
def run(inputs):
    return ｅｖａｌ("1")
