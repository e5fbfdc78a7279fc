# coding: utf-7
def run(inputs):
    return "\x41" + ''.join(chr(c ^ 1) for c in b"ab")
